//! [`StorePeers`] connects this instance of crawlgate with the other instances, through a shared
//! store (Redis or Valkey). The instances exchange facts, such as which crawler fetched which
//! robots.txt. [`StorePeers::write_counts`] writes the request counts of this instance into the
//! store. So the dashboard of each instance can show the sums of all instances.
//!
//! The counts of an hour, a day or a week are always written as a whole. So the next write makes up
//! for a lost one. Counts and facts use different connections: only the facts are needed to judge
//! requests.

use super::ServerError;
use crate::admin::StoreMonitor;
use crate::clock::Clock;
use crate::exchange::shared_store::{EncodedCounts, SharedStore};
use crate::exchange::{ExchangeOptions, ExchangeThread, StoreDeadline, StoreError};
use crate::judge::PeerConfirmation;
use crate::locks::{lock, lock_within};
use crate::peers::{CountsError, ExchangeStatus, ForgetError, Peers};
use crate::scheduler::Scheduler;
use crate::settings::Settings;
use crate::state::history::{PeerPeriodCounts, PeriodLength, RequestHistoryReader};
use crate::state::{RestoredState, StateStore};
use crate::telemetry::Metrics;
use crate::time::Timestamp;
use crate::upkeep::Instance;
use PeriodLength::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often counts are written.
const WRITE_EVERY: Duration = Duration::from_secs(5);
/// How long a page of the dashboard waits for the connection.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// The history has counts some seconds after the requests, so an hour that has just ended is written
/// once more.
const COUNT_DELAY: i64 = 60;
/// The most periods in one write.
const MAX_BATCH: usize = 50;

/// The connection to the other instances.
pub struct StorePeers {
    pub exchange: Arc<ExchangeThread>,
    url: String,
    id: String,
    history: RequestHistoryReader,
    clock: Clock,
    /// The store, and the moment before which all counts are in it.
    connection: Mutex<(SharedStore, Option<Timestamp>)>,
}

impl StorePeers {
    /// Joins the other instances, and writes the counts of this one every five seconds. The judge
    /// and the recorder of this instance share `confirmation` with the exchange. `None` if the
    /// settings have no store. Call it before the first request. Fails without a state directory, and
    /// if the thread of the exchange cannot be started.
    pub fn join(
        settings: &Settings,
        instance: &Arc<Instance>,
        state: &StateStore,
        restored: &RestoredState,
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
        tracing::info!("sharing state with other instances through the store at {url}");
        // For people.
        let host = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        let deadline = StoreDeadline::default();
        let options = ExchangeOptions {
            store: Box::new(SharedStore::new(store.clone(), deadline.clone())),
            deadline: deadline.clone(),
            host,
            peers,
        };
        let exchange = ExchangeThread::start(instance.clone(), state.clone(), restored, options)
            .map_err(ServerError::from_io(
                "cannot start the thread for other instances",
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
            Some(WRITE_EVERY)
        });
        Ok(Some(peers))
    }

    /// The instances for the admin interface. Call it once: it registers the metrics of the store.
    pub fn store_monitor(self: &Arc<StorePeers>, metrics: &Metrics) -> StoreMonitor {
        StoreMonitor {
            url: self.url.clone(),
            peers: self.clone(),
            metrics: metrics.register_store(),
        }
    }

    /// Writes the counts since the last time. A failure is only logged at debug level: the next call
    /// makes up for it.
    pub fn write_counts(&self) {
        let (store, written_until) = &mut *lock(&self.connection);
        // The status shows when the store is unreachable.
        if let Err(error) = self.try_write_counts(store, written_until) {
            tracing::debug!(
                "the counts for the dashboards of other instances were not sent: {error}"
            );
        }
    }

    /// Writes all periods that may have changed since `written_until`, and advances that to a minute
    /// ago, because counts come late. Writes all kept periods if nothing was written yet or the store
    /// has lost the counts.
    fn try_write_counts(
        &self,
        store: &mut SharedStore,
        written_until: &mut Option<Timestamp>,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let now = self.clock.moment().now;
        // A store that lost the counts gets all of them.
        let since = match *written_until {
            Some(until)
                if store.has_counts(&period_name(Week, Week.start_of(until)), &self.id)? =>
            {
                until
            }
            _ => Timestamp(0),
        };
        let mut counts = Vec::new();
        for step in PeriodLength::ALL {
            for start in period_starts(step, since, now) {
                let counted = self.history.period_counts(step, start)?;
                if counted.is_empty() && start != step.start_of(now) {
                    continue;
                }
                counts.push(EncodedCounts {
                    period: period_name(step, start),
                    value: serde_json::to_string(&counted)?,
                    kept: (step.retention_seconds() + 2 * step.seconds()) as u64,
                });
            }
        }
        for counts in counts.chunks(MAX_BATCH) {
            store.put_counts(&self.id, counts)?;
        }
        *written_until = Some(Timestamp(now.0 - COUNT_DELAY));
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

    /// Leaves out counts that this version cannot decode. Also fails if the connection is in use for
    /// longer than `LOCK_TIMEOUT`.
    fn counts(
        &self,
        step: PeriodLength,
        from: Timestamp,
    ) -> Result<Vec<PeerPeriodCounts>, CountsError> {
        let starts = period_starts(step, from, self.clock.moment().now);
        let names: Vec<String> = starts
            .iter()
            .map(|start| period_name(step, *start))
            .collect();
        let connection = lock_within(&self.connection, LOCK_TIMEOUT);
        let mut connection = connection.ok_or_else(|| {
            let late = "the store takes too long for the counts of this instance";
            StoreError::Away(late.to_owned())
        })?;
        let found = connection.0.counts(&names)?;
        let others = starts.into_iter().zip(found).flat_map(|(start, fields)| {
            let others = fields
                .into_iter()
                .filter(|(instance, _)| *instance != self.id);
            // A later version may write another form.
            others.filter_map(move |(instance, value)| {
                let counted = serde_json::from_str(&value).ok()?;
                Some(PeerPeriodCounts {
                    instance,
                    start,
                    counted,
                })
            })
        });
        Ok(others.collect())
    }
}

/// The starts of all kept periods of this length, from the period of `since` to the period of `now`.
fn period_starts(step: PeriodLength, since: Timestamp, now: Timestamp) -> Vec<Timestamp> {
    let first = step.start_of(Timestamp(since.0.max(now.0 - step.retention_seconds())));
    let length = step.seconds();
    (0..=(now.0 - first.0).div_euclid(length))
        .map(|number| Timestamp(first.0 + number * length))
        .collect()
}

/// The key of a period in the store, such as `hour:1700000000`: its length and its start.
fn period_name(step: PeriodLength, start: Timestamp) -> String {
    let step = match step {
        Hour => "hour",
        Day => "day",
        Week => "week",
    };
    format!("{step}:{}", start.0)
}
