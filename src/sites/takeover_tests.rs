//! A site that gets the hosts of another one takes over their history, and the copy of the origin's
//! robots.txt.

use super::*;
use crate::policy::origin::{Origin, OriginFile};
use std::fs;
use std::path::Path;

const DAY: i64 = 86_400;

/// A policy directory and a state directory of one crawlgate after another.
struct World {
    directory: tempfile::TempDir,
    live: Option<Arc<SiteManager>>,
}

impl World {
    fn start(files: &[(&str, &str)]) -> World {
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
        let live = start(directory.path(), KnownOrigins::default(), 0);
        World {
            directory,
            live: Some(live),
        }
    }

    fn write(&self, name: &str, text: &str) -> &World {
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

    fn remove(&self, name: &str) -> &World {
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
    fn end(&self, name: &str, now: i64) -> &World {
        self.remove(name)
            .live()
            .remove(&[name.to_owned()], Timestamp(now))
            .expect("ended");
        self
    }

    /// Reads the directory again; or, `cold`, starts another crawlgate.
    fn go_on(&mut self, cold: bool, now: i64) {
        self.go_on_knowing(KnownOrigins::default(), cold, now);
    }

    fn go_on_knowing(&mut self, origins: KnownOrigins, cold: bool, now: i64) {
        if cold {
            // One process owns the state directory.
            self.live = None;
            self.live = Some(start(self.directory.path(), origins, now));
        } else {
            self.live().reload(Timestamp(now));
        }
    }

    fn live(&self) -> &SiteManager {
        self.live.as_ref().expect("started")
    }

    /// What a crawler may have been given on a host besides what is in force: the rules of each
    /// version.
    fn held(&self, host: &str) -> Vec<String> {
        let snapshot = self.live().snapshot();
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
        let snapshot = self.live().snapshot();
        let file = &snapshot.sites()[snapshot.site_for_host(host.as_bytes())?]
            .site
            .robots_txt;
        file.awaits_origin(Timestamp(now))
            .is_none()
            .then(|| String::from_utf8_lossy(&file.body).into_owned())
    }
}

fn start(directory: &Path, origins: KnownOrigins, now: i64) -> Arc<SiteManager> {
    let options = SiteOptions {
        policies: directory.join("policies"),
        strict: false,
        may_be_missing: false,
        origins,
        published_proof: false,
    };
    super::tests::start_with(options, Some(&directory.join("state")), now)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn policy(hosts: &str, rule: &str) -> String {
    let hosts = if hosts.is_empty() {
        String::new()
    } else {
        format!("hosts: [{hosts}]\n")
    };
    format!(
        "{hosts}robots: {{ origin: replace, groups: [{{ agents: \"*\", disallow: [{rule}] }}] }}\n"
    )
}

fn copy(site: &str, rule: &str) -> (String, Origin) {
    let text = format!("User-agent: *\nDisallow: {rule}\n");
    let file = OriginFile::new("http://127.0.0.1:3000/robots.txt", text.into_bytes());
    (site.to_owned(), Origin::Read(Arc::new(file)))
}

#[test]
fn site_inherits_the_history_of_its_hosts() {
    for cold in [false, true] {
        // Another file for the same host.
        let mut world = World::start(&[("shop", &policy("shop.example", "/a"))]);
        world
            .remove("shop")
            .write("store", &policy("shop.example", "/b"));
        world.go_on(cold, 10);
        assert_eq!(world.held("shop.example"), ["/a"], "cold: {cold}");

        // One of many hosts gets a file of its own.
        for wide in ["", "\"*.example\", other.test"] {
            let mut world = World::start(&[("all", &policy(wide, "/a"))]);
            world.write("shop", &policy("shop.example", "/b"));
            world.go_on(cold, 10);
            assert_eq!(world.held("shop.example"), ["/a"], "{wide:?}, cold: {cold}");
            assert!(
                world.held("blog.example").is_empty(),
                "no other host is touched"
            );
            // And goes back among the others.
            world.end("shop", 20);
            world.go_on(cold, 20);
            assert_eq!(world.held("shop.example"), ["/b"], "{wide:?}, cold: {cold}");
        }

        // From one file to another, which has hosts already.
        let mut world = World::start(&[
            ("a", &policy("a.test, b.test", "/a")),
            ("c", &policy("c.test", "/c")),
        ]);
        world
            .write("a", &policy("a.test", "/a"))
            .write("c", &policy("c.test, b.test", "/c"));
        world.go_on(cold, 10);
        assert_eq!(
            (world.held("b.test"), world.held("a.test")),
            (vec!["/a".to_owned()], vec![]),
            "cold: {cold}"
        );
    }
}

#[test]
fn host_without_a_site_for_a_while_keeps_its_history() {
    for cold in [false, true] {
        let mut world = World::start(&[
            ("shop", &policy("shop.example", "/a")),
            ("other", &policy("other.example", "/o")),
        ]);
        world.end("shop", 10);
        world.go_on(cold, 10);
        world.go_on(cold, 20);
        world.write("store", &policy("shop.example", "/b"));
        world.go_on(cold, 30);
        assert_eq!(world.held("shop.example"), ["/a"], "cold: {cold}");

        // Not for ever: the longest that a crawler keeps a copy is a week.
        let mut world = World::start(&[
            ("shop", &policy("shop.example", "/a")),
            ("other", &policy("other.example", "/o")),
        ]);
        world.end("shop", 10);
        world.go_on(cold, 10);
        world.go_on(cold, 9 * DAY);
        world.write("store", &policy("shop.example", "/b"));
        world.go_on(cold, 9 * DAY + 1);
        assert!(world.held("shop.example").is_empty(), "cold: {cold}");
    }
}

#[test]
fn first_policy_follows_the_default_site() {
    for cold in [false, true] {
        let mut world = World::start(&[]);
        let (site, known) = copy("origin", "/a");
        let Origin::Read(file) = &known else {
            unreachable!("a copy")
        };
        world
            .live()
            .origin_says(&site, file.clone(), Timestamp(1))
            .expect("passed on");
        world.write(
            "shop",
            "hosts: shop.example\nrobots: { groups: [{ agents: '*', disallow: /b }] }\n",
        );
        let known = KnownOrigins {
            copies: [(site, known)].into(),
            ..KnownOrigins::default()
        };
        world.go_on_knowing(known, cold, 10);
        assert_eq!(world.held("shop.example"), ["/a"], "cold: {cold}");
        let published = world
            .published("shop.example", 10)
            .expect("the copy that was in use goes on");
        assert!(
            published.contains("Disallow: /a\n") && published.contains("Disallow: /b\n"),
            "{published}"
        );
    }
}

#[test]
fn a_copy_goes_with_its_host() {
    let merged = |hosts: &str| {
        format!("hosts: [{hosts}]\nrobots: {{ groups: [{{ agents: '*', disallow: /b }}] }}\n")
    };
    for cold in [false, true] {
        let mut world = World::start(&[("shop", &merged("shop.example, www.shop.example"))]);
        let (site, known) = copy("shop", "/a");
        let Origin::Read(file) = &known else {
            unreachable!("a copy")
        };
        world
            .live()
            .origin_says(&site, file.clone(), Timestamp(1))
            .expect("merged");
        world
            .remove("shop")
            .write("store", &merged("www.shop.example"))
            .write("new", &merged("new.example"));
        if !cold {
            world
                .live()
                .remove(&["shop".to_owned()], Timestamp(10))
                .expect("its other host has no policy any more");
        }
        let known = KnownOrigins {
            copies: [(site, known)].into(),
            ..KnownOrigins::default()
        };
        world.go_on_knowing(known, cold, 10);
        let published = world
            .published("www.shop.example", 10)
            .expect("the copy that was in use goes on");
        assert!(published.contains("Disallow: /a\n"), "{published}");
        assert_eq!(
            world.published("new.example", 10),
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
        let mut world = World::start(&[("shop", &merged("a.example"))]);
        let (site, known) = copy("shop", "/a");
        let Origin::Read(file) = &known else {
            unreachable!("a copy")
        };
        world
            .live()
            .origin_says(&site, file.clone(), Timestamp(1))
            .expect("merged");
        world.write("shop", &merged("b.example"));
        let known = KnownOrigins {
            copies: [(site, known)].into(),
            ..KnownOrigins::default()
        };
        world.go_on_knowing(known, cold, 10);
        assert_eq!(
            world.published("b.example", 10),
            None,
            "the file of a.example says nothing of b.example, cold: {cold}"
        );
    }
}

#[test]
fn without_the_last_policy_its_copy_goes_on() {
    let world = World::start(&[(
        "shop",
        "robots: { groups: [{ agents: '*', disallow: /p }] }\n",
    )]);
    let (site, known) = copy("shop", "/a");
    let Origin::Read(file) = &known else {
        unreachable!("a copy")
    };
    world
        .live()
        .origin_says(&site, file.clone(), Timestamp(1))
        .expect("merged");
    world.end("shop", 10);
    let published = world.published("shop.example", 10).expect("no 503");
    assert!(
        published.contains("Disallow: /a\n") && !published.contains("/p"),
        "{published}"
    );
}
