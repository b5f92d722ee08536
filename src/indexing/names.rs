//! [`is_bot_name`] says whether a name in an X-Robots-Tag line is the name of a crawler.
//! `names.txt` repeats names of the registry (the table of known crawlers), because `indexing` does
//! not import the registry. A test compares the two.

/// Product tokens without `bot`, `spider` or `crawler`, in lower case, one a line.
const KNOWN_NAMES: &str = include_str!("names.txt");

/// Whether a name is a crawler's, without regard to case: it contains `bot`, `spider` or `crawler`,
/// or is in the list.
pub fn is_bot_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    ["bot", "spider", "crawler"]
        .iter()
        .any(|part| lower.contains(part))
        || KNOWN_NAMES.lines().any(|known| known == lower)
}

/// The names of the list.
#[cfg(test)]
pub fn known_bot_names() -> impl Iterator<Item = &'static str> {
    KNOWN_NAMES.lines()
}
