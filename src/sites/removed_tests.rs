//! Tests of policy files that were deleted, renamed or emptied: which policy stays in force, and
//! what ends it.

use super::tests::start_with_options;
use super::*;
use std::fs;

/// A policy directory and a state directory of one crawlgate after another.
struct RestartedSites {
    directory: tempfile::TempDir,
    manager: Option<Arc<SiteManager>>,
    has_state: bool,
}

fn policy_text(hosts: &str) -> String {
    format!(
        "hosts: [{hosts}]\nrobots: {{ origin: replace, groups: [{{ agents: \"*\", disallow: /p }}] }}\n"
    )
}

impl RestartedSites {
    /// The sites `a` and `b`.
    fn new(has_state: bool) -> RestartedSites {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("policies")).expect("a folder");
        let mut sites = RestartedSites {
            directory,
            manager: None,
            has_state,
        };
        sites.write_policy("a", &policy_text("a.example"));
        sites.write_policy("b", &policy_text("b.example, www.b.example"));
        sites.restart(false);
        sites
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory
            .path()
            .join("policies")
            .join(format!("{name}.yaml"))
    }

    fn write_policy(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a policy");
    }

    fn delete_policy(&self, name: &str) {
        fs::remove_file(self.path(name)).expect("deleted");
    }

    fn restart(&mut self, may_be_missing: bool) {
        self.manager = None;
        let options = SiteLoadOptions {
            policies: self.directory.path().join("policies"),
            without_directory: may_be_missing.then(Default::default),
            ..SiteLoadOptions::default()
        };
        let state = self.directory.path().join("state");
        let manager = start_with_options(options, self.has_state.then_some(&*state), 0);
        self.manager = Some(manager.unwrap_or_else(|error| panic!("{error}")));
    }

    fn manager(&self) -> &SiteManager {
        self.manager.as_ref().expect("started")
    }

    fn reload(&self) -> (Vec<(String, ReloadOutcome)>, bool) {
        report_outcomes(&self.manager().reload(Timestamp(1)))
    }

    fn remove(&self, site: &str) -> Result<ReloadReport, RemoveError> {
        self.manager().remove(&[site.to_owned()], Timestamp(2))
    }

    /// The site that has a host.
    fn owner(&self, host: &str) -> Option<String> {
        let snapshot = self.manager().snapshot();
        Some(
            snapshot.sites()[snapshot.site_for_host(host.as_bytes())?]
                .site
                .name
                .clone(),
        )
    }

    fn removed(&self) -> Vec<String> {
        let sites = self.manager().status(Timestamp(3)).sites.into_iter();
        sites
            .filter(|site| site.removed)
            .map(|site| site.site)
            .collect()
    }
}

fn report_outcomes(report: &ReloadReport) -> (Vec<(String, ReloadOutcome)>, bool) {
    (
        report
            .sites
            .iter()
            .map(|site| (site.site.clone(), site.outcome))
            .collect(),
        report.is_complete(),
    )
}

fn owned_outcomes(outcomes: &[(&str, ReloadOutcome)]) -> Vec<(String, ReloadOutcome)> {
    outcomes
        .iter()
        .map(|(site, outcome)| ((*site).to_owned(), *outcome))
        .collect()
}

const UNCHANGED: (&str, ReloadOutcome) = ("a", ReloadOutcome::Unchanged);

#[test]
fn deleted_policy_stays_until_its_end_is_confirmed() {
    let mut sites = RestartedSites::new(true);
    sites.delete_policy("b");
    for again in [false, false, true] {
        if again {
            sites.restart(false);
        }
        assert_eq!(
            sites.reload(),
            (
                owned_outcomes(&[UNCHANGED, ("b", ReloadOutcome::Missing)]),
                false
            )
        );
        assert_eq!(
            (sites.owner("www.b.example"), sites.removed()),
            (Some("b".into()), vec!["b".into()])
        );
        let status = sites.manager().status(Timestamp(3));
        assert_eq!(status.sites[1].findings[0].id, "removed");
    }
    assert!(matches!(sites.remove("a"), Err(RemoveError::FileExists { site, .. }) if site == "a"));
    assert!(matches!(sites.remove("c"), Err(RemoveError::UnknownSite { site, .. }) if site == "c"));
    assert_eq!(sites.owner("b.example").as_deref(), Some("b"));
    let removed = sites.remove("b").expect("removed");
    assert_eq!(
        report_outcomes(&removed),
        (
            owned_outcomes(&[UNCHANGED, ("b", ReloadOutcome::Removed)]),
            true
        )
    );
    sites.restart(false);
    assert_eq!((sites.owner("b.example"), sites.removed()), (None, vec![]));
}

