//! [`field_name`] converts the name of a field into that of `http`, and remembers it. Origins send
//! the same few names in each response, and parsing one takes three times as long as finding it
//! again.

use http::HeaderName;
use smallvec::SmallVec;
use std::cell::RefCell;

/// Names that a worker remembers. A new one takes the place of another.
const REMEMBERED: usize = 64;
/// Octets of a name that is remembered.
const LONGEST: usize = 32;

struct Known {
    written: SmallVec<[u8; LONGEST]>,
    name: HeaderName,
}

thread_local! {
    static KNOWN: RefCell<[Option<Known>; REMEMBERED]> = const { RefCell::new([const { None }; REMEMBERED]) };
}

/// The name of a field with this spelling; `None` if no field may have it.
pub(super) fn field_name(written: &str) -> Option<HeaderName> {
    let octets = written.as_bytes();
    let read = || HeaderName::from_bytes(octets).ok();
    if octets.len() > LONGEST {
        return read();
    }
    KNOWN.with_borrow_mut(|known| {
        let known = &mut known[place(octets)];
        if let Some(known) = known
            .as_ref()
            .filter(|known| known.written.as_slice() == octets)
        {
            return Some(known.name.clone());
        }
        let name = read()?;
        *known = Some(Known {
            written: SmallVec::from_slice(octets),
            name: name.clone(),
        });
        Some(name)
    })
}

/// The place where a name is remembered. The usual names have places of their own.
fn place(octets: &[u8]) -> usize {
    let at = |place: usize| octets.get(place).map_or(0, |octet| usize::from(*octet));
    (octets.len() + at(0) + 12 * at(octets.len() / 2) + at(octets.len().saturating_sub(2)))
        % REMEMBERED
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// The fields of responses that most origins send.
    const USUAL: [&str; 24] = [
        "Accept-Ranges",
        "Age",
        "Allow",
        "Alt-Svc",
        "Cache-Control",
        "Content-Encoding",
        "Content-Language",
        "Content-Length",
        "Content-Type",
        "Date",
        "ETag",
        "Expires",
        "Last-Modified",
        "Link",
        "Location",
        "Server",
        "Set-Cookie",
        "Strict-Transport-Security",
        "Vary",
        "Via",
        "X-Content-Type-Options",
        "X-Frame-Options",
        "X-Powered-By",
        "X-Robots-Tag",
    ];

    #[test]
    fn name_is_the_one_that_was_written_whatever_was_before() {
        let of_one_place = (0..20_000)
            .map(|number| format!("X-{number}"))
            .filter(|name| place(name.as_bytes()) == 7);
        let names: Vec<String> = USUAL
            .iter()
            .map(ToString::to_string)
            .chain(of_one_place.take(50))
            .collect();
        for name in names.iter().chain(names.iter().rev()).chain(&names) {
            for written in [
                name.clone(),
                name.to_ascii_lowercase(),
                name.to_ascii_uppercase(),
            ] {
                assert_eq!(
                    field_name(&written).as_ref().map(HeaderName::as_str),
                    Some(&*name.to_ascii_lowercase())
                );
            }
        }
        for longer in [LONGEST, LONGEST + 1, 200] {
            let name = "a".repeat(longer);
            assert_eq!(
                field_name(&name).as_ref().map(HeaderName::as_str),
                Some(name.as_str())
            );
        }
        for wrong in ["", "a b", "a:", "\u{e4}"] {
            assert_eq!(
                (field_name(wrong), field_name(wrong)),
                (None, None),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn usual_names_have_places_of_their_own() {
        let lower = USUAL.map(str::to_ascii_lowercase);
        for names in [USUAL, lower.each_ref().map(String::as_str)] {
            let places: HashSet<usize> = names.iter().map(|name| place(name.as_bytes())).collect();
            assert_eq!(places.len(), names.len());
        }
    }
}
