//! Tests of loading policies whose rules change at planned times: mistakes in a later rule are
//! found when the policy is loaded, and the tests in a policy run at the moment that they name.

use super::load::{PolicyDependencies, load_site_at};
use crate::crawlers::Registry;
use crate::policy::IncludedFiles;
use crate::policy::origin::OriginRobotsAvailability;
use crate::time::Timestamp;
use crate::yaml::SourceFile;

const RETIRED: &str = r#"
purposes: { training: disallow }
robots: { origin: replace, groups: [{ agents: [Googlebot, Applebot], disallow: /g/ }] }
retire:
  - { paths: [/old/, "/*?v=1"], noindex_from: 2026-11-20, disallow_after: 14d }
  - { paths: /later/, noindex_from: 2027-01-01 }
tests:
  - { agent: Googlebot, path: /old/1, expect: { verdict: allowed, tag: [] } }
  - { agent: Googlebot, path: /old/1, at: 2026-11-20T00:00:00Z, expect: { verdict: allowed, tag: noindex } }
  - { agent: Bingbot, path: "/a?v=1", at: 2026-12-04T00:00:00Z, expect: { verdict: disallowed } }
"#;

#[test]
fn policy_tests_run_at_their_own_moment() {
    for moment in ["2026-01-01", "2026-11-25", "2030-01-01"] {
        let source = SourceFile {
            name: "shop.yaml".into(),
            text: RETIRED.into(),
        };
        let now = Timestamp::parse(moment).expect("a day");
        let alone = PolicyDependencies {
            origin: &OriginRobotsAvailability::Missing,
            files: &IncludedFiles::default(),
        };
        let (site, found) = load_site_at("shop", &source, alone, Registry::builtin(), now);
        assert!(site.is_some(), "{moment}: {found:?}");
    }
}

#[test]
fn retirement_that_closes_the_site_is_rejected_at_once() {
    let text = "robots: { origin: replace }\nretire: { paths: /, noindex_from: 2030-01-01 }\n";
    let ids = |text: &str| {
        let source = SourceFile {
            name: "shop.yaml".into(),
            text: text.into(),
        };
        let now = Timestamp::parse("2026-11-21").expect("a day");
        let alone = PolicyDependencies {
            origin: &OriginRobotsAvailability::Missing,
            files: &IncludedFiles::default(),
        };
        let (site, found) = load_site_at("shop", &source, alone, Registry::builtin(), now);
        (
            site.is_some(),
            found.items.iter().map(|item| item.id).collect::<Vec<_>>(),
        )
    };
    let (usable, found) = ids(text);
    assert!(
        !usable && found.contains(&"site-disallowed") && found.contains(&"site-noindex"),
        "{found:?}"
    );
    let (usable, found) = ids(&format!(
        "acknowledge: [site_disallowed, site_noindex]\n{text}"
    ));
    assert!(usable, "{found:?}");
}
