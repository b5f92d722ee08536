//! [`read_list`] reads a list of networks that an operator publishes. Operators publish JSON with
//! `prefixes`, JSON of other shapes, plain lines, geofeeds (RFC 8805), or pages with JSON in them.

use super::network::read_network;
use ipnet::IpNet;
use serde_json::Value;

/// The longest list that is read.
pub const MAX_LIST_BYTES: usize = 4 * 1024 * 1024;
/// The most networks of one list.
const MAX_NETWORKS: usize = 100_000;
/// No operator of crawlers has a network that is wider: a list with one would verify everybody.
const WIDEST: (u8, u8) = (8, 19);
/// Characters of a text that an error repeats.
const SHOWN: usize = 60;
/// The keys of the common shape. Their values have to be networks.
const KEYS: [&str; 2] = ["ipv4Prefix", "ipv6Prefix"];

/// The reason why a text is not read as a list of networks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// It is longer than any list.
    #[error("it is longer than {MAX_LIST_BYTES} octets")]
    TooLong,
    /// It is not text in UTF-8.
    #[error("it is not text")]
    NotText,
    /// It begins like JSON, and is not.
    #[error("it is not JSON: {0}")]
    NotJson(String),
    /// Something else stands where a network should.
    #[error("`{0}` is not a network")]
    NotANetwork(String),
    /// A network is so wide that it proves nothing.
    #[error("the network {0} is too wide")]
    TooWide(IpNet),
    /// There are more networks than any operator has.
    #[error("it has more than {MAX_NETWORKS} networks")]
    TooMany,
    /// There is no network in it.
    #[error("it has no network")]
    Empty,
}

/// The networks that a list names.
///
/// # Errors
/// A text that is not a list of networks. A list that is partly wrong is refused whole.
pub fn read_list(bytes: &[u8]) -> Result<Vec<IpNet>, ListError> {
    if bytes.len() > MAX_LIST_BYTES {
        return Err(ListError::TooLong);
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|_| ListError::NotText)?
        .trim_start_matches('\u{feff}')
        .trim();
    let mut networks = Vec::new();
    if text.starts_with(['{', '[']) {
        let value =
            serde_json::from_str(text).map_err(|error| ListError::NotJson(error.to_string()))?;
        in_json(&value, &mut networks)?;
    } else if text.starts_with('<') {
        in_page(text, &mut networks)?;
    } else {
        for line in text.lines() {
            // A geofeed has a place behind the network.
            let line = line.split(['#', ',']).next().unwrap_or_default().trim();
            if !line.is_empty() {
                push(line, &mut networks)?;
            }
        }
    }
    if networks.is_empty() {
        Err(ListError::Empty)
    } else {
        Ok(networks)
    }
}

