//! A list of networks proves impostors only if it verified a request within the last week.

use super::super::network_list_health::{ListKey, NetworkListHealth, list_of};
use super::*;

fn entry(networks: &str) -> SiteEntry {
    let text = format!(
        "robots: {{ origin: replace }}\ncrawlers: [{{ token: PartnerBot, networks: [{networks}] }}, {{ token: bingbot, networks: 192.0.2.0/24 }}]\n"
    );
    let source = Source {
        name: "shop.yaml".into(),
        text: text.as_str().into(),
    };
    let (site, findings) = load("shop", &source, Registry::builtin());
    SiteEntry::new(site.unwrap_or_else(|| panic!("{findings:?}")), Timestamp(0))
}

fn snapshot(networks: &str, generation: u64) -> Snapshot {
    Snapshot::new(vec![entry(networks)], generation)
}

const LIST: &str = "198.51.100.0/24, 198.51.101.0/24";
const WEEK: i64 = 7 * DAY;

struct Lists {
    ledger: Ledger,
    disk: Disk,
    snapshot: Snapshot,
    now: i64,
}

impl Lists {
    fn new(state: Option<&Path>) -> Lists {
        let snapshot = snapshot(LIST, 0);
        let (ledger, disk) = Disk::open(state, &snapshot, moment(1_000 * DAY, 0));
        Lists {
            ledger,
            disk,
            snapshot,
            now: 1_000 * DAY,
        }
    }

    fn check(&self, user_agent: &str, identity: Identity) -> Identity {
        let entry = &self.snapshot.sites()[0];
        let claim = Registry::builtin().identify_with(user_agent.as_bytes(), &entry.site.tokens);
        let now = Timestamp(self.now);
        let list = list_of(Registry::builtin(), Some(entry), claim);
        let prove = || self.ledger.list_health.look(list, identity, now);
        let (looked, is_due) = prove();
        assert_eq!(prove(), (looked, is_due), "a look changes nothing");
        if is_due {
            self.ledger.list_health.note(list, identity, now);
        }
        assert_eq!(
            prove(),
            (looked, false),
            "it is noted once, and changes nothing about the request"
        );
        looked
    }

    fn impostor(&self) -> Identity {
        self.check("PartnerBot/1", Identity::Impostor)
    }

    fn verified(&self) {
        assert_eq!(
            self.check("PartnerBot/1", Identity::Verified),
            Identity::Verified
        );
    }

    fn start_again(&mut self, later: i64) {
        self.disk.end(&mut self.ledger, true, moment(self.now, 0));
        self.now += later;
        self.ledger = self.disk.start(&self.snapshot, moment(self.now, 0));
    }

    fn settle(&mut self, snapshot: Snapshot) {
        self.snapshot = snapshot;
        self.ledger.settle(&self.snapshot, Timestamp(self.now));
    }
}

#[test]
fn list_without_verified_visits_is_suspended() {
    let mut lists = Lists::new(None);
    assert_eq!(lists.impostor(), Identity::Suspended);
    let [list] = &lists.ledger.list_health.report(Timestamp(lists.now))[..] else {
        panic!("one of them")
    };
    assert!(list.suspended && list.verified.is_none() && list.crawler == "PartnerBot");
    assert_eq!(
        lists.check("bingbot/2.0", Identity::Verified),
        Identity::Verified
    );
    assert_eq!(
        lists.impostor(),
        Identity::Suspended,
        "each list speaks for itself"
    );
    lists.verified();
    assert_eq!(lists.impostor(), Identity::Impostor);
    lists.now += WEEK;
    assert_eq!(lists.impostor(), Identity::Impostor, "within seven days");
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
        lists.impostor(),
        Identity::Suspended,
        "by now the operator may have other addresses"
    );
    assert_eq!(
        lists.check("PartnerBot/1", Identity::Unverified),
        Identity::Unverified
    );
}

#[test]
fn changed_list_proves_itself_anew() {
    let mut lists = Lists::new(None);
    lists.verified();
    lists.settle(snapshot("198.51.101.7/24, 198.51.100.0/24", 1));
    assert_eq!(lists.impostor(), Identity::Impostor, "the same addresses");
    lists.settle(snapshot("203.0.113.0/24", 2));
    assert_eq!(lists.impostor(), Identity::Suspended);
    lists.settle(snapshot(LIST, 1));
    assert_eq!(
        lists.impostor(),
        Identity::Suspended,
        "older policies come too late"
    );
}

#[test]
fn list_health_outlasts_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut lists = Lists::new(Some(directory.path()));
    lists.verified();
    lists.start_again(2 * DAY);
    assert_eq!(lists.impostor(), Identity::Impostor);
    // Set back by a year, with the process and without.
    lists.now -= 365 * DAY;
    lists.ledger.tick(&lists.snapshot, moment(lists.now, 0));
    lists.now += WEEK + 1;
    assert_eq!(lists.impostor(), Identity::Suspended);
    lists.verified();
    lists.start_again(-365 * DAY);
    assert_eq!(lists.impostor(), Identity::Impostor);
    lists.now += WEEK + 1;
    assert_eq!(lists.impostor(), Identity::Suspended);
    // A list that no policy has any more is forgotten.
    lists.verified();
    lists.settle(Snapshot::new(Vec::new(), 1));
    lists.start_again(1);
    lists.settle(snapshot(LIST, 2));
    assert_eq!(lists.impostor(), Identity::Suspended);
}

/// Who says that it is somebody of the list writes nothing but two numbers.
#[test]
fn list_table_grows_with_policies_only() {
    let lists = NetworkListHealth::default();
    let site = entry(LIST).site;
    for number in 0..10_000 {
        let crawler = format!("Bot{number}");
        let (said, _) = lists.look(
            ListKey {
                site: &site.name,
                crawler: &crawler,
            },
            Identity::Impostor,
            Timestamp(number),
        );
        assert_eq!(said, Identity::Suspended, "it is not known yet");
        lists.note(
            ListKey {
                site: &site.name,
                crawler: &crawler,
            },
            Identity::Impostor,
            Timestamp(number),
        );
    }
    assert!(lists.report(Timestamp(10_000)).is_empty());
    lists.settle(
        &Snapshot::new(vec![entry(LIST)], 0),
        Registry::builtin(),
        Timestamp(10_000),
    );
    lists.note(
        ListKey {
            site: &site.name,
            crawler: "PartnerBot",
        },
        Identity::Impostor,
        Timestamp(10_000),
    );
    assert_eq!(lists.report(Timestamp(10_000)).len(), 1);
    lists.settle(&Snapshot::default(), Registry::builtin(), Timestamp(10_000));
    assert!(lists.report(Timestamp(10_000)).is_empty());
}
