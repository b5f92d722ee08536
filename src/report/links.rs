//! Links between the pages of the dashboard, and places in files as people say them ([`line`]).

/// A link to a line of a policy.
pub struct LineLink {
    /// Where it leads.
    pub href: String,
    /// The file and the line.
    pub name: String,
}

/// A link to the page of a site.
pub fn site_link(name: &str) -> String {
    format!("/site?{}", query(&[("name", name)]))
}

/// A link to the page of a crawler.
pub fn crawler_link(id: &str) -> String {
    format!("/crawler?{}", query(&[("id", id)]))
}

/// A link to the page of violations with these values in the query. Empty values select all.
pub fn samples_link(given: &[(&str, &str)]) -> String {
    format!("/violations?{}", query(given))
}

/// The pairs as the query of a URL, without those that have an empty value.
fn query(given: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(given.iter().filter(|(_, value)| !value.is_empty()));
    query.finish()
}

/// A link to the line that `file:line:column` names, on the page of its site. `None` if the text
/// does not end with a line and a column: only places in a policy have both.
pub fn policy_line(site: &str, source: &str) -> Option<LineLink> {
    let mut parts = source.rsplitn(3, ':');
    let _column = parts.next()?.parse::<u32>().ok()?;
    let line = parts.next()?.parse::<u32>().ok()?;
    Some(LineLink {
        href: format!("{}#line-{line}", site_link(site)),
        name: format!("{} line {line}", parts.next()?),
    })
}

/// Places as people say them: `shop.yaml line 7` for `shop.yaml:7:18` and for `shop.yaml:7`. Others
/// stay. Several are separated by commas.
pub fn line(places: &str) -> String {
    let places: Vec<String> = places.split(", ").map(line_of_one).collect();
    places.join(", ")
}

fn line_of_one(place: &str) -> String {
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
    use super::{line, policy_line};

    #[test]
    fn only_places_in_a_policy_are_links_to_a_line() {
        let link = policy_line("shop", "policies/shop.yaml:7:18").expect("a link");
        assert_eq!(link.href, "/site?name=shop#line-7");
        for place in [
            "robots.txt:7",
            "shop.yaml (environment: staging)",
            "the origin",
            "",
        ] {
            assert!(policy_line("shop", place).is_none(), "{place}");
        }
        assert_eq!(
            line("old.txt:2, shop.yaml:7:18, the origin"),
            "old.txt line 2, shop.yaml line 7, the origin"
        );
    }
}
