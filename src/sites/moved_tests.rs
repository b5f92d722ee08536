//! Tests of hosts that move from one site to another. The X-Robots-Tag rules of such a host count
//! as new. So crawlers are sent whole pages instead of a 304, which would hide the new lines.

use super::*;
use std::fs;
use std::path::PathBuf;

const DAY: i64 = 86_400;

/// A policy directory and a state directory of one crawlgate after another.
struct RestartedSites {
    directory: tempfile::TempDir,
    manager: Option<Arc<SiteManager>>,
}

impl RestartedSites {
    fn start(files: &[(&str, &str)]) -> RestartedSites {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("policies")).expect("a folder");
        let mut sites = RestartedSites {
            directory,
            manager: None,
        };
        files
            .iter()
            .for_each(|(name, text)| sites.write_policy(name, text));
        sites.restart(true, 0);
        sites
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write_policy(&self, name: &str, text: &str) {
        fs::write(self.path("policies").join(format!("{name}.yaml")), text).expect("a policy");
    }

    fn remove_policy(&self, name: &str) {
        fs::remove_file(self.path("policies").join(format!("{name}.yaml"))).expect("removed");
    }

    /// Reads the directory again; or, `cold`, starts another crawlgate.
    fn restart(&mut self, cold: bool, now: i64) {
        if let Some(manager) = self.manager.as_ref().filter(|_| !cold) {
            manager.reload(Timestamp(now));
            return;
        }
        self.manager = None;
        let options = SiteLoadOptions {
            policies: self.path("policies"),
            ..SiteLoadOptions::default()
        };
        let manager = super::tests::start_with_options(options, Some(&self.path("state")), now);
        let manager = manager.unwrap_or_else(|error| panic!("{error}"));
        self.manager = Some(manager);
    }

    fn has_moved(&self, host: &str, now: i64) -> bool {
        let manager = self.manager.as_ref().expect("started");
        manager
            .snapshot()
            .history(host.as_bytes())
            .has_moved_recently(Timestamp(now))
    }
}

fn policy_text(hosts: &str, tag: &str) -> String {
    let hosts = if hosts.is_empty() {
        String::new()
    } else {
        format!("hosts: [{hosts}]\n")
    };
    let rule = if tag.is_empty() {
        String::new()
    } else {
        format!("indexing: [{{ paths: /a, tag: {tag} }}]\n")
    };
    format!("{hosts}robots: {{ origin: replace }}\n{rule}")
}

#[test]
fn host_moves_with_its_closest_pattern() {
    for cold in [false, true] {
        let mut sites = RestartedSites::start(&[
            (
                "shop",
                &policy_text("\"*.shop.example\", shop.example", "noindex"),
            ),
            ("blog", &policy_text("blog.example", "")),
        ]);
        sites.write_policy("shop", &policy_text("shop.example", "noindex"));
        sites.write_policy("blog", &policy_text("blog.example, \"*.shop.example\"", ""));
        sites.restart(cold, 40 * DAY);
        for (host, wanted) in [
            ("a.shop.example", true),
            ("a.b.shop.example", true),
            ("shop.example", false),
        ] {
            assert_eq!(sites.has_moved(host, 40 * DAY), wanted, "{host}");
        }
        // It is the same site's, and what it was told goes by the wildcard.
        sites.write_policy(
            "blog",
            &policy_text("blog.example, \"*.shop.example\", a.shop.example", ""),
        );
        sites.restart(cold, 50 * DAY);
        assert!(
            sites.has_moved("A.Shop.Example:80", 70 * DAY - 1)
                && !sites.has_moved("a.shop.example", 70 * DAY)
        );
        // What moves again is new again, and that alone.
        sites.write_policy("blog", &policy_text("blog.example, \"*.shop.example\"", ""));
        sites.write_policy(
            "shop",
            &policy_text("shop.example, a.shop.example", "noindex"),
        );
        sites.restart(cold, 60 * DAY);
        assert!(
            sites.has_moved("a.shop.example", 90 * DAY - 1)
                && !sites.has_moved("b.shop.example", 70 * DAY)
        );
        assert!(
            !sites.has_moved("blog.example", 60 * DAY)
                && !sites.has_moved("shop.example", 60 * DAY)
        );
    }
}

#[test]
fn moved_port_moves_its_name() {
    let mut sites = RestartedSites::start(&[
        (
            "shop",
            &policy_text("\"shop.example:8443\", shop.example", "noindex"),
        ),
        ("blog", &policy_text("blog.example", "")),
    ]);
    sites.write_policy("shop", &policy_text("shop.example", "noindex"));
    sites.write_policy(
        "blog",
        &policy_text("blog.example, \"shop.example:8443\"", ""),
    );
    sites.restart(false, 40 * DAY);
    assert!(
        sites.has_moved("shop.example:8443", 40 * DAY)
            && !sites.has_moved("blog.example", 40 * DAY)
    );
}

#[test]
fn host_of_a_site_with_recent_tags_counts_as_moved() {
    let mut sites = RestartedSites::start(&[
        ("shop", &policy_text("shop.example", "noindex")),
        ("blog", &policy_text("b.example", "")),
    ]);
    sites.write_policy("shop", &policy_text("shop.example", ""));
    sites.restart(false, 40 * DAY);
    sites.remove_policy("shop");
    sites.write_policy("store", &policy_text("shop.example", ""));
    sites.restart(false, 60 * DAY);
    assert!(
        sites.has_moved("shop.example", 60 * DAY),
        "the rule is gone for twenty days"
    );
    assert!(!sites.has_moved("b.example", 60 * DAY));
}

#[test]
fn retired_path_counts_as_a_page_tag() {
    let retiring = |hosts: &str| {
        format!(
            "hosts: [{hosts}]\nrobots: {{ origin: replace }}\nretire: [{{ paths: /old/, noindex_from: 1970-01-11 }}]\n"
        )
    };
    let mut sites = RestartedSites::start(&[("shop", &retiring("shop.example"))]);
    assert_eq!(
        sites
            .manager
            .as_ref()
            .expect("started")
            .apply_due_changes(Timestamp(10 * DAY)),
        ["shop"]
    );
    sites.remove_policy("shop");
    sites.write_policy("store", &policy_text("shop.example", ""));
    sites.restart(true, 50 * DAY);
    assert!(sites.has_moved("shop.example", 50 * DAY));
}

#[test]
fn lost_state_makes_every_host_count_as_moved() {
    let mut sites = RestartedSites::start(&[("shop", &policy_text("shop.example", ""))]);
    sites.manager = None;
    fs::write(sites.path("state/state.db"), "no database").expect("damaged");
    sites.restart(true, 40 * DAY);
    assert!(
        sites.has_moved("shop.example", 40 * DAY) && sites.has_moved("elsewhere.example", 40 * DAY)
    );
    sites.restart(true, 41 * DAY);
    assert!(
        sites.has_moved("shop.example", 70 * DAY - 1) && !sites.has_moved("shop.example", 70 * DAY)
    );
    let sites = RestartedSites::start(&[("shop", &policy_text("shop.example", "noindex"))]);
    assert!(
        !sites.has_moved("shop.example", 0),
        "at the first start nothing was said"
    );
}