#[test]
fn deleted_policy_is_forgotten_by_a_start_without_state() {
    let mut sites = RestartedSites::new(false);
    sites.delete_policy("b");
    sites.reload();
    assert_eq!(sites.owner("b.example").as_deref(), Some("b"));
    sites.restart(false);
    assert_eq!(sites.owner("b.example"), None);
}

#[test]
fn policy_that_comes_back_or_is_empty_is_no_removal() {
    let mut sites = RestartedSites::new(true);
    for again in [false, true] {
        sites.delete_policy("b");
        sites.reload();
        sites.write_policy("b", "");
        if again {
            sites.restart(false);
        }
        assert_eq!(
            sites.reload(),
            (
                owned_outcomes(&[UNCHANGED, ("b", ReloadOutcome::Kept)]),
                false
            )
        );
        assert_eq!(
            (sites.owner("b.example"), sites.removed()),
            (Some("b".into()), vec![])
        );
        sites.write_policy("b", &policy_text("b.example, www.b.example"));
        assert!(sites.reload().1);
    }
}

#[test]
fn renamed_policy_replaces_the_one_that_is_gone() {
    for again in [false, true] {
        let mut sites = RestartedSites::new(true);
        fs::rename(sites.path("b"), sites.path("shop")).expect("renamed");
        if again {
            sites.restart(false);
        }
        let (_, is_whole) = sites.reload();
        assert!(
            is_whole && sites.removed().is_empty(),
            "started again: {again}"
        );
        assert_eq!(
            (sites.owner("b.example"), sites.owner("www.b.example")),
            (Some("shop".into()), Some("shop".into()))
        );
    }
}

#[test]
fn files_that_have_all_hosts_between_them_replace_a_policy() {
    let sites = RestartedSites::new(true);
    sites.delete_policy("b");
    sites.write_policy("one", &policy_text("b.example"));
    let (found, _) = sites.reload();
    assert!(
        found.contains(&("one".into(), ReloadOutcome::Refused)),
        "www.b.example would have no policy: {found:?}"
    );
    assert_eq!(sites.owner("b.example").as_deref(), Some("b"));
    sites.write_policy("two", &policy_text("www.b.example"));
    let (found, is_whole) = sites.reload();
    assert!(
        is_whole && found.contains(&("b".into(), ReloadOutcome::Removed)),
        "{found:?}"
    );
    assert_eq!(
        (sites.owner("b.example"), sites.owner("www.b.example")),
        (Some("one".into()), Some("two".into()))
    );
}

#[test]
fn renamed_policy_with_a_mistake_replaces_none() {
    let sites = RestartedSites::new(true);
    sites.delete_policy("b");
    sites.write_policy(
        "shop",
        &(policy_text("b.example, www.b.example") + "mistake: 1\n"),
    );
    assert!(!sites.reload().1);
    assert_eq!(
        (sites.owner("b.example"), sites.removed()),
        (Some("b".into()), vec!["b".into()])
    );
}

#[test]
fn directory_that_is_empty_or_gone_ends_no_policy() {
    for (is_gone, again) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut sites = RestartedSites::new(true);
        fs::remove_dir_all(sites.directory.path().join("policies")).expect("deleted");
        if !is_gone {
            fs::create_dir(sites.directory.path().join("policies")).expect("an empty directory");
        }
        if again {
            sites.restart(true);
        }
        assert!(!sites.reload().1);
        assert_eq!(
            (sites.owner("a.example"), sites.owner("b.example")),
            (Some("a".into()), Some("b".into()))
        );
    }
}
