//! Tests of hosts that move to another site or to none, and come back. Each time the ledger must
//! begin anew to observe which robots.txt crawlers are served there.

use super::*;

/// A site with these hosts, everything open, or `/p1/` closed.
fn site_with_hosts(name: &str, hosts: &str, closed: bool) -> SiteEntry {
    let rules = if closed {
        "[/always/, /p1/]"
    } else {
        "[/always/]"
    };
    let text = format!(
        "hosts: [{hosts}]\nrobots: {{ origin: replace, groups: [{{ agents: '*', disallow: {rules} }}] }}\n"
    );
    let source = SourceFile {
        name: format!("{name}.yaml").into(),
        text: text.as_str().into(),
    };
    let (site, findings) = load_site(name, &source, Registry::builtin());
    let site = site.unwrap_or_else(|| panic!("{text}\n{findings:?}"));
    SiteEntry::new(site, Timestamp(0))
}

/// Two sites and their hosts, and a clock.
struct MovingHosts {
    ledger: Ledger,
    disk: LedgerDisk,
    snapshot: Snapshot,
    now: i64,
}

impl MovingHosts {
    /// The hosts `a.example` and `b.example` of the first site are observed for two days.
    fn observed_for_two_days(state: Option<&Path>) -> MovingHosts {
        let snapshot = two_sites("a.example, b.example", "c.example", 0);
        let (ledger, disk) = LedgerDisk::open(state, &snapshot, moment(1_000 * DAY, 0));
        let mut moving = MovingHosts {
            ledger,
            disk,
            snapshot,
            now: 1_000 * DAY,
        };
        moving.pass_hours_in_use(48);
        assert_eq!(
            (
                moving.request_kind("a.example"),
                moving.request_kind("b.example")
            ),
            (Kind::Violation, Kind::Violation)
        );
        moving
    }

    fn pass_hours_in_use(&mut self, hours: i64) {
        for _ in 0..hours / 6 {
            self.request_kind("a.example");
            self.request_kind("b.example");
            self.ledger.tick(&self.snapshot, moment(self.now, 0));
            self.now += 6 * HOUR;
        }
    }

    /// The owner changes the hosts of the sites.
    fn apply_snapshot(&mut self, snapshot: Snapshot) {
        self.snapshot = snapshot;
        self.ledger
            .apply_snapshot(&self.snapshot, Timestamp(self.now));
    }

    /// What it is to ask for what every version closes.
    fn request_kind(&self, host: &str) -> Kind {
        let facts = RequestFacts {
            host: host.as_bytes(),
            target: b"/always/",
            method: b"GET",
            user_agent: b"bingbot/2.0",
            client: None,
            identity: Identity::Unverified,
            now: Timestamp(self.now),
        };
        let registry = Registry::builtin();
        let claimant =
            SiteClaim::find(&self.snapshot, registry, &facts).expect("a site has the host");
        let cached_versions = super::cached_versions_of_request(
            &self.ledger,
            claimant,
            facts.host,
            moment(self.now, 0),
        );
        let case = RequestToJudge {
            registry,
            facts,
            claimant,
            cached_versions,
        };
        decide_for(
            &case,
            RecentBehaviour::default(),
            &mut DecisionScratch::default(),
        )
        .kind
    }
}

fn two_sites(one: &str, other: &str, generation: u64) -> Snapshot {
    let sites = vec![
        site_with_hosts("one", one, true),
        site_with_hosts("other", other, false),
    ];
    snapshot_with_history(Snapshot::new(sites, generation), &new_history(Timestamp(0)))
}

#[test]
fn host_back_from_another_site_is_observed_anew() {
    let mut moving = MovingHosts::observed_for_two_days(None);
    moving.apply_snapshot(two_sites("b.example", "c.example, a.example", 1));
    assert_eq!(
        moving.request_kind("a.example"),
        Kind::Unproven,
        "it was not observed for this site"
    );
    moving.now += HOUR;
    moving.apply_snapshot(two_sites("a.example, b.example", "c.example", 2));
    assert_eq!(moving.request_kind("a.example"), Kind::Unproven);
    assert_eq!(
        moving.request_kind("b.example"),
        Kind::Violation,
        "the host that stayed is observed as before"
    );
    moving.pass_hours_in_use(30);
    assert_eq!(
        moving.request_kind("a.example"),
        Kind::Violation,
        "a day later it is observed again"
    );
}

