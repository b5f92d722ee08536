//! [`names_on_one_line`] tells whether a User-agent line of a robots.txt has several names, and
//! returns them. Crawlers read only the first of them, so the lints and the import report such a
//! line.

use super::decode::is_token;
use crate::crawlers::Registry;

/// The names of a line that has more than one: a list (`Googlebot, Bingbot`), or words that are all
/// known tokens (`Googlebot Bingbot`). Other words behind a token are versions and comments.
pub fn names_on_one_line<'v>(value: &'v str, registry: &Registry) -> Option<Vec<&'v str>> {
    let is_known = |name: &str| name == "*" || registry.has_token(name);
    if is_known(value) {
        return None;
    }
    let list: Vec<&str> = value
        .split([',', ';'])
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    let words: Vec<&str> = value.split_whitespace().collect();
    let is_list = list.len() > 1
        && list
            .iter()
            .all(|name| is_known(name) || (is_token(name) && !name.contains(' ')))
        && list.iter().any(|name| is_known(name));
    if is_list {
        return Some(list);
    }
    (words.len() > 1 && words.iter().all(|word| is_known(word))).then_some(words)
}
