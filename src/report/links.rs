//! Links between the pages of the dashboard, and [`place_words`], which writes a position in a
//! policy file for people: `shop.yaml line 7` for `shop.yaml:7:18`.

use crate::yaml::DEFAULTS;
use std::path::Path;

/// A link to a line of a policy.
pub struct PolicyLineLink {
    /// The URL.
    pub href: String,
    /// The file and the line.
    pub name: String,
}

/// A link to the page of a site.
pub fn site_link(name: &str) -> String {
    format!("/site?{}", encode_query(&[("name", name)]))
}

/// A link to the page of a crawler.
pub fn crawler_link(id: &str) -> String {
    format!("/crawler?{}", encode_query(&[("id", id)]))
}

/// A link to the page of violations with these filters. Empty values select all.
pub fn violations_link(filters: &[(&str, &str)]) -> String {
    format!("/violations?{}", encode_query(filters))
}

/// Encodes pairs as the query of a URL, without empty values.
fn encode_query(pairs: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
    query.finish()
}

/// A link to the line of `file:line:column` on the page of its site. `None` without a line and a
/// column: only places in a policy have both.
pub fn policy_line_link(site: &str, source: &str) -> Option<PolicyLineLink> {
    let mut parts = source.rsplitn(3, ':');
    let _column = parts.next()?.parse::<u32>().ok()?;
    let line = parts.next()?.parse::<u32>().ok()?;
    let file = parts.next()?;
    // The page of the site shows the defaults below its policy.
    let part = if Path::new(file).ends_with(DEFAULTS) {
        "defaults"
    } else {
        "line"
    };
    Some(PolicyLineLink {
        href: format!("{}#{part}-{line}", site_link(site)),
        name: format!("{file} line {line}"),
    })
}

/// Writes places for people: `shop.yaml line 7` for `shop.yaml:7:18` and `shop.yaml:7`. Other texts
/// stay as they are. Several places are separated by commas.
pub fn place_words(places: &str) -> String {
    let places: Vec<String> = places.split(", ").map(one_place_words).collect();
    places.join(", ")
}

fn one_place_words(place: &str) -> String {
    let numbered = |text: &str| {
        let (before, number) = text.rsplit_once(':')?;
        number.parse::<u32>().ok()?;
        Some((before.to_owned(), number.to_owned()))
    };
    let Some((before, last)) = numbered(place) else {
        return place.to_owned();
    };
    let (file, line) = numbered(&before).unwrap_or((before, last));
    format!("{file} line {line}")
}

#[cfg(test)]
mod tests {
    use super::{place_words, policy_line_link};

    #[test]
    fn only_policy_places_have_a_line_link() {
        for (place, part) in [
            ("policies/shop.yaml:7:18", "line-7"),
            ("policies/shop-defaults.yaml:7:18", "line-7"),
            ("policies/defaults.yaml:7:18", "defaults-7"),
        ] {
            let link = policy_line_link("shop", place).expect("a link");
            assert_eq!(link.href, format!("/site?name=shop#{part}"));
        }
        for place in [
            "robots.txt:7",
            "shop.yaml (environment: staging)",
            "the origin",
            "",
        ] {
            assert!(policy_line_link("shop", place).is_none(), "{place}");
        }
        assert_eq!(
            place_words("old.txt:2, shop.yaml:7:18, the origin"),
            "old.txt line 2, shop.yaml line 7, the origin"
        );
    }
}
