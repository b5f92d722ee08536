//! [`RobotsFiles`] judges the requests of a case again, by the robots.txt files in the case alone.

use super::{Entry, Hash};
use crate::robots::{Bound, Dialect, File, Reading};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// A target of so many octets was cut off when it was recorded.
const CUT_TARGET: usize = 2048;
/// Readings that are kept.
const MOST_READ: usize = 256;

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

/// Files that were read, by their hash and the names of the crawler that have a blank.
type Readings = HashMap<(Hash, Vec<String>), Rc<Reading>>;

/// The robots.txt files of a case.
pub struct RobotsFiles {
    files: BTreeMap<Hash, Vec<u8>>,
    /// The latest that were read: a case has one crawler.
    read: RefCell<Readings>,
}

impl RobotsFiles {
    /// From the files by their hash.
    pub fn new(files: BTreeMap<Hash, Vec<u8>>) -> RobotsFiles {
        RobotsFiles { files, read: RefCell::default() }
    }

    /// Whether there is such a file.
    pub fn has(&self, hash: Hash) -> bool {
        self.files.contains_key(&hash)
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
            let Some(reading) = self.read(*version, &tokens) else {
                return Rejudged::Unjudged("a robots.txt is not in the case");
            };
            if allows(&reading, &tokens, binds, target) {
                allowed.push(*version);
            }
        }
        if allowed.is_empty() { Rejudged::Disallowed } else { Rejudged::Allowed(allowed) }
    }

    /// A robots.txt, read for a crawler of these names.
    fn read(&self, version: Hash, tokens: &[&str]) -> Option<Rc<Reading>> {
        let bytes = self.files.get(&version)?;
        let spaced: Vec<&str> = tokens.iter().filter(|token| token.contains(' ')).copied().collect();
        let key = (version, spaced.iter().map(ToString::to_string).collect());
        let mut read = self.read.borrow_mut();
        if read.len() >= MOST_READ {
            read.clear();
        }
        let reading = || Rc::new(Reading::new(&File::parse(bytes.as_slice()), Dialect::Rfc9309, &spaced));
        Some(read.entry(key).or_insert_with(reading).clone())
    }
}

/// Whether a robots.txt lets a crawler of these names fetch the target. The crawler obeys the first name that has a group.
fn allows(reading: &Reading, tokens: &[&str], binds: &str, target: &str) -> bool {
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
    use super::*;

    #[test]
    fn the_first_name_with_a_group_is_obeyed() {
        let file = b"User-agent: *\nDisallow: /\n\nUser-agent: GPTBot\nDisallow: /private/\n";
        let reading = Reading::new(&File::parse(file.as_slice()), Dialect::Rfc9309, &[]);
        let allows = |tokens: &[&str], binds, target| super::allows(&reading, tokens, binds, target);
        assert!(allows(&["GPTBot", "gptbot"], "star", "/a"));
        assert!(!allows(&["GPTBot"], "star", "/private/a?b"));
        assert!(!allows(&["OtherBot"], "unknown", "/a"));
        assert!(allows(&["OtherBot"], "named", "/a"));
    }
}
