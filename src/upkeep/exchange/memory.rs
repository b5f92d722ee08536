//! [`OfInstance`] gives the exchange access to this instance: to its ledger (what crawlers were
//! served), the marks of clients that requested a trap, and the pauses of sites. [`tell`] passes
//! what happens at this instance on to the exchange. Nothing here waits for the sites; `super`
//! explains the locks.

use super::Instance;
use crate::clock::Moment;
use crate::exchange::event::{Event, MarkedClient, PauseTerms, PausedSite, ServedVersion};
use crate::exchange::{Memory, Outbox};
use crate::ledger::{ClientNews, Mark, ServedCopy};
use crate::policy::model::Audience;
use crate::policy::planned_pause::DEFAULT_PAUSE;
use crate::policy::site::ActivePause;
use crate::sites::PauseWord;
use crate::state::Observation;
use crate::time::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// The instance, as the exchange sees it.
pub(super) struct OfInstance<'a> {
    instance: &'a Instance,
    moment: Moment,
    /// What operators said of pauses at other instances.
    pub(super) pauses: Vec<PauseWord>,
    /// Whether what was served lately is not known.
    pub(super) begins_anew: bool,
}

impl<'a> OfInstance<'a> {
    pub(super) fn new(instance: &'a Instance) -> OfInstance<'a> {
        OfInstance {
            instance,
            moment: instance.clock.moment(),
            pauses: Vec::new(),
            begins_anew: false,
        }
    }
}

impl Memory for OfInstance<'_> {
    /// The versions that were served, the marks of clients, and the pauses of run time, each with
    /// its time, and the hosts that are observed. Releases are not remembered.
    fn everything(&self) -> (Vec<(Event, Timestamp)>, Vec<Observation>) {
        let (served, observed) = self.instance.ledger.everything();
        let served = served.into_iter().map(of_copy);
        let marks = self
            .instance
            .behaviours
            .traps
            .list(self.moment)
            .into_iter()
            .map(of_mark);
        let snapshot = self.instance.sites.snapshot();
        let paused = snapshot.sites().iter().filter_map(|entry| {
            let pause = entry.pauses.iter().find(|pause| pause.at_run_time)?;
            let site = entry.site.name.clone();
            Some(of_word(&PauseWord {
                site,
                at: pause.from,
                pause: Some(pause.clone()),
            }))
        });
        (served.chain(marks).chain(paused).collect(), observed)
    }

    /// Hands an event of another instance on to the ledger or the traps. Pauses are collected
    /// for the end of the turn.
    fn heard(&mut self, event: Event, at: Timestamp) {
        let Instance {
            ledger, behaviours, ..
        } = self.instance;
        let traps = &behaviours.traps;
        match event {
            Event::Served(ServedVersion {
                host,
                crawler,
                version,
            }) => {
                ledger.served_elsewhere(
                    &ServedCopy {
                        host,
                        crawler,
                        version,
                        at: at.0,
                    },
                    self.moment.now,
                );
            }
            Event::Marked(MarkedClient {
                site,
                crawler,
                address,
                seconds,
            }) => {
                let until = at.plus(Duration::from_secs(seconds));
                let mark = Mark {
                    site,
                    crawler,
                    address,
                    since: at,
                    until,
                };
                traps.marked_elsewhere(mark, self.moment);
            }
            Event::Released(network) => traps.released_elsewhere(network, at, self.moment),
            // A word that was said a moment ago by a clock that is a little ahead holds at once.
            Event::Paused(paused) => self.pauses.push(to_word(paused, at.min(self.moment.now))),
        }
    }

    fn observed_elsewhere(&mut self, observed: Observation) {
        self.instance
            .ledger
            .observed_elsewhere(&observed, self.moment.now);
    }

    /// The ledger observes all hosts anew from now on. `is_anew` is kept for the end of the turn.
    fn begin(&mut self, is_anew: bool) {
        self.instance.ledger.begin_anew(self.moment.now);
        self.begins_anew |= is_anew;
    }
}

/// From now on puts into the outbox what the ledger and the behaviours record, and no crawler is
/// accused until the first turn. The sites themselves tell others of pauses.
pub(super) fn tell(instance: &Instance, outbox: &Arc<Outbox>) {
    let [served, observed, clients] = [outbox; 3].map(Arc::clone);
    instance.ledger.tell_others(
        move |copy| put(&served, of_copy(copy)),
        move |host| observed.observed(host),
    );
    instance.ledger.set_peers_unknown(true);
    let traps = &instance.behaviours.traps;
    traps.tell_others(Box::new(move |news| put(&clients, of_news(news))));
}

/// Tells of an event.
pub(super) fn put(outbox: &Outbox, happened: (Event, Timestamp)) {
    let (event, at) = happened;
    outbox.happened(event, at);
}

fn of_copy(copy: ServedCopy) -> (Event, Timestamp) {
    let ServedCopy {
        host,
        crawler,
        version,
        at,
    } = copy;
    (
        Event::Served(ServedVersion {
            host,
            crawler,
            version,
        }),
        Timestamp(at),
    )
}

fn of_mark(mark: Mark) -> (Event, Timestamp) {
    let Mark {
        site,
        crawler,
        address,
        since,
        until,
    } = mark;
    (
        Event::Marked(MarkedClient {
            site,
            crawler,
            address,
            seconds: until.since(since).as_secs(),
        }),
        since,
    )
}

fn of_news(news: ClientNews) -> (Event, Timestamp) {
    match news {
        ClientNews::Marked(mark) => of_mark(mark),
        ClientNews::Released { network, at } => (Event::Released(network), at),
    }
}

/// What an operator said of pauses, as an event.
pub(super) fn of_word(word: &PauseWord) -> (Event, Timestamp) {
    let paused = PausedSite {
        site: word.site.clone(),
        pause: word.pause.as_ref().map(|pause| PauseTerms {
            seconds: pause.until.since(pause.from).as_secs(),
            retry_after: pause.retry_after,
            everyone: pause.audience == Audience::Everyone,
            robots_txt: pause.robots_txt_until.is_some(),
        }),
    };
    (Event::Paused(paused), word.at)
}

/// What an operator of another instance did, as a change of pauses here that began at `at`. The
/// inverse of `of_word`.
fn to_word(paused: PausedSite, at: Timestamp) -> PauseWord {
    let PausedSite { site, pause } = paused;
    let pause = pause.map(|terms| ActivePause {
        audience: terms.audience(),
        from: at,
        until: at.plus(Duration::from_secs(terms.seconds)),
        retry_after: terms.retry_after,
        robots_txt_until: terms.robots_txt.then(|| at.plus(DEFAULT_PAUSE)),
        at_run_time: true,
    });
    PauseWord { site, at, pause }
}
