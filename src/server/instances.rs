//! [`StorePeers`]: the other instances of crawlgate, with which this one exchanges facts through the
//! shared store (Redis or Valkey) that the settings name. [`StorePeers::write_counts`] writes the
//! request counts of this instance into the store, so that the dashboard of each instance shows the
//! sums of all.
//!
//! The counts of an hour, a day or a week are always written as a whole, so that the next write
//! makes up for a lost one. No request is judged by these counts, so they use a connection of their
//! own.

use super::ServerError;
use crate::admin::Instances;
use crate::clock::Clock;
use crate::exchange::{Deadline, ExchangeOptions, ExchangeThread, StoreError};
use crate::judge::PeerConfirmation;
use crate::locks::{lock, lock_within};
use crate::peers::{CountsError, ExchangeStatus, ForgetError, Peers};
use crate::scheduler::Scheduler;
use crate::settings::Settings;
use crate::shared_store::{CountsOfPeriod, SharedStore};
use crate::state::history::{HistoryReader, Step, Told};
use crate::state::{Remembered, StateStore};
use crate::telemetry::Metrics;
use crate::time::Timestamp;
use crate::upkeep::Instance;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often counts are written.
const EVERY: Duration = Duration::from_secs(5);
/// How long a page waits for the connection.
const PATIENCE: Duration = Duration::from_secs(2);
/// Counts are in the history some seconds after the requests: an hour that has just ended is
/// written once more.
const LATE: i64 = 60;
/// Periods that are written at once.
const AT_ONCE: usize = 50;

/// The other instances, as this one meets them.
pub struct StorePeers {
    pub exchange: Arc<ExchangeThread>,
    url: String,
    id: String,
    history: HistoryReader,
    clock: Clock,
    /// The store, and the moment before which everything that was counted is in it.
    connection: Mutex<(SharedStore, Option<Timestamp>)>,
}

impl StorePeers {
    /// Joins the other instances, which the judge and the recorder of this instance know by
    /// `confirmation`, and writes the counts of this one every five seconds. `None` if the settings
    /// name no store. To be called before a request is served. Fails without a state
    /// directory, and if the thread of the exchange cannot be started.
    pub fn join(
        settings: &Settings,
        instance: &Arc<Instance>,
        state: &StateStore,
        remembered: &Remembered,
        confirmation: Option<Arc<PeerConfirmation>>,
        scheduler: &Scheduler,
    ) -> Result<Option<Arc<StorePeers>>, ServerError> {
        let Some((store, peers)) = settings.store.clone().zip(confirmation) else {
            return Ok(None);
        };
        if settings.state.is_none() {
            return Err(ServerError::WithoutState("store"));
        }
        let url = store.url.to_string();
        tracing::info!("other instances are met in {url}");
        // For people.
        let host = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        let deadline = Deadline::default();
        let options = ExchangeOptions {
            store: Box::new(SharedStore::new(store.clone(), deadline.clone())),
            deadline: deadline.clone(),
            host,
            peers,
        };
        let exchange = ExchangeThread::start(instance.clone(), state.clone(), remembered, options)
            .map_err(ServerError::io(
                "cannot start the thread of the exchange with other instances",
            ))?;
        let peers = Arc::new(StorePeers {
            id: exchange.status().id,
            exchange,
            url,
            history: state.history(),
            clock: instance.clock.clone(),
            connection: Mutex::new((SharedStore::new(store, deadline), None)),
        });
        let writing = peers.clone();
        scheduler.add("counts", move |_| {
            writing.write_counts();
            Some(EVERY)
        });
        Ok(Some(peers))
    }

    /// What operators see of them. To be called once: it registers the metrics of the store.
    pub fn shown(self: &Arc<StorePeers>, metrics: &Metrics) -> Instances {
        Instances {
            url: self.url.clone(),
            peers: self.clone(),
            metrics: metrics.store(),
        }
    }

    /// Writes what was counted since the last time. A failure is only logged for `RUST_LOG=debug`:
    /// the next call makes up for it.
    pub fn write_counts(&self) {
        let (store, written_until) = &mut *lock(&self.connection);
        // The status says when the store is away; what was not told is told the next time.
        if let Err(error) = self.try_to_write(store, written_until) {
            tracing::debug!("counts for the dashboards of other instances were not told: {error}");
        }
    }

    /// Writes all periods that may have changed since `written_until`, and moves that on: to a minute
    /// ago, because counts come late. Writes all periods that are kept, if nothing was written yet
    /// or the store has lost the counts.
    fn try_to_write(
        &self,
        store: &mut SharedStore,
        written_until: &mut Option<Timestamp>,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let now = self.clock.moment().now;
        // A store that lost the counts is told everything.
        let since = match *written_until {
            Some(until)
                if store.has_counts(&name(Step::Week, Step::Week.begin(until)), &self.id)? =>
            {
                until
            }
            _ => Timestamp(0),
        };
        let mut counts = Vec::new();
        for step in Step::ALL {
            for start in periods(step, since, now) {
                let counted = self.history.counted(step, start, now)?;
                if counted.is_empty() && start != step.begin(now) {
                    continue;
                }
                counts.push(CountsOfPeriod {
                    period: name(step, start),
                    value: serde_json::to_string(&counted)?,
                    kept: (step.kept() + 2 * step.seconds()) as u64,
                });
            }
        }
        for counts in counts.chunks(AT_ONCE) {
            store.put_counts(&self.id, counts)?;
        }
        *written_until = Some(Timestamp(now.0 - LATE));
        Ok(())
    }
}

impl Peers for StorePeers {
    fn status(&self) -> ExchangeStatus {
        self.exchange.status()
    }

    fn forget(&self, id: &str) -> Result<(), ForgetError> {
        self.exchange.forget(id)
    }

    /// Counts in a form that this version cannot read are left out. It fails also if the connection
    /// is in use for longer than `PATIENCE`, most likely for the counts of this instance.
    fn counts(&self, step: Step, from: Timestamp) -> Result<Vec<Told>, CountsError> {
        let starts = periods(step, from, self.clock.moment().now);
        let names: Vec<String> = starts.iter().map(|start| name(step, *start)).collect();
        let connection = lock_within(&self.connection, PATIENCE);
        let mut connection = connection.ok_or_else(|| {
            let late = "the store takes long for the counts of this instance";
            StoreError::Away(late.to_owned())
        })?;
        let found = connection.0.counts(&names)?;
        let others = starts.into_iter().zip(found).flat_map(|(start, fields)| {
            let others = fields
                .into_iter()
                .filter(|(instance, _)| *instance != self.id);
            // What a later crawlgate wrote in another form is missing.
            others.filter_map(move |(instance, value)| {
                let counted = serde_json::from_str(&value).ok()?;
                Some(Told {
                    instance,
                    start,
                    counted,
                })
            })
        });
        Ok(others.collect())
    }
}

/// The beginnings of all periods of `step` that are kept, from the one with `since` to that with
/// `now`.
fn periods(step: Step, since: Timestamp, now: Timestamp) -> Vec<Timestamp> {
    let first = step.begin(Timestamp(since.0.max(now.0 - step.kept())));
    let length = step.seconds();
    (0..=(now.0 - first.0).div_euclid(length))
        .map(|number| Timestamp(first.0 + number * length))
        .collect()
}

/// The name of a period in the store, such as `hour:1700000000`: its kind and its beginning.
fn name(step: Step, start: Timestamp) -> String {
    let step = match step {
        Step::Hour => "hour",
        Step::Day => "day",
        Step::Week => "week",
    };
    format!("{step}:{}", start.0)
}
