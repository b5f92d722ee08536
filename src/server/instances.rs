//! The exchange with other instances of crawlgate, in the running server. [`start`] joins those that meet in the store of
//! the settings, and [`report`] shows them to an operator. [`CountsOfInstances`] writes the counts of this instance into
//! the store, so that the dashboard of each shows the sums of all.
//!
//! The counts of an hour, a day or a week are written whole, again and again, so that the next write replaces a lost one.
//! No request is judged by these counts, so they have a connection of their own.

use super::ServerError;
use crate::admin::{Instances, Operations};
use crate::clock::Clock;
use crate::locks::lock;
use crate::settings::{Settings, StoreSettings};
use crate::shared_store::{CountsOfPeriod, SharedStore};
use crate::state::history::{HistoryReader, Step, Told};
use crate::state::{Remembered, StateStore};
use crate::time::Timestamp;
use crate::upkeep::{ExchangeOptions, ExchangeThread, Instance, Repeated};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often counts are written.
const EVERY: Duration = Duration::from_secs(5);
/// Counts are in the history some seconds after the requests: an hour that has just ended is written once more.
const LATE: i64 = 60;
/// Periods that are written at once.
const AT_ONCE: usize = 50;

/// Joins the other instances, if there is a store. To be called before a request is served.
pub fn start(
    settings: &Settings,
    instance: &Arc<Instance>,
    (state, remembered): (&StateStore, &Remembered),
) -> Result<Option<Arc<ExchangeThread>>, ServerError> {
    let Some(store) = settings.store.clone() else { return Ok(None) };
    if settings.state.is_none() {
        return Err(ServerError::WithoutState("store"));
    }
    tracing::info!("other instances are met in {}", store.url);
    let options = ExchangeOptions { store: Box::new(SharedStore::new(store)), host: host_name() };
    ExchangeThread::start((instance.clone(), state.clone()), remembered, options)
        .map(Some)
        .map_err(ServerError::io("cannot start the thread of the exchange with other instances"))
}

/// Shows the instances in the status, and what they counted on the dashboard.
pub fn report(
    operations: &Operations,
    exchange: Option<&Arc<ExchangeThread>>,
    (settings, state): (Option<&StoreSettings>, &StateStore),
) -> Result<Option<Arc<CountsOfInstances>>, ServerError> {
    let Some((exchange, store)) = exchange.zip(settings) else { return Ok(None) };
    let (id, clock) = (exchange.status().id, operations.instance.clock.clone());
    let counts = CountsOfInstances::start(store.clone(), id, state.history(), clock);
    let counts = Arc::new(counts.map_err(ServerError::io("cannot start the thread that tells what was counted"))?);
    let of_others = counts.clone();
    let _ = operations.instances.set(Instances {
        url: store.url.to_string(),
        exchange: exchange.clone(),
        counts: Box::new(move |step, from| of_others.of_others(step, from)),
    });
    Ok(Some(counts))
}

/// The name of this machine, for people.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Writes the counts of this instance, and reads those of the others.
pub struct CountsOfInstances {
    shared: Arc<Counts>,
    _thread: Repeated,
}

struct Counts {
    id: String,
    history: HistoryReader,
    clock: Clock,
    connection: Mutex<StoreConnection>,
}

struct StoreConnection {
    store: SharedStore,
    /// Everything that was counted before this moment is in the store.
    told_until: Option<Timestamp>,
}

impl CountsOfInstances {
    /// Starts the thread that writes.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(store: StoreSettings, id: String, history: HistoryReader, clock: Clock) -> std::io::Result<Self> {
        let connection = Mutex::new(StoreConnection { store: SharedStore::new(store), told_until: None });
        let shared = Arc::new(Counts { id, history, clock, connection });
        let telling = shared.clone();
        let thread = Repeated::start("counts", move || {
            telling.tell();
            EVERY
        })?;
        Ok(CountsOfInstances { shared, _thread: thread })
    }

    /// Writes what was counted since the last time.
    pub fn tell(&self) {
        self.shared.tell();
    }

    /// The counts of the other instances since a moment.
    ///
    /// # Errors
    /// The store does not answer, for this reason.
    pub fn of_others(&self, step: Step, from: Timestamp) -> Result<Vec<Told>, String> {
        let Counts { id, clock, connection, .. } = &*self.shared;
        let starts = periods(step, from, now(clock));
        let names: Vec<String> = starts.iter().map(|start| name(step, *start)).collect();
        let mut connection = lock(connection);
        let found = connection.store.counts(&names).map_err(|error| error.to_string())?;
        let others = starts.into_iter().zip(found).flat_map(|(start, fields)| {
            let others = fields.into_iter().filter(|(instance, _)| instance != id);
            // What a later crawlgate wrote in another form is missing.
            others.filter_map(move |(instance, value)| {
                let counted = serde_json::from_str(&value).ok()?;
                Some(Told { instance, start, counted })
            })
        });
        Ok(others.collect())
    }
}

impl Counts {
    fn tell(&self) {
        let mut connection = lock(&self.connection);
        // The status says when the store is away; what was not told is told the next time.
        if let Err(error) = self.try_to_tell(&mut connection) {
            tracing::debug!("counts for the dashboards of other instances were not told: {error}");
        }
    }

    fn try_to_tell(&self, connection: &mut StoreConnection) -> Result<(), String> {
        let StoreConnection { store, told_until } = connection;
        let now = now(&self.clock);
        let week = told_until.map(|until| name(Step::Week, Step::Week.begin(until)));
        let is_there = match week {
            Some(week) => store.has_counts(&week, &self.id).map_err(|error| error.to_string())?,
            None => false,
        };
        // A store that lost them is told everything.
        let since = told_until.filter(|_| is_there).unwrap_or(Timestamp(0));
        let mut counts = Vec::new();
        for step in Step::ALL {
            for start in periods(step, since, now) {
                let counted = self.history.counted(step, start, now).map_err(|error| error.to_string())?;
                if counted.is_empty() && start != step.begin(now) {
                    continue;
                }
                let value = serde_json::to_string(&counted).map_err(|error| error.to_string())?;
                let kept = u64::try_from(step.kept() + 2 * step.seconds()).unwrap_or_default();
                counts.push(CountsOfPeriod { period: name(step, start), value, kept });
            }
        }
        for counts in counts.chunks(AT_ONCE) {
            store.put_counts(&self.id, counts).map_err(|error| error.to_string())?;
        }
        *told_until = Some(Timestamp(now.0 - LATE));
        Ok(())
    }
}

fn now(clock: &Clock) -> Timestamp {
    Timestamp::from(clock.now())
}

/// The periods since a moment that are kept.
fn periods(step: Step, since: Timestamp, now: Timestamp) -> Vec<Timestamp> {
    let first = step.begin(Timestamp(since.0.max(now.0 - step.kept())));
    let length = step.seconds();
    (0..=(now.0 - first.0).div_euclid(length)).map(|number| Timestamp(first.0 + number * length)).collect()
}

fn name(step: Step, start: Timestamp) -> String {
    let step = match step {
        Step::Hour => "hour",
        Step::Day => "day",
        Step::Week => "week",
    };
    format!("{step}:{}", start.0)
}
