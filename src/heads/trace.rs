//! Ids that connect log lines of several programs about one request. [`is_request_id`] checks an
//! X-Request-Id, and [`trace_id`] reads the trace id from `traceparent` (W3C Trace Context).

/// The most bytes of an accepted X-Request-Id.
const MAX_REQUEST_ID_BYTES: usize = 128;
/// Bytes of `traceparent` in version 00: version, trace, parent and flags, with a hyphen between
/// each.
const TRACEPARENT_BYTES: usize = 55;

/// Whether this is an X-Request-Id that can be passed on, logged and shown. There is no standard:
/// clients and proxies send UUIDs, ULIDs, hexadecimal digits and Base64.
pub fn is_request_id(value: &[u8]) -> bool {
    (1..=MAX_REQUEST_ID_BYTES).contains(&value.len())
        && value
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.:=+/@".contains(byte))
}

/// The id of the trace in a `traceparent` field (W3C Trace Context, section 3.2); `None` if the
/// field is malformed. Later versions may append to what version 00 has, after a hyphen.
pub fn trace_id(traceparent: &[u8]) -> Option<&[u8]> {
    let (known, extension) = traceparent.split_at_checked(TRACEPARENT_BYTES)?;
    let mut parts = known.split(|byte| *byte == b'-');
    let version = parts
        .next()
        .filter(|part| is_hexadecimal(part, 2) && *part != b"ff")?;
    let trace = parts
        .next()
        .filter(|part| is_hexadecimal(part, 32) && !is_all_zeros(part))?;
    let _parent = parts
        .next()
        .filter(|part| is_hexadecimal(part, 16) && !is_all_zeros(part))?;
    let _flags = parts.next().filter(|part| is_hexadecimal(part, 2))?;
    let is_well_formed = extension.is_empty() || (version != b"00" && extension.starts_with(b"-"));
    is_well_formed.then_some(trace)
}

fn is_hexadecimal(part: &[u8], length: usize) -> bool {
    part.len() == length
        && part
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_all_zeros(part: &[u8]) -> bool {
    part.iter().all(|byte| *byte == b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    #[test]
    fn request_ids_are_short_and_plain() {
        for id in [
            "7b6a6b0c-2ea2-4a0e-9d6c-d8a0a8a0b5a1",
            "1",
            "Root=1-67891233-abcdef",
            "a/b+c==",
            &"x".repeat(128),
        ] {
            assert!(is_request_id(id.as_bytes()), "{id}");
        }
        for id in [
            "",
            " ",
            "a b",
            "a,b",
            "a\"b",
            "<b>",
            "a;b",
            "a\nb",
            "\u{e9}",
            &"x".repeat(129),
        ] {
            assert!(!is_request_id(id.as_bytes()), "{id}");
        }
    }

    #[test]
    fn only_well_formed_traceparent_has_a_trace_id() {
        let read = |field: &str| {
            trace_id(field.as_bytes()).map(|trace| String::from_utf8_lossy(trace).into_owned())
        };
        let parent = "b7ad6b7169203331";
        for field in [
            format!("00-{TRACE}-{parent}-01"),
            format!("00-{TRACE}-{parent}-00"),
            format!("cc-{TRACE}-{parent}-01"),
            format!("cc-{TRACE}-{parent}-01-what-comes-later"),
        ] {
            assert_eq!(read(&field).as_deref(), Some(TRACE), "{field}");
        }
        for field in [
            String::new(),
            format!("00-{TRACE}-{parent}-1"),
            format!("00-{TRACE}-{parent}-01-more"),
            format!("cc-{TRACE}-{parent}-01more"),
            format!("ff-{TRACE}-{parent}-01"),
            format!("0-{TRACE}0-{parent}-01"),
            format!("00-{}-{parent}-01", TRACE.to_ascii_uppercase()),
            format!("00-{}-{parent}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{TRACE}-{parent}-0g"),
            format!("00_{TRACE}_{parent}_01"),
            "\u{e9}".repeat(40),
        ] {
            assert_eq!(read(&field), None, "{field}");
        }
    }
}
