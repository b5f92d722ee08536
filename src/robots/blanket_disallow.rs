//! [`blanket_disallow`] tells whether the robots.txt rules for a crawler disallow a whole site, or
//! its front page. Site owners seldom want that, so crawlgate warns about such rules. The audit of
//! files, the lints of policies and the running proxy share this function.

use super::{PathPattern, Rule};
use DisallowedPart::*;
use std::ops::Deref;

/// The part of a site that is disallowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisallowedPart {
    /// The front page.
    FrontPage,
    /// Everything except what some rules allow.
    AllButAllowed,
    /// Everything. Files that no search engine lists (favicons, sitemaps) may be allowed.
    Whole,
}

/// A rule that disallows a whole site or its front page.
#[derive(Clone, Copy)]
pub struct BlanketDisallow {
    /// The part that it disallows.
    pub part: DisallowedPart,
    /// The index of the rule.
    pub rule: usize,
}

/// The most Allow rules that are examined. With more, one of them is assumed to allow something.
const MAX_ALLOWS: usize = 1_000;

/// The index of the rule that decides among those whose patterns satisfy `applies`, if its `allow`
/// is the given one.
fn longest_matching_rule<R: Deref<Target = Rule>>(
    rules: &[R],
    applies: impl Fn(&PathPattern) -> bool,
    allow: bool,
) -> Option<usize> {
    let (place, strongest) = rules
        .iter()
        .enumerate()
        .filter(|(_, rule)| applies(&rule.pattern))
        .max_by_key(|(_, rule)| (rule.pattern.priority(), rule.allow))?;
    (strongest.allow == allow).then_some(place)
}

/// The rule of a group that disallows the whole site, or the site except what an Allow allows
/// (files that no search engine lists do not count), or the front page. `None` if there is none.
pub fn blanket_disallow<R: Deref<Target = Rule>>(rules: &[R]) -> Option<BlanketDisallow> {
    let Some(rule) = longest_matching_rule(rules, PathPattern::is_blanket, false) else {
        let rule = longest_matching_rule(rules, |pattern| pattern.matches(b"/"), false)?;
        return Some(BlanketDisallow {
            part: FrontPage,
            rule,
        });
    };
    let mut allows = rules
        .iter()
        .filter(|rule| rule.allow && !rule.pattern.is_empty() && !is_machine_file(&rule.pattern));
    let is_open = allows.by_ref().take(MAX_ALLOWS).any(|rule| {
        let target = rule.pattern.to_wildcard_target();
        longest_matching_rule(rules, |pattern| pattern.matches(&target), true).is_some()
    }) || allows.next().is_some();
    Some(BlanketDisallow {
        part: if is_open { AllButAllowed } else { Whole },
        rule,
    })
}

/// Whether a pattern is for a file that no search engine lists as a page. Sites that disallow
/// everything often allow such files.
fn is_machine_file(pattern: &PathPattern) -> bool {
    const FILES: [&str; 2] = ["/.well-known", "/apple-app-site-association"];
    // A PHP file may be a page; WordPress allows this one by default.
    const ENDINGS: [&str; 20] = [
        "/admin-ajax.php",
        ".css",
        ".gif",
        ".gz",
        ".ico",
        ".jpeg",
        ".jpg",
        ".js",
        ".json",
        ".mjs",
        ".otf",
        ".png",
        ".svg",
        ".ttf",
        ".txt",
        ".webmanifest",
        ".webp",
        ".woff",
        ".woff2",
        ".xml",
    ];
    let path = pattern.as_str().trim_end_matches(['$', '*']);
    let is_one = !path.contains('*') || path.starts_with("/sitemap");
    let is_file = is_one && ENDINGS.iter().any(|ending| path.ends_with(ending));
    is_file || FILES.contains(&path) || path.starts_with("/.well-known/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disallowed_part(lines: &[&str]) -> Option<(DisallowedPart, usize)> {
        let rule = |line: &&str| {
            let (key, path) = line.split_once(' ').expect("a rule");
            Rule {
                allow: key == "Allow",
                pattern: PathPattern::from_bytes(path.as_bytes()),
            }
        };
        let rules: Vec<Rule> = lines.iter().map(rule).collect();
        let rules: Vec<&Rule> = rules.iter().collect();
        blanket_disallow(&rules).map(|closed| (closed.part, closed.rule))
    }

    #[test]
    fn blanket_disallow_covers_the_whole_site() {
        for path in ["/", "*", "/*", "/*$", "*$"] {
            assert_eq!(
                disallowed_part(&[&format!("Disallow {path}")]),
                Some((Whole, 0)),
                "{path}"
            );
        }
        let machines = [
            "Allow /robots.txt",
            "Allow /.well-known/",
            "Allow /sitemap-1.xml.gz",
            "Allow /sitemap*.xml",
            "Allow /shop/wp-admin/admin-ajax.php",
            "Allow /assets/site.css$",
            "Allow /logo.png",
            "Disallow /",
        ];
        assert_eq!(disallowed_part(&machines), Some((Whole, 7)));
        // An Allow that is shorter than the Disallow, or overruled by a longer rule, allows nothing.
        assert_eq!(
            disallowed_part(&["Allow /", "Disallow /*"]),
            Some((Whole, 1))
        );
        assert_eq!(
            disallowed_part(&["Disallow /", "Allow /a", "Disallow /a*"]),
            Some((Whole, 0))
        );
    }

    #[test]
    fn allowed_part_leaves_a_site_partly_open() {
        for allow in [
            "/blog/",
            "/$",
            "/a",
            "/*.html",
            "/a.html",
            "/view.php",
            "/*.css",
            "/sitemap",
        ] {
            let rules = ["Disallow /", &format!("Allow {allow}")];
            assert_eq!(disallowed_part(&rules), Some((AllButAllowed, 0)), "{allow}");
        }
        assert_eq!(
            disallowed_part(&["Disallow *", "Allow /a"]),
            Some((AllButAllowed, 0))
        );
        let mut many = vec!["Disallow /"; MAX_ALLOWS];
        many.extend(vec!["Allow /a"; MAX_ALLOWS + 1]);
        many.push("Disallow /a*");
        assert_eq!(
            disallowed_part(&many).map(|(part, _)| part),
            Some(AllButAllowed)
        );
        many.pop();
        many.truncate(2 * MAX_ALLOWS);
        many.push("Disallow /a*");
        assert_eq!(disallowed_part(&many).map(|(part, _)| part), Some(Whole));
    }

    #[test]
    fn front_page_rule_disallows_front_page_only() {
        assert_eq!(disallowed_part(&["Disallow /$"]), Some((FrontPage, 0)));
        assert_eq!(
            disallowed_part(&["Disallow /*/", "Disallow /$"]),
            Some((FrontPage, 1))
        );
    }

    #[test]
    fn open_front_page_is_no_blanket_disallow() {
        for rules in [
            &[][..],
            &["Disallow "],
            &["Disallow /", "Allow /"],
            &["Disallow /", "Allow /*"],
            &["Disallow /a", "Disallow /*/"],
            &["Disallow /$", "Allow /$"],
            &["Disallow /?*"],
        ] {
            assert_eq!(disallowed_part(rules), None, "{rules:?}");
        }
    }
}
