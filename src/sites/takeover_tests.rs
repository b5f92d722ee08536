//! Tests of a site that gets the hosts of another site. The site takes over the history of what
//! these hosts published, and the copy of the origin's robots.txt.

use super::*;
use crate::policy::origin::{OriginRobotsAvailability, OriginRobotsTxt};
use std::fs;
use std::path::Path;

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
        for (name, text) in files {
            fs::write(
                directory
                    .path()
                    .join("policies")
                    .join(format!("{name}.yaml")),
                text,
            )
            .expect("a policy");
        }
        let manager = start_manager(directory.path(), InitialOriginRobots::default(), 0);
        RestartedSites {
            directory,
            manager: Some(manager),
        }
    }

    fn write_policy(&self, name: &str, text: &str) -> &RestartedSites {
        fs::write(
            self.directory
                .path()
                .join("policies")
                .join(format!("{name}.yaml")),
            text,
        )
        .expect("a policy");
        self
    }

    fn remove(&self, name: &str) -> &RestartedSites {
        fs::remove_file(
            self.directory
                .path()
                .join("policies")
                .join(format!("{name}.yaml")),
        )
        .expect("removed");
        self
    }

    /// Deletes the file of a site, and ends its policy.
    fn end(&self, name: &str, now: i64) -> &RestartedSites {
        self.remove(name)
            .manager()
            .remove(&[name.to_owned()], Timestamp(now))
            .expect("ended");
        self
    }

    /// Reads the directory again; or, `cold`, starts another crawlgate.
    fn restart(&mut self, cold: bool, now: i64) {
        self.restart_with_origins(InitialOriginRobots::default(), cold, now);
    }

    fn restart_with_origins(&mut self, origins: InitialOriginRobots, cold: bool, now: i64) {
        if cold {
            // One process owns the state directory.
            self.manager = None;
            self.manager = Some(start_manager(self.directory.path(), origins, now));
        } else {
            self.manager().reload(Timestamp(now));
        }
    }

    fn manager(&self) -> &SiteManager {
        self.manager.as_ref().expect("started")
    }

    /// What a crawler may have been given on a host besides what is in force: the rules of each
    /// version.
    fn cached_rules(&self, host: &str) -> Vec<String> {
        let snapshot = self.manager().snapshot();
        let (site, history) = snapshot
            .site_and_history(host.as_bytes())
            .expect("a site for this host");
        assert_eq!(
            Some(site),
            snapshot.site_for_host(host.as_bytes()),
            "{host}"
        );
        assert!(
            std::ptr::eq(history, snapshot.history(host.as_bytes())),
            "{host}"
        );
        let rules = |body: &[u8]| {
            let text = String::from_utf8_lossy(body);
            let rules = text
                .lines()
                .filter_map(|line| line.strip_prefix("Disallow: "));
            rules.collect::<Vec<_>>().join(" ")
        };
        snapshot
            .history(host.as_bytes())
            .superseded
            .iter()
            .map(|held| rules(&held.parsed.body))
            .collect()
    }

    fn published(&self, host: &str, now: i64) -> Option<String> {
        let snapshot = self.manager().snapshot();
        let file = &snapshot.sites()[snapshot.site_for_host(host.as_bytes())?]
            .site
            .robots_txt;
        file.origin_wait_seconds(Timestamp(now))
            .is_none()
            .then(|| String::from_utf8_lossy(&file.body).into_owned())
    }
}

