//! [`names_on_one_line`] finds User-agent lines of a robots.txt that name several crawlers.
//! Crawlers read only the first name, so the lints and the import report such lines.

use super::decode::is_token;
use crate::crawlers::Registry;

/// The names in the value of a User-agent line that has more than one: a list with `,` or `;` of
/// possible tokens (`Googlebot, Bingbot`), or words that are all known tokens (`Googlebot Bingbot`). Other words after a token are versions and comments. `None` for
/// one name.
pub fn names_on_one_line<'v>(value: &'v str, registry: &Registry) -> Option<Vec<&'v str>> {
    if is_known_agent(value, registry) {
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
            .all(|name| is_known_agent(name, registry) || (is_token(name) && !name.contains(' ')));
    if is_list {
        return Some(list);
    }
    let words: Vec<&str> = value.split_whitespace().collect();
    (words.len() > 1 && words.iter().all(|word| is_known_agent(word, registry))).then_some(words)
}

fn is_known_agent(name: &str, registry: &Registry) -> bool {
    name == "*" || registry.has_token(name)
}
