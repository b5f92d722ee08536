//! [`is_bots_name`] tells whether a name in a line is a crawler's. The module `indexing` does not
//! import the registry of crawlers, so the list is repeated here; a test compares the two.

/// Product tokens that do not say by themselves that they are a crawler's, in lower case, one a
/// line.
const KNOWN: &str = include_str!("names.txt");

/// Whether a name is that of a crawler, without regard to case: it contains `bot`, `spider` or
/// `crawler`, or it is in the list of known names.
pub fn is_bots_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    ["bot", "spider", "crawler"]
        .iter()
        .any(|part| lower.contains(part))
        || KNOWN.lines().any(|known| known == lower)
}

/// The names that are known.
#[cfg(test)]
pub fn names_known() -> impl Iterator<Item = &'static str> {
    KNOWN.lines()
}
