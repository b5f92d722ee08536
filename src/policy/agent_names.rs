//! [`names_on_one_line`] tells whether a User-agent line of a robots.txt has several names, and
//! returns them. Crawlers read only the first of them, so the lints and the import report such a
//! line.

use super::decode::is_token;
use crate::crawlers::Registry;

/// The names of a line that has more than one: a list with `,` or `;` (`Googlebot, Bingbot`) of
/// which each is a possible token and one is known, or words that are all known tokens (`Googlebot
/// Bingbot`). Other words behind a token are versions and comments. `None` for one name, and where
/// the whole value is a known token.
pub fn names_on_one_line<'v>(value: &'v str, registry: &Registry) -> Option<Vec<&'v str>> {
    if is_known(value, registry) {
        return None;
    }
    let list: Vec<&str> = value
        .split([',', ';'])
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    let is_list = list.len() > 1
        && list
            .iter()
            .all(|name| is_known(name, registry) || (is_token(name) && !name.contains(' ')))
        && list.iter().any(|name| is_known(name, registry));
    if is_list {
        return Some(list);
    }
    let words: Vec<&str> = value.split_whitespace().collect();
    (words.len() > 1 && words.iter().all(|word| is_known(word, registry))).then_some(words)
}

fn is_known(name: &str, registry: &Registry) -> bool {
    name == "*" || registry.has_token(name)
}
