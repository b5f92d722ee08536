//! Lints of the selectors of `html`: what they say of a tree is said of tags as they are written.

use super::catalogue as lints;
use crate::policy::site::Site;
use crate::yaml::Diagnostics;

pub fn lint(site: &Site, diagnostics: &mut Diagnostics) {
    let html = &site.policy.html;
    for selector in html.links.iter().flat_map(|links| &links.select).chain(&html.nosnippet) {
        let Some(part) = of_the_tree(&selector.value) else { continue };
        diagnostics.push(
            lints::SELECTOR_OF_THE_TREE
                .at(selector.span, format!("`{part}` is held against the tags as they are written, not against the tree of a browser"))
                .help("where pages leave tags out (`</li>`, `</p>`, `<tbody>`, `<body>`) it selects others than a browser would; a class on the elements themselves does not"),
        );
    }
}

/// Elements that are in every browser's tree, whether their tags are written or not.
const MADE_BY_BROWSERS: [&str; 5] = ["html", "head", "body", "tbody", "colgroup"];

/// The part of a selector that asks for the place of an element among others.
fn of_the_tree(selector: &str) -> Option<&str> {
    let octets = selector.as_bytes();
    let mut place = 0;
    while let Some(&octet) = octets.get(place) {
        let start = place;
        place += match octet {
            b'>' => return Some(">"),
            b'\\' => 2,
            b'[' => attribute(&octets[place..]),
            _ => 1,
        };
        if !is_of_name(octet) {
            continue;
        }
        place += octets[place..].iter().take_while(|octet| is_of_name(**octet)).count();
        // A name ends at an octet of ASCII, or where the text does.
        let name = selector.get(start..place)?;
        let before = start.checked_sub(1).map(|before| octets[before]);
        let is_place = |name: &str| name.starts_with("nth-") || name.starts_with("first-");
        let is_made = MADE_BY_BROWSERS.iter().any(|made| made.eq_ignore_ascii_case(name));
        match before {
            Some(b':') if is_place(&name.to_ascii_lowercase()) => return selector.get(start - 1..place),
            Some(b':' | b'.' | b'#' | b'\\') => {}
            _ if is_made => return Some(name),
            _ => {}
        }
    }
    None
}

fn is_of_name(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || octet == b'-' || octet == b'_' || !octet.is_ascii()
}

/// How long `[...]` is: a bracket in quotes does not end it.
fn attribute(octets: &[u8]) -> usize {
    let mut quote = None;
    let end = octets.iter().position(|octet| match (quote, octet) {
        (None, b'"' | b'\'') => {
            quote = Some(*octet);
            false
        }
        (Some(open), octet) => {
            if open == *octet {
                quote = None;
            }
            false
        }
        (None, octet) => *octet == b']',
    });
    end.map_or(octets.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::of_the_tree;

    #[test]
    fn what_asks_for_a_place_is_told_from_what_does_not() {
        for (selector, part) in [
            ("ul > li", ">"),
            ("ul>li", ">"),
            ("li:nth-child(2) a", ":nth-child"),
            ("a:not(li:First-Child)", ":First-Child"),
            ("tbody a", "tbody"),
            ("a, BODY .x", "BODY"),
            ("table[title=\"]\"] tbody", "tbody"),
        ] {
            assert_eq!(of_the_tree(selector), Some(part), "{selector}");
        }
        for selector in [
            ".comments a",
            "#body a.tbody",
            "a[href^='x>y']:not([href*=\"tbody\"])",
            "a[title=\"] > b\"]",
            "table-body",
            ".a\\>b",
            "é-body .x",
            "a[href",
            "",
            "\\",
        ] {
            assert_eq!(of_the_tree(selector), None, "{selector}");
        }
    }
}