#[test]
fn move_without_requests_begins_the_observation_anew() {
    let mut moving = MovingHosts::observed_for_two_days(None);
    moving.apply_snapshot(two_sites("b.example", "c.example, a.example", 1));
    moving.apply_snapshot(two_sites("a.example, b.example", "c.example", 2));
    assert_eq!(moving.request_kind("a.example"), Kind::Unproven);
    // To no site at all: then the origin's own robots.txt is forwarded.
    let mut moving = MovingHosts::observed_for_two_days(None);
    moving.apply_snapshot(two_sites("b.example", "c.example", 1));
    moving.apply_snapshot(two_sites("a.example, b.example", "c.example", 2));
    assert_eq!(moving.request_kind("a.example"), Kind::Unproven);
    assert_eq!(moving.request_kind("b.example"), Kind::Violation);
}

#[test]
fn request_under_old_policies_restores_no_observation() {
    let mut moving = MovingHosts::observed_for_two_days(None);
    let before = moving.snapshot.clone();
    moving.apply_snapshot(two_sites("b.example", "c.example, a.example", 1));
    let claim = Registry::builtin().identify(b"bingbot/2.0");
    moving.ledger.record_served(
        Registry::builtin(),
        &before.sites()[0],
        b"a.example",
        claim,
        Timestamp(moving.now),
    );
    moving.ledger.tick(&moving.snapshot, moment(moving.now, 0));
    assert!(
        moving
            .ledger
            .crawler_copies("one")
            .iter()
            .all(|visits| visits.host != "a.example")
    );
    // With a day in between the observation would be long enough.
    for _ in 0..5 {
        moving.pass_hours_in_use(6);
    }
    moving.apply_snapshot(two_sites("a.example, b.example", "c.example", 2));
    assert_eq!(moving.request_kind("a.example"), Kind::Unproven);
}

#[test]
fn move_of_one_port_begins_the_observation_anew() {
    let mut moving = MovingHosts::observed_for_two_days(None);
    moving.apply_snapshot(two_sites(
        "a.example, b.example",
        "c.example, 'a.example:443'",
        1,
    ));
    moving.apply_snapshot(two_sites("a.example, b.example", "c.example", 2));
    assert_eq!(moving.request_kind("a.example"), Kind::Unproven);
    assert_eq!(moving.request_kind("b.example"), Kind::Violation);
}

#[test]
fn wildcard_loses_one_host_and_keeps_the_others() {
    let mut moving = MovingHosts::observed_for_two_days(None);
    moving.apply_snapshot(two_sites("'*.example'", "c.example", 1));
    assert_eq!(
        moving.request_kind("a.example"),
        Kind::Violation,
        "it is still this site's"
    );
    moving.apply_snapshot(two_sites("'*.example'", "c.example, a.example", 2));
    moving.apply_snapshot(two_sites("'*.example'", "c.example", 3));
    assert_eq!(moving.request_kind("a.example"), Kind::Unproven);
    assert_eq!(moving.request_kind("b.example"), Kind::Violation);
}

#[test]
fn crash_after_a_move_accuses_no_crawler() {
    for seen in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut moving = MovingHosts::observed_for_two_days(Some(directory.path()));
        moving.ledger.tick(&moving.snapshot, moment(moving.now, 0));
        moving.disk.commit(moment(moving.now, 0));
        let moved = two_sites("b.example", "c.example, a.example", 0);
        if seen {
            moving.apply_snapshot(moved.clone());
        }
        // Killed, twice in a few seconds.
        for snapshot in [moved, two_sites("a.example, b.example", "c.example", 0)] {
            let now = moment(moving.now, 0);
            moving
                .disk
                .end_run(&mut moving.ledger, false, &moving.snapshot, now);
            moving.now += 2;
            moving.ledger = moving.disk.start_run(&snapshot, moment(moving.now, 0));
            moving.snapshot = snapshot;
        }
        // What the other site served before the crash is not in the history of this test.
        assert_ne!(
            moving.request_kind("a.example"),
            Kind::Violation,
            "seen: {seen}"
        );
        assert_eq!(
            moving.request_kind("b.example"),
            Kind::Violation,
            "seen: {seen}"
        );
    }
}

#[test]
fn key_of_an_address_is_stable() {
    for host in [
        "[2001:db8::443]",
        "[2001:db8::1]:8443",
        "[::ffff:192.0.2.1]:80",
        "192.0.2.1:8080",
    ] {
        let written = host_key(host.as_bytes()).expect("a key");
        assert_eq!(host_key(&written).as_ref(), Some(&written), "{host}");
    }
    assert_ne!(host_key(b"[2001:db8::443]"), host_key(b"[2001:db8::80]"));
}
