//! The names on a User-agent line. [`names_on_one_line`] finds lines with several names, of which crawlers read only
//! the first. The lints and the import use it.

use super::decode::is_token;
use crate::crawlers::Registry;

/// The names of a line that has more than one: a list (`Googlebot, Bingbot`), or words that are all known tokens
/// (`Googlebot Bingbot`). Other words behind a token are versions and comments.
pub fn names_on_one_line<'v>(value: &'v str, registry: &Registry) -> Option<Vec<&'v str>> {
    let is_known = |name: &str| name == "*" || registry.has_token(name);
    if is_known(value) {
        return None;
    }
    let list: Vec<&str> = value.split([',', ';']).map(str::trim).filter(|name| !name.is_empty()).collect();
    let words: Vec<&str> = value.split_whitespace().collect();
    let is_list = list.len() > 1
        && list.iter().all(|name| is_known(name) || (is_token(name) && !name.contains(' ')))
        && list.iter().any(|name| is_known(name));
    if is_list {
        return Some(list);
    }
    (words.len() > 1 && words.iter().all(|word| is_known(word))).then_some(words)
}
