//! [`closed`]: how much of a site the rules for a crawler close. The checks of files and policies
//! and the running gate all ask it.

use super::{Pattern, Rule};

/// How much of a site is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The front page.
    FrontPage,
    /// All but what some rules allow.
    AllButAllowed,
    /// Everything, but perhaps files for machines, which no search engine lists.
    Whole,
}

/// A site that is closed, or its front page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// How much of it.
    pub extent: Extent,
    /// The index of the rule that closes it.
    pub rule: usize,
}

/// More Allow rules than these are not looked at one by one: then one of them is taken to open
/// something.
const MAX_ALLOWS: usize = 1_000;

/// The place of the strongest of the rules whose patterns are `asked` for, if it allows as wanted.
fn deciding<R: AsRef<Rule>>(
    rules: &[R],
    asked: impl Fn(&Pattern) -> bool,
    allow: bool,
) -> Option<usize> {
    let (place, strongest) = rules
        .iter()
        .map(AsRef::as_ref)
        .enumerate()
        .filter(|(_, rule)| asked(&rule.pattern))
        .max_by_key(|(_, rule)| (rule.pattern.priority(), rule.allow))?;
    (strongest.allow == allow).then_some(place)
}

/// What the rules of a group close, and the rule that does. A Disallow of everything closes the
/// whole site, or all but what an Allow opens (files for machines do not count); else a rule may
/// close the front page. `None` if neither is the case. Beyond 1,000 Allow rules one is taken to
/// open something.
pub fn closed<R: AsRef<Rule>>(rules: &[R]) -> Option<Closed> {
    let Some(rule) = deciding(rules, Pattern::is_blanket, false) else {
        let rule = deciding(rules, |pattern| pattern.matches(b"/"), false)?;
        return Some(Closed {
            extent: Extent::FrontPage,
            rule,
        });
    };
    let mut allows = rules
        .iter()
        .map(AsRef::as_ref)
        .filter(|rule| rule.allow && !rule.pattern.is_empty() && !is_for_machines(&rule.pattern));
    let is_open = allows.by_ref().take(MAX_ALLOWS).any(|rule| {
        let target = rule.pattern.as_target();
        deciding(rules, |pattern| pattern.matches(&target), true).is_some()
    }) || allows.next().is_some();
    Some(Closed {
        extent: if is_open {
            Extent::AllButAllowed
        } else {
            Extent::Whole
        },
        rule,
    })
}

/// Whether a pattern is about files that no search engine lists: sites that are closed leave them
/// open.
fn is_for_machines(pattern: &Pattern) -> bool {
    const FILES: [&str; 7] = [
        "/robots.txt",
        "/ads.txt",
        "/app-ads.txt",
        "/security.txt",
        "/favicon.ico",
        "/.well-known",
        "/apple-app-site-association",
    ];
    let path = pattern.as_str().trim_end_matches(['$', '*']);
    let is_sitemap =
        path.starts_with("/sitemap") && (path.ends_with(".xml") || path.ends_with(".xml.gz"));
    is_sitemap || FILES.contains(&path) || path.starts_with("/.well-known/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Option<(Extent, usize)> {
        let rule = |line: &&str| {
            let (key, path) = line.split_once(' ').expect("a rule");
            Rule {
                allow: key == "Allow",
                pattern: Pattern::from_bytes(path.as_bytes()),
            }
        };
        let rules: Vec<Rule> = lines.iter().map(rule).collect();
        closed(&rules).map(|closed| (closed.extent, closed.rule))
    }

    #[test]
    fn blanket_disallow_closes_the_whole_site() {
        for path in ["/", "*", "/*", "/*$", "*$"] {
            assert_eq!(
                of(&[&format!("Disallow {path}")]),
                Some((Extent::Whole, 0)),
                "{path}"
            );
        }
        let machines = [
            "Allow /robots.txt",
            "Allow /.well-known/",
            "Allow /sitemap-1.xml.gz",
            "Disallow /",
        ];
        assert_eq!(of(&machines), Some((Extent::Whole, 3)));
        // Shorter than the Disallow, or of a page that a longer rule closes again: opens nothing.
        assert_eq!(of(&["Allow /", "Disallow /*"]), Some((Extent::Whole, 1)));
        assert_eq!(
            of(&["Disallow /", "Allow /a", "Disallow /a*"]),
            Some((Extent::Whole, 0))
        );
    }

    #[test]
    fn allowed_part_leaves_a_site_partly_open() {
        for allow in ["/blog/", "/$", "/a", "/*.html", "/sitemap"] {
            let rules = ["Disallow /", &format!("Allow {allow}")];
            assert_eq!(of(&rules), Some((Extent::AllButAllowed, 0)), "{allow}");
        }
        assert_eq!(
            of(&["Disallow *", "Allow /a"]),
            Some((Extent::AllButAllowed, 0))
        );
        let mut many = vec!["Disallow /"; MAX_ALLOWS];
        many.extend(vec!["Allow /a"; MAX_ALLOWS + 1]);
        many.push("Disallow /a*");
        assert_eq!(
            of(&many).map(|(extent, _)| extent),
            Some(Extent::AllButAllowed)
        );
        many.pop();
        many.truncate(2 * MAX_ALLOWS);
        many.push("Disallow /a*");
        assert_eq!(of(&many).map(|(extent, _)| extent), Some(Extent::Whole));
    }

    #[test]
    fn front_page_alone_is_closed_by_rules_that_match_it_alone() {
        assert_eq!(of(&["Disallow /$"]), Some((Extent::FrontPage, 0)));
        assert_eq!(
            of(&["Disallow /*/", "Disallow /$"]),
            Some((Extent::FrontPage, 1))
        );
    }

    #[test]
    fn open_front_page_is_not_closed() {
        for rules in [
            &[][..],
            &["Disallow "],
            &["Disallow /", "Allow /"],
            &["Disallow /", "Allow /*"],
            &["Disallow /a", "Disallow /*/"],
            &["Disallow /$", "Allow /$"],
            &["Disallow /?*"],
        ] {
            assert_eq!(of(rules), None, "{rules:?}");
        }
    }
}
