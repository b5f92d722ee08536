//! Requests of a case judged again, by the robots.txt files in it alone. The main type is [`RobotsFiles`]. Must not know where the
//! files come from.

use super::canonical::Hash;
use super::entry::Entry;
use crate::robots::{Bound, Dialect, File, Reading};
use std::collections::BTreeMap;

/// From so many octets on a target was cut off when it was recorded.
const CUT_TARGET: usize = 2048;

/// What the robots.txt files say of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejudged {
    /// Each version that the crawler may have had disallows it.
    Disallowed,
    /// These versions allow it, or do not bind the crawler.
    Allowed(Vec<Hash>),
    /// Nothing can be judged, for this reason.
    Unjudged(&'static str),
}

/// The robots.txt files of a case.
pub struct RobotsFiles(BTreeMap<Hash, Vec<u8>>);

impl RobotsFiles {
    /// These.
    pub fn new(files: BTreeMap<Hash, Vec<u8>>) -> RobotsFiles {
        RobotsFiles(files)
    }

    /// Whether there is such a file.
    pub fn has(&self, hash: Hash) -> bool {
        self.0.contains_key(&hash)
    }

    /// Judges a request by these versions. `target` is `None` where it was withdrawn.
    pub fn judge(&self, request: &Entry, target: Option<&str>, versions: &[Hash]) -> Rejudged {
        let Some(target) = target else { return Rejudged::Unjudged("the target was withdrawn") };
        if target.len() >= CUT_TARGET {
            return Rejudged::Unjudged("only the beginning of the target was recorded");
        }
        let (tokens, binds) = (request.texts("tokens"), request.text("binds").unwrap_or_default());
        let mut allowed = Vec::new();
        for version in versions {
            let Some(bytes) = self.0.get(version) else {
                return Rejudged::Unjudged("a robots.txt is not in the case");
            };
            if allows(bytes, &tokens, binds, target) {
                allowed.push(*version);
            }
        }
        if allowed.is_empty() { Rejudged::Disallowed } else { Rejudged::Allowed(allowed) }
    }
}

/// Whether a robots.txt lets a crawler of these names fetch the target. The crawler obeys the first name that has a group.
fn allows(robots_txt: &[u8], tokens: &[&str], binds: &str, target: &str) -> bool {
    let spaced: Vec<&str> = tokens.iter().copied().filter(|token| token.contains(' ')).collect();
    let reading = Reading::new(&File::parse(robots_txt), Dialect::Rfc9309, &spaced);
    let named = tokens.iter().find(|token| reading.binding(token.as_bytes()).0 == Bound::Named);
    match named {
        Some(token) => reading.verdict(token.as_bytes(), target.as_bytes()).allowed,
        // The empty token is that of `*`.
        None if matches!(binds, "star" | "unknown") => reading.verdict(b"", target.as_bytes()).allowed,
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::allows;

    #[test]
    fn the_first_name_with_a_group_is_obeyed() {
        let file = b"User-agent: *\nDisallow: /\n\nUser-agent: GPTBot\nDisallow: /private/\n";
        assert!(allows(file, &["GPTBot", "gptbot"], "star", "/a"));
        assert!(!allows(file, &["GPTBot"], "star", "/private/a?b"));
        assert!(!allows(file, &["OtherBot"], "unknown", "/a"));
        assert!(allows(file, &["OtherBot"], "named", "/a"));
    }
}
