//! Policy files that are gone: what stays in force, and what ends it.

use super::tests::start_with;
use super::*;
use std::fs;

/// A policy directory and a state directory of one crawlgate after another.
struct World {
    directory: tempfile::TempDir,
    live: Option<Arc<SiteManager>>,
    has_state: bool,
}

fn policy(hosts: &str) -> String {
    format!(
        "hosts: [{hosts}]\nrobots: {{ origin: replace, groups: [{{ agents: \"*\", disallow: /p }}] }}\n"
    )
}

impl World {
    /// The sites `a` and `b`.
    fn new(has_state: bool) -> World {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("policies")).expect("a folder");
        let mut world = World {
            directory,
            live: None,
            has_state,
        };
        world.write("a", &policy("a.example"));
        world.write("b", &policy("b.example, www.b.example"));
        world.start_again(false);
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory
            .path()
            .join("policies")
            .join(format!("{name}.yaml"))
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a policy");
    }

    fn delete(&self, name: &str) {
        fs::remove_file(self.path(name)).expect("deleted");
    }

    fn start_again(&mut self, may_be_missing: bool) {
        self.live = None;
        let options = SiteOptions {
            policies: self.directory.path().join("policies"),
            strict: false,
            may_be_missing,
            origins: KnownOrigins::default(),
            published_proof: false,
        };
        let state = self.directory.path().join("state");
        let live = start_with(options, self.has_state.then_some(&*state), 0);
        self.live = Some(live.unwrap_or_else(|error| panic!("{error}")));
    }

    fn live(&self) -> &SiteManager {
        self.live.as_ref().expect("started")
    }

    fn reload(&self) -> (Vec<(String, ReloadOutcome)>, bool) {
        report(&self.live().reload(Timestamp(1)))
    }

    fn remove(&self, site: &str) -> Result<ReloadReport, RemoveError> {
        self.live().remove(&[site.to_owned()], Timestamp(2))
    }

    /// The site that has a host.
    fn owner(&self, host: &str) -> Option<String> {
        let snapshot = self.live().snapshot();
        Some(
            snapshot.sites()[snapshot.site_for_host(host.as_bytes())?]
                .site
                .name
                .clone(),
        )
    }

    fn removed(&self) -> Vec<String> {
        let sites = self.live().status(Timestamp(3)).sites.into_iter();
        sites
            .filter(|site| site.removed)
            .map(|site| site.site)
            .collect()
    }
}

fn report(report: &ReloadReport) -> (Vec<(String, ReloadOutcome)>, bool) {
    (
        report
            .sites
            .iter()
            .map(|site| (site.site.clone(), site.outcome))
            .collect(),
        report.is_whole(),
    )
}

fn outcomes(outcomes: &[(&str, ReloadOutcome)]) -> Vec<(String, ReloadOutcome)> {
    outcomes
        .iter()
        .map(|(site, outcome)| ((*site).to_owned(), *outcome))
        .collect()
}

const UNCHANGED: (&str, ReloadOutcome) = ("a", ReloadOutcome::Unchanged);

#[test]
fn deleted_policy_stays_until_its_end_is_confirmed() {
    let mut world = World::new(true);
    world.delete("b");
    for again in [false, false, true] {
        if again {
            world.start_again(false);
        }
        assert_eq!(
            world.reload(),
            (outcomes(&[UNCHANGED, ("b", ReloadOutcome::Missing)]), false)
        );
        assert_eq!(
            (world.owner("www.b.example"), world.removed()),
            (Some("b".into()), vec!["b".into()])
        );
        let status = world.live().status(Timestamp(3));
        assert_eq!(status.sites[1].findings[0].id, "removed");
    }
    assert!(matches!(world.remove("a"), Err(RemoveError::FileExists { site, .. }) if site == "a"));
    assert!(matches!(world.remove("c"), Err(RemoveError::UnknownSite { site, .. }) if site == "c"));
    assert_eq!(world.owner("b.example").as_deref(), Some("b"));
    let removed = world.remove("b").expect("removed");
    assert_eq!(
        report(&removed),
        (outcomes(&[UNCHANGED, ("b", ReloadOutcome::Removed)]), true)
    );
    world.start_again(false);
    assert_eq!((world.owner("b.example"), world.removed()), (None, vec![]));
}

#[test]
fn deleted_policy_is_forgotten_by_a_start_without_state() {
    let mut world = World::new(false);
    world.delete("b");
    world.reload();
    assert_eq!(world.owner("b.example").as_deref(), Some("b"));
    world.start_again(false);
    assert_eq!(world.owner("b.example"), None);
}

#[test]
fn policy_that_comes_back_or_is_empty_is_no_removal() {
    let mut world = World::new(true);
    for again in [false, true] {
        world.delete("b");
        world.reload();
        world.write("b", "");
        if again {
            world.start_again(false);
        }
        assert_eq!(
            world.reload(),
            (outcomes(&[UNCHANGED, ("b", ReloadOutcome::Kept)]), false)
        );
        assert_eq!(
            (world.owner("b.example"), world.removed()),
            (Some("b".into()), vec![])
        );
        world.write("b", &policy("b.example, www.b.example"));
        assert!(world.reload().1);
    }
}

#[test]
fn renamed_policy_replaces_the_one_that_is_gone() {
    for again in [false, true] {
        let mut world = World::new(true);
        fs::rename(world.path("b"), world.path("shop")).expect("renamed");
        if again {
            world.start_again(false);
        }
        let (_, is_whole) = world.reload();
        assert!(
            is_whole && world.removed().is_empty(),
            "started again: {again}"
        );
        assert_eq!(
            (world.owner("b.example"), world.owner("www.b.example")),
            (Some("shop".into()), Some("shop".into()))
        );
    }
}

#[test]
fn files_that_have_all_hosts_between_them_replace_a_policy() {
    let world = World::new(true);
    world.delete("b");
    world.write("one", &policy("b.example"));
    let (found, _) = world.reload();
    assert!(
        found.contains(&("one".into(), ReloadOutcome::Refused)),
        "www.b.example would have no policy: {found:?}"
    );
    assert_eq!(world.owner("b.example").as_deref(), Some("b"));
    world.write("two", &policy("www.b.example"));
    let (found, is_whole) = world.reload();
    assert!(
        is_whole && found.contains(&("b".into(), ReloadOutcome::Removed)),
        "{found:?}"
    );
    assert_eq!(
        (world.owner("b.example"), world.owner("www.b.example")),
        (Some("one".into()), Some("two".into()))
    );
}

#[test]
fn renamed_policy_with_a_mistake_replaces_none() {
    let world = World::new(true);
    world.delete("b");
    world.write(
        "shop",
        &(policy("b.example, www.b.example") + "mistake: 1\n"),
    );
    assert!(!world.reload().1);
    assert_eq!(
        (world.owner("b.example"), world.removed()),
        (Some("b".into()), vec!["b".into()])
    );
}

#[test]
fn directory_that_is_empty_or_gone_ends_no_policy() {
    for (is_gone, again) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut world = World::new(true);
        fs::remove_dir_all(world.directory.path().join("policies")).expect("deleted");
        if !is_gone {
            fs::create_dir(world.directory.path().join("policies")).expect("an empty directory");
        }
        if again {
            world.start_again(true);
        }
        assert!(!world.reload().1);
        assert_eq!(
            (world.owner("a.example"), world.owner("b.example")),
            (Some("a".into()), Some("b".into()))
        );
    }
}
