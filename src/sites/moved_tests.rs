//! Hosts that move from one site to another: their tags count as new.

use super::*;
use std::fs;
use std::path::PathBuf;

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
        let mut world = World {
            directory,
            live: None,
        };
        files
            .iter()
            .for_each(|(name, text)| world.write(name, text));
        world.go_on(true, 0);
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path("policies").join(format!("{name}.yaml")), text).expect("a policy");
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.path("policies").join(format!("{name}.yaml"))).expect("removed");
    }

    /// Reads the directory again; or, `cold`, starts another crawlgate.
    fn go_on(&mut self, cold: bool, now: i64) {
        if let Some(live) = self.live.as_ref().filter(|_| !cold) {
            live.reload(Timestamp(now));
            return;
        }
        self.live = None;
        let options = SiteOptions {
            policies: self.path("policies"),
            strict: false,
            may_be_missing: false,
            origins: KnownOrigins::default(),
            published_proof: false,
        };
        let live = super::tests::start_with(options, Some(&self.path("state")), now);
        let live = live.unwrap_or_else(|error| panic!("{error}"));
        self.live = Some(live);
    }

    fn moved(&self, host: &str, now: i64) -> bool {
        let live = self.live.as_ref().expect("started");
        live.snapshot()
            .history(host.as_bytes())
            .has_moved_lately(Timestamp(now))
    }
}

fn policy(hosts: &str, tag: &str) -> String {
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
        let mut world = World::start(&[
            (
                "shop",
                &policy("\"*.shop.example\", shop.example", "noindex"),
            ),
            ("blog", &policy("blog.example", "")),
        ]);
        world.write("shop", &policy("shop.example", "noindex"));
        world.write("blog", &policy("blog.example, \"*.shop.example\"", ""));
        world.go_on(cold, 40 * DAY);
        for (host, wanted) in [
            ("a.shop.example", true),
            ("a.b.shop.example", true),
            ("shop.example", false),
        ] {
            assert_eq!(world.moved(host, 40 * DAY), wanted, "{host}");
        }
        // It is the same site's, and what it was told goes by the wildcard.
        world.write(
            "blog",
            &policy("blog.example, \"*.shop.example\", a.shop.example", ""),
        );
        world.go_on(cold, 50 * DAY);
        assert!(
            world.moved("A.Shop.Example:80", 70 * DAY - 1)
                && !world.moved("a.shop.example", 70 * DAY)
        );
        // What moves again is new again, and that alone.
        world.write("blog", &policy("blog.example, \"*.shop.example\"", ""));
        world.write("shop", &policy("shop.example, a.shop.example", "noindex"));
        world.go_on(cold, 60 * DAY);
        assert!(
            world.moved("a.shop.example", 90 * DAY - 1) && !world.moved("b.shop.example", 70 * DAY)
        );
        assert!(!world.moved("blog.example", 60 * DAY) && !world.moved("shop.example", 60 * DAY));
    }
}

#[test]
fn a_port_that_moves_takes_its_name_with_it() {
    let mut world = World::start(&[
        (
            "shop",
            &policy("\"shop.example:8443\", shop.example", "noindex"),
        ),
        ("blog", &policy("blog.example", "")),
    ]);
    world.write("shop", &policy("shop.example", "noindex"));
    world.write("blog", &policy("blog.example, \"shop.example:8443\"", ""));
    world.go_on(false, 40 * DAY);
    assert!(world.moved("shop.example:8443", 40 * DAY) && !world.moved("blog.example", 40 * DAY));
}

#[test]
fn host_of_a_site_with_recent_tags_counts_as_moved() {
    let mut world = World::start(&[
        ("shop", &policy("shop.example", "noindex")),
        ("blog", &policy("b.example", "")),
    ]);
    world.write("shop", &policy("shop.example", ""));
    world.go_on(false, 40 * DAY);
    world.remove("shop");
    world.write("store", &policy("shop.example", ""));
    world.go_on(false, 60 * DAY);
    assert!(
        world.moved("shop.example", 60 * DAY),
        "the rule is gone for twenty days"
    );
    assert!(!world.moved("b.example", 60 * DAY));
}

#[test]
fn a_retired_path_is_something_that_is_said() {
    let retiring = |hosts: &str| {
        format!(
            "hosts: [{hosts}]\nrobots: {{ origin: replace }}\nretire: [{{ paths: /old/, noindex_from: 1970-01-11 }}]\n"
        )
    };
    let mut world = World::start(&[("shop", &retiring("shop.example"))]);
    assert_eq!(
        world
            .live
            .as_ref()
            .expect("started")
            .keep_time(Timestamp(10 * DAY)),
        ["shop"]
    );
    world.remove("shop");
    world.write("store", &policy("shop.example", ""));
    world.go_on(true, 50 * DAY);
    assert!(world.moved("shop.example", 50 * DAY));
}

#[test]
fn lost_state_makes_every_host_count_as_moved() {
    let mut world = World::start(&[("shop", &policy("shop.example", ""))]);
    world.live = None;
    fs::write(world.path("state/state.db"), "no database").expect("damaged");
    world.go_on(true, 40 * DAY);
    assert!(world.moved("shop.example", 40 * DAY) && world.moved("elsewhere.example", 40 * DAY));
    world.go_on(true, 41 * DAY);
    assert!(world.moved("shop.example", 70 * DAY - 1) && !world.moved("shop.example", 70 * DAY));
    let world = World::start(&[("shop", &policy("shop.example", "noindex"))]);
    assert!(
        !world.moved("shop.example", 0),
        "at the first start nothing was said"
    );
}