/// Adds every text in a JSON value that is a network, however deep it stands, and passes over other
/// texts. The values of `KEYS` must be networks. The depth is bounded by the reader of JSON.
fn in_json(value: &Value, networks: &mut Vec<IpNet>) -> Result<(), ListError> {
    match value {
        Value::String(text) if read_network(text).is_some() => push(text, networks),
        Value::Array(items) => items.iter().try_for_each(|item| in_json(item, networks)),
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| match value {
            Value::String(text) if KEYS.contains(&key.as_str()) => push(text, networks),
            _ => in_json(value, networks),
        }),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// Adds the values of `KEYS` that stand in a page of HTML, as in the JSON that it shows.
///
/// # Errors
/// A value is no network, or the page has none of these keys with a value.
fn in_page(page: &str, networks: &mut Vec<IpNet>) -> Result<(), ListError> {
    let page = page
        .replace("&quot;", "\"")
        .replace("&#34;", "\"")
        .replace("\\\"", "\"");
    for key in KEYS {
        for (at, _) in page.match_indices(key) {
            let value = page[at + key.len()..]
                .strip_prefix('"')
                .and_then(|rest| rest.trim_start().strip_prefix(':'));
            if let Some(value) = value.and_then(|rest| rest.trim_start().strip_prefix('"')) {
                push(value.split('"').next().unwrap_or_default(), networks)?;
            }
        }
    }
    if networks.is_empty() {
        let first = page.lines().next().unwrap_or_default();
        return Err(not_a_network(first));
    }
    Ok(())
}

fn not_a_network(text: &str) -> ListError {
    ListError::NotANetwork(text.chars().take(SHOWN).collect())
}

/// Reads a network and adds it.
///
/// # Errors
/// It is no network, is too wide, or is one too many.
fn push(written: &str, networks: &mut Vec<IpNet>) -> Result<(), ListError> {
    let network = read_network(written).ok_or_else(|| not_a_network(written))?;
    let widest = if network.addr().is_ipv4() {
        WIDEST.0
    } else {
        WIDEST.1
    };
    if network.prefix_len() < widest {
        return Err(ListError::TooWide(network));
    }
    if networks.len() == MAX_NETWORKS {
        return Err(ListError::TooMany);
    }
    networks.push(network);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{ListError, MAX_LIST_BYTES, read_list};

    fn read(text: &str) -> Result<Vec<String>, ListError> {
        read_list(text.as_bytes())
            .map(|networks| networks.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_shapes_that_operators_publish_are_read() {
        let common = "\n{\"creationTime\":\"2026-09-22T00:00:00\",\"prefixes\":[{\"ipv4Prefix\":\"192.0.2.0/24\"},\
                      {\"ipv6Prefix\":\"2001:db8::/32\"}]}";
        assert_eq!(read(common).unwrap(), ["192.0.2.0/24", "2001:db8::/32"]);
        assert_eq!(
            read(r#"["192.0.2.7", "198.51.100.0/24"]"#).unwrap(),
            ["192.0.2.7/32", "198.51.100.0/24"]
        );
        assert_eq!(
            read(r#"{"ips": {"eu": [{"ip": "192.0.2.7", "name": "a"}]}, "n": 3}"#).unwrap(),
            ["192.0.2.7/32"]
        );
        let feed =
            "# prefix,country,region,city,\n192.0.2.0/24,US,US-CA,Menlo Park,\n2001:db8::/32,,,,\n";
        assert_eq!(read(feed).unwrap(), ["192.0.2.0/24", "2001:db8::/32"]);
        for quote in ["\"", "&quot;", "&#34;", "\\\""] {
            let page = "<!doctype html>\n<p>Amazonbot comes from <pre>{'prefixes': [{'ipv4Prefix': '192.0.2.7'}, {'ipv6Prefix' \
                        :'2001:db8::/32'}]}</pre> (see ipv4Prefix)";
            assert_eq!(
                read(&page.replace('\'', quote)).unwrap(),
                ["192.0.2.7/32", "2001:db8::/32"],
                "{quote}"
            );
        }
        let lines =
            "\u{feff}# monitors\r\n192.0.2.7\r\n\r\n2001:db8::1 # one\n::ffff:198.51.100.0/120\n";
        assert_eq!(
            read(lines).unwrap(),
            ["192.0.2.7/32", "2001:db8::1/128", "198.51.100.0/24"]
        );
    }

    #[test]
    fn what_is_partly_wrong_is_wrong() {
        let wrong = |text: &str| read(text).expect_err(text);
        assert_eq!(wrong(""), ListError::Empty);
        assert_eq!(wrong("{\"prefixes\": []}"), ListError::Empty);
        assert!(matches!(
            wrong("{\"prefixes\": [{\"ipv4Prefix\": \"192.0.2.0/24\""),
            ListError::NotJson(_)
        ));
        assert!(matches!(
            wrong("{\"prefixes\": [{\"ipv4Prefix\": \"192.0.2\"}]}"),
            ListError::NotANetwork(_)
        ));
        assert!(matches!(
            wrong("<!doctype html>\n192.0.2.1"),
            ListError::NotANetwork(_)
        ));
        assert!(matches!(
            wrong("<p>\"ipv4Prefix\": \"192.0.2\"</p>"),
            ListError::NotANetwork(_)
        ));
        assert!(matches!(
            wrong("192.0.2.1\n0.0.0.0/0"),
            ListError::TooWide(_)
        ));
        assert!(matches!(wrong("[\"2000::/3\"]"), ListError::TooWide(_)));
        assert!(matches!(wrong(&"[".repeat(100_000)), ListError::NotJson(_)));
        assert_eq!(wrong(&" ".repeat(MAX_LIST_BYTES + 1)), ListError::TooLong);
        assert_eq!(read_list(b"\xff\xfe"), Err(ListError::NotText));
    }
}