fn start_manager(directory: &Path, origins: InitialOriginRobots, now: i64) -> Arc<SiteManager> {
    let options = SiteLoadOptions {
        policies: directory.join("policies"),
        origins,
        ..SiteLoadOptions::default()
    };
    super::tests::start_with_options(options, Some(&directory.join("state")), now)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn policy_text(hosts: &str, rule: &str) -> String {
    let hosts = if hosts.is_empty() {
        String::new()
    } else {
        format!("hosts: [{hosts}]\n")
    };
    format!(
        "{hosts}robots: {{ origin: replace, groups: [{{ agents: \"*\", disallow: [{rule}] }}] }}\n"
    )
}

fn origin_copy(site: &str, rule: &str) -> (String, OriginRobotsAvailability) {
    let text = format!("User-agent: *\nDisallow: {rule}\n");
    let file = OriginRobotsTxt::new("http://127.0.0.1:3000/robots.txt", text.into_bytes());
    (
        site.to_owned(),
        OriginRobotsAvailability::Available(Arc::new(file)),
    )
}

#[test]
fn site_inherits_the_history_of_its_hosts() {
    for cold in [false, true] {
        // Another file for the same host.
        let mut sites = RestartedSites::start(&[("shop", &policy_text("shop.example", "/a"))]);
        sites
            .remove("shop")
            .write_policy("store", &policy_text("shop.example", "/b"));
        sites.restart(cold, 10);
        assert_eq!(sites.cached_rules("shop.example"), ["/a"], "cold: {cold}");

        // One of many hosts gets a file of its own.
        for wide in ["", "\"*.example\", other.test"] {
            let mut sites = RestartedSites::start(&[("all", &policy_text(wide, "/a"))]);
            sites.write_policy("shop", &policy_text("shop.example", "/b"));
            sites.restart(cold, 10);
            assert_eq!(
                sites.cached_rules("shop.example"),
                ["/a"],
                "{wide:?}, cold: {cold}"
            );
            assert!(
                sites.cached_rules("blog.example").is_empty(),
                "no other host is touched"
            );
            // And goes back among the others.
            sites.end("shop", 20);
            sites.restart(cold, 20);
            assert_eq!(
                sites.cached_rules("shop.example"),
                ["/b"],
                "{wide:?}, cold: {cold}"
            );
        }

        // From one file to another, which has hosts already.
        let mut sites = RestartedSites::start(&[
            ("a", &policy_text("a.test, b.test", "/a")),
            ("c", &policy_text("c.test", "/c")),
        ]);
        sites
            .write_policy("a", &policy_text("a.test", "/a"))
            .write_policy("c", &policy_text("c.test, b.test", "/c"));
        sites.restart(cold, 10);
        assert_eq!(
            (sites.cached_rules("b.test"), sites.cached_rules("a.test")),
            (vec!["/a".to_owned()], vec![]),
            "cold: {cold}"
        );
    }
}

#[test]
fn host_without_a_site_for_a_while_keeps_its_history() {
    for cold in [false, true] {
        let mut sites = RestartedSites::start(&[
            ("shop", &policy_text("shop.example", "/a")),
            ("other", &policy_text("other.example", "/o")),
        ]);
        sites.end("shop", 10);
        sites.restart(cold, 10);
        sites.restart(cold, 20);
        sites.write_policy("store", &policy_text("shop.example", "/b"));
        sites.restart(cold, 30);
        assert_eq!(sites.cached_rules("shop.example"), ["/a"], "cold: {cold}");

        // Not for ever: the longest that a crawler keeps a copy is a week.
        let mut sites = RestartedSites::start(&[
            ("shop", &policy_text("shop.example", "/a")),
            ("other", &policy_text("other.example", "/o")),
        ]);
        sites.end("shop", 10);
        sites.restart(cold, 10);
        sites.restart(cold, 9 * DAY);
        sites.write_policy("store", &policy_text("shop.example", "/b"));
        sites.restart(cold, 9 * DAY + 1);
        assert!(
            sites.cached_rules("shop.example").is_empty(),
            "cold: {cold}"
        );
    }
}

#[test]
fn first_policy_follows_the_default_site() {
    for cold in [false, true] {
        let mut sites = RestartedSites::start(&[]);
        let (site, known) = origin_copy("origin", "/a");
        let OriginRobotsAvailability::Available(file) = &known else {
            unreachable!("a copy")
        };
        sites
            .manager()
            .set_origin_copy(&site, file.clone(), Timestamp(1))
            .expect("passed on");
        sites.write_policy(
            "shop",
            "hosts: shop.example\nrobots: { groups: [{ agents: '*', disallow: /b }] }\n",
        );
        let known = InitialOriginRobots {
            copies: [(site, known)].into(),
            ..InitialOriginRobots::default()
        };
        sites.restart_with_origins(known, cold, 10);
        assert_eq!(sites.cached_rules("shop.example"), ["/a"], "cold: {cold}");
        let published = sites
            .published("shop.example", 10)
            .expect("the copy that was in use goes on");
        assert!(
            published.contains("Disallow: /a\n") && published.contains("Disallow: /b\n"),
            "{published}"
        );
    }
}

#[test]
fn copy_moves_with_its_host() {
    let merged = |hosts: &str| {
        format!("hosts: [{hosts}]\nrobots: {{ groups: [{{ agents: '*', disallow: /b }}] }}\n")
    };
    for cold in [false, true] {
        let mut sites =
            RestartedSites::start(&[("shop", &merged("shop.example, www.shop.example"))]);
        let (site, known) = origin_copy("shop", "/a");
        let OriginRobotsAvailability::Available(file) = &known else {
            unreachable!("a copy")
        };
        sites
            .manager()
            .set_origin_copy(&site, file.clone(), Timestamp(1))
            .expect("merged");
        sites
            .remove("shop")
            .write_policy("store", &merged("www.shop.example"))
            .write_policy("new", &merged("new.example"));
        if !cold {
            sites
                .manager()
                .remove(&["shop".to_owned()], Timestamp(10))
                .expect("its other host has no policy any more");
        }
        let known = InitialOriginRobots {
            copies: [(site, known)].into(),
            ..InitialOriginRobots::default()
        };
        sites.restart_with_origins(known, cold, 10);
        let published = sites
            .published("www.shop.example", 10)
            .expect("the copy that was in use goes on");
        assert!(published.contains("Disallow: /a\n"), "{published}");
        assert_eq!(
            sites.published("new.example", 10),
            None,
            "of a new host nothing is known"
        );
    }
}

#[test]
fn site_with_another_host_leaves_the_copy_behind() {
    let merged = |hosts: &str| {
        format!("hosts: [{hosts}]\nrobots: {{ groups: [{{ agents: '*', disallow: /p }}] }}\n")
    };
    for cold in [false, true] {
        let mut sites = RestartedSites::start(&[("shop", &merged("a.example"))]);
        let (site, known) = origin_copy("shop", "/a");
        let OriginRobotsAvailability::Available(file) = &known else {
            unreachable!("a copy")
        };
        sites
            .manager()
            .set_origin_copy(&site, file.clone(), Timestamp(1))
            .expect("merged");
        sites.write_policy("shop", &merged("b.example"));
        let known = InitialOriginRobots {
            copies: [(site, known)].into(),
            ..InitialOriginRobots::default()
        };
        sites.restart_with_origins(known, cold, 10);
        assert_eq!(
            sites.published("b.example", 10),
            None,
            "the file of a.example says nothing of b.example, cold: {cold}"
        );
    }
}

#[test]
fn copy_stays_without_the_last_policy() {
    let sites = RestartedSites::start(&[(
        "shop",
        "robots: { groups: [{ agents: '*', disallow: /p }] }\n",
    )]);
    let (site, known) = origin_copy("shop", "/a");
    let OriginRobotsAvailability::Available(file) = &known else {
        unreachable!("a copy")
    };
    sites
        .manager()
        .set_origin_copy(&site, file.clone(), Timestamp(1))
        .expect("merged");
    sites.end("shop", 10);
    let published = sites.published("shop.example", 10).expect("no 503");
    assert!(
        published.contains("Disallow: /a\n") && !published.contains("/p"),
        "{published}"
    );
}
