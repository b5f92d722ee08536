//! What the lists of networks are worth: an impostor is called one only where the list has verified somebody lately.

use super::super::network_list_health::NetworkListHealth;
use super::*;

fn entry(networks: &str) -> SiteEntry {
    let text = format!(
        "robots: {{ origin: replace }}\ncrawlers: [{{ token: PartnerBot, networks: [{networks}] }}, {{ token: bingbot, networks: 192.0.2.0/24 }}]\n"
    );
    let source = Source { name: "shop.yaml".into(), text: text.as_str().into() };
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
    snapshot: Snapshot,
    now: i64,
}

impl Lists {
    fn new(state: Option<&Path>) -> Lists {
        let snapshot = snapshot(LIST, 0);
        Lists { ledger: open(state, &snapshot, 1_000 * DAY, 0), snapshot, now: 1_000 * DAY }
    }

    fn weigh(&self, user_agent: &str, identity: Identity) -> Identity {
        let entry = &self.snapshot.sites()[0];
        let claim = Registry::builtin().identify_with(user_agent.as_bytes(), &entry.site.tokens);
        let now = Timestamp(self.now);
        let looked = self.ledger.weigh_unseen(Registry::builtin(), entry, claim, identity, now);
        let weighed = self.ledger.weigh(Registry::builtin(), entry, claim, identity, now);
        assert_eq!(looked, weighed, "what an explanation says is what happens");
        weighed
    }

    fn impostor(&self) -> Identity {
        self.weigh("PartnerBot/1", Identity::Impostor)
    }

    fn verified(&self) {
        assert_eq!(self.weigh("PartnerBot/1", Identity::Verified), Identity::Verified);
    }

    fn settle(&mut self, snapshot: Snapshot) {
        self.snapshot = snapshot;
        self.ledger.settle(&self.snapshot, Timestamp(self.now));
    }
}

#[test]
fn a_list_that_verified_nobody_accuses_nobody() {
    let mut lists = Lists::new(None);
    assert_eq!(lists.impostor(), Identity::Suspended);
    let [standing] = &lists.ledger.standings(Timestamp(lists.now))[..] else { panic!("one of them") };
    assert!(standing.suspended && standing.verified.is_none() && standing.crawler == "PartnerBot");
    assert_eq!(lists.weigh("bingbot/2.0", Identity::Verified), Identity::Verified);
    assert_eq!(lists.impostor(), Identity::Suspended, "each list speaks for itself");
    lists.verified();
    assert_eq!(lists.impostor(), Identity::Impostor);
    lists.now += WEEK;
    assert_eq!(lists.impostor(), Identity::Impostor, "within seven days");
    assert!(lists.ledger.standings(Timestamp(lists.now)).iter().all(|standing| !standing.suspended));
    lists.now += 1;
    assert_eq!(lists.impostor(), Identity::Suspended, "by now the operator may have other addresses");
    assert_eq!(lists.weigh("PartnerBot/1", Identity::Unverified), Identity::Unverified);
}

#[test]
fn a_list_that_is_changed_proves_itself_anew_and_one_that_is_reordered_does_not() {
    let mut lists = Lists::new(None);
    lists.verified();
    lists.settle(snapshot("198.51.101.7/24, 198.51.100.0/24", 1));
    assert_eq!(lists.impostor(), Identity::Impostor, "the same addresses");
    lists.settle(snapshot("203.0.113.0/24", 2));
    assert_eq!(lists.impostor(), Identity::Suspended);
    lists.settle(snapshot(LIST, 1));
    assert_eq!(lists.impostor(), Identity::Suspended, "older policies come too late");
}

#[test]
fn what_is_proven_outlasts_a_restart_and_a_clock_that_is_set_back_does_not_prolong_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut lists = Lists::new(Some(directory.path()));
    lists.verified();
    lists.ledger.tick(&lists.snapshot, moment(lists.now, 0));
    lists.now += 2 * DAY;
    lists.ledger = open(Some(directory.path()), &lists.snapshot, lists.now, 0);
    assert_eq!(lists.impostor(), Identity::Impostor);
    // Set back by a year, with the process and without.
    lists.now -= 365 * DAY;
    lists.ledger.tick(&lists.snapshot, moment(lists.now, 0));
    lists.now += WEEK + 1;
    assert_eq!(lists.impostor(), Identity::Suspended);
    lists.now -= WEEK + 1;
    lists.ledger = open(Some(directory.path()), &lists.snapshot, lists.now, 0);
    lists.now += WEEK + 1;
    assert_eq!(lists.impostor(), Identity::Suspended);
    let file = directory.path().join("ledger/verified.json");
    std::fs::write(&file, "{ torn").expect("written");
    let ledger = open(Some(directory.path()), &lists.snapshot, lists.now, 0);
    assert!(ledger.problem().is_some_and(|said| said.contains("set aside")));
    assert!(ledger.standings(Timestamp(lists.now)).is_empty());
}

/// Who says that it is somebody of the list writes nothing but two numbers.
#[test]
fn the_table_grows_with_the_policies_only() {
    let proofs = NetworkListHealth::default();
    let site = entry(LIST).site;
    for number in 0..10_000 {
        let said = proofs.weigh(&site, &format!("Bot{number}"), Identity::Impostor, Timestamp(number));
        assert_eq!(said, Identity::Suspended, "it is not known yet");
    }
    assert!(proofs.standings(Timestamp(10_000)).is_empty());
    proofs.settle(&Snapshot::new(vec![entry(LIST)], 0), Registry::builtin());
    proofs.weigh(&site, "PartnerBot", Identity::Impostor, Timestamp(10_000));
    assert_eq!(proofs.standings(Timestamp(10_000)).len(), 1);
    proofs.settle(&Snapshot::default(), Registry::builtin());
    assert!(proofs.standings(Timestamp(10_000)).is_empty());
}
