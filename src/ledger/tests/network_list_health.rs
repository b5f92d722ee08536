//! Tests of [`NetworkListHealthTable`]: a list of networks proves impostors only if it verified a
//! request within the last week.

use super::super::network_list_health::{ListKey, NetworkListHealthTable, list_key};
use super::*;

fn site_with_networks(networks: &str) -> SiteEntry {
    let text = format!(
        "robots: {{ origin: replace }}\ncrawlers: [{{ token: PartnerBot, networks: [{networks}] }}, {{ token: bingbot, networks: 192.0.2.0/24 }}]\n"
    );
    let source = SourceFile {
        name: "shop.yaml".into(),
        text: text.as_str().into(),
    };
    let (site, findings) = load_site("shop", &source, Registry::builtin());
    SiteEntry::new(site.unwrap_or_else(|| panic!("{findings:?}")), Timestamp(0))
}

fn snapshot_with_networks(networks: &str, generation: u64) -> Snapshot {
    Snapshot::new(vec![site_with_networks(networks)], generation)
}

const LIST: &str = "198.51.100.0/24, 198.51.101.0/24";
const WEEK: i64 = 7 * DAY;

struct ListWorld {
    ledger: Ledger,
    disk: LedgerDisk,
    snapshot: Snapshot,
    now: i64,
}

impl ListWorld {
    fn new(state: Option<&Path>) -> ListWorld {
        let snapshot = snapshot_with_networks(LIST, 0);
        let (ledger, disk) = LedgerDisk::open(state, &snapshot, moment(1_000 * DAY, 0));
        ListWorld {
            ledger,
            disk,
            snapshot,
            now: 1_000 * DAY,
        }
    }

    fn check_claim(&self, user_agent: &str, identity: Identity) -> Identity {
        let entry = &self.snapshot.sites()[0];
        let claim = Registry::builtin().identify_on_site(user_agent.as_bytes(), &entry.site.tokens);
        let now = Timestamp(self.now);
        let list = list_key(Registry::builtin(), Some(entry), claim);
        let prove = || self.ledger.list_health.check_identity(list, identity, now);
        let (looked, is_due) = prove();
        assert_eq!(prove(), (looked, is_due), "a look changes nothing");
        if is_due {
            self.ledger.list_health.record_identity(list, identity, now);
        }
        assert_eq!(
            prove(),
            (looked, false),
            "it is recorded once, and changes nothing about the request"
        );
        looked
    }

    fn impostor_identity(&self) -> Identity {
        self.check_claim("PartnerBot/1", Identity::Impostor)
    }

    fn record_verified(&self) {
        assert_eq!(
            self.check_claim("PartnerBot/1", Identity::Verified),
            Identity::Verified
        );
    }

    fn restart(&mut self, later: i64) {
        let now = moment(self.now, 0);
        self.disk
            .end_run(&mut self.ledger, true, &self.snapshot, now);
        self.now += later;
        self.ledger = self.disk.start_run(&self.snapshot, moment(self.now, 0));
    }

    fn apply_snapshot(&mut self, snapshot: Snapshot) {
        self.snapshot = snapshot;
        self.ledger
            .apply_snapshot(&self.snapshot, Timestamp(self.now));
    }
}

#[test]
fn list_without_verified_visits_is_suspended() {
    let mut lists = ListWorld::new(None);
    assert_eq!(lists.impostor_identity(), Identity::Suspended);
    let [list] = &lists.ledger.list_health.report(Timestamp(lists.now))[..] else {
        panic!("one of them")
    };
    assert!(list.suspended && list.verified.is_none() && list.crawler == "PartnerBot");
    assert_eq!(
        lists.check_claim("bingbot/2.0", Identity::Verified),
        Identity::Verified
    );
    assert_eq!(
        lists.impostor_identity(),
        Identity::Suspended,
        "each list speaks for itself"
    );
    lists.record_verified();
    assert_eq!(lists.impostor_identity(), Identity::Impostor);
    lists.now += WEEK;
    assert_eq!(
        lists.impostor_identity(),
        Identity::Impostor,
        "within seven days"
    );
    assert!(
        lists
            .ledger
            .list_health
            .report(Timestamp(lists.now))
            .iter()
            .all(|list| !list.suspended)
    );
    lists.now += 1;
    assert_eq!(
        lists.impostor_identity(),
        Identity::Suspended,
        "by now the operator may have other addresses"
    );
    assert_eq!(
        lists.check_claim("PartnerBot/1", Identity::Unverified),
        Identity::Unverified
    );
}

#[test]
fn changed_list_proves_itself_anew() {
    let mut lists = ListWorld::new(None);
    lists.record_verified();
    lists.apply_snapshot(snapshot_with_networks(
        "198.51.101.7/24, 198.51.100.0/24",
        1,
    ));
    assert_eq!(
        lists.impostor_identity(),
        Identity::Impostor,
        "the same addresses"
    );
    lists.apply_snapshot(snapshot_with_networks("203.0.113.0/24", 2));
    assert_eq!(lists.impostor_identity(), Identity::Suspended);
    lists.apply_snapshot(snapshot_with_networks(LIST, 1));
    assert_eq!(
        lists.impostor_identity(),
        Identity::Suspended,
        "older policies come too late"
    );
}

#[test]
fn list_health_outlasts_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut lists = ListWorld::new(Some(directory.path()));
    lists.record_verified();
    lists.restart(2 * DAY);
    assert_eq!(lists.impostor_identity(), Identity::Impostor);
    // Set back by a year, with the process and without.
    lists.now -= 365 * DAY;
    lists.ledger.tick(&lists.snapshot, moment(lists.now, 0));
    lists.now += WEEK + 1;
    assert_eq!(lists.impostor_identity(), Identity::Suspended);
    lists.record_verified();
    lists.restart(-365 * DAY);
    assert_eq!(lists.impostor_identity(), Identity::Impostor);
    lists.now += WEEK + 1;
    assert_eq!(lists.impostor_identity(), Identity::Suspended);
    // A list that no policy has any more is forgotten.
    lists.record_verified();
    lists.apply_snapshot(Snapshot::new(Vec::new(), 1));
    lists.restart(1);
    lists.apply_snapshot(snapshot_with_networks(LIST, 2));
    assert_eq!(lists.impostor_identity(), Identity::Suspended);
}

/// Who says that it is somebody of the list writes nothing but two numbers.
#[test]
fn list_table_grows_with_policies_only() {
    let lists = NetworkListHealthTable::restore(&[], StateStore::in_memory_only().0);
    let site = site_with_networks(LIST).site;
    for number in 0..10_000 {
        let crawler = format!("Bot{number}");
        let (said, _) = lists.check_identity(
            ListKey {
                site: &site.name,
                crawler: &crawler,
            },
            Identity::Impostor,
            Timestamp(number),
        );
        assert_eq!(said, Identity::Suspended, "it is not known yet");
        lists.record_identity(
            ListKey {
                site: &site.name,
                crawler: &crawler,
            },
            Identity::Impostor,
            Timestamp(number),
        );
    }
    assert!(lists.report(Timestamp(10_000)).is_empty());
    lists.apply_policies(
        &Snapshot::new(vec![site_with_networks(LIST)], 0),
        Registry::builtin(),
        Timestamp(10_000),
    );
    lists.record_identity(
        ListKey {
            site: &site.name,
            crawler: "PartnerBot",
        },
        Identity::Impostor,
        Timestamp(10_000),
    );
    assert_eq!(lists.report(Timestamp(10_000)).len(), 1);
    lists.apply_policies(&Snapshot::default(), Registry::builtin(), Timestamp(10_000));
    assert!(lists.report(Timestamp(10_000)).is_empty());
}
