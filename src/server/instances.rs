//! The other instances in the running server: [`start`] makes this one a member of those that meet in the store of the
//! settings, and [`report`] shows them to an operator.

use super::ServerError;
use super::counts_of_instances::CountsOfInstances;
use crate::admin::{ForgetRefused, Instances, Operations};
use crate::settings::{Settings, StoreSettings};
use crate::shared_store::SharedStore;
use crate::state::{Remembered, StateStore};
use crate::upkeep::{ExchangeOptions, ExchangeThread, Instance};
use std::sync::Arc;

/// Meets the other instances, if there is a store. To be called before anything is served.
pub(super) fn start(
    settings: &Settings,
    instance: &Arc<Instance>,
    (state, remembered): (&StateStore, &Remembered),
) -> Result<Option<Arc<ExchangeThread>>, ServerError> {
    let Some(store) = settings.store.clone() else { return Ok(None) };
    if settings.state.is_none() {
        return Err(ServerError::StoreWithoutState);
    }
    tracing::info!("other instances are met in {}", store.url);
    let options = ExchangeOptions { store: Box::new(SharedStore::new(store)), host: host_name() };
    ExchangeThread::start((instance.clone(), state.clone()), remembered, options)
        .map(Some)
        .map_err(ServerError::io("cannot start the thread of the exchange with other instances"))
}

/// Shows the instances in the status, and what they counted on the dashboard.
pub(super) fn report(
    operations: &Operations,
    exchange: Option<&Arc<ExchangeThread>>,
    (settings, state): (Option<&StoreSettings>, &StateStore),
) -> Result<Option<Arc<CountsOfInstances>>, ServerError> {
    let Some((exchange, store)) = exchange.zip(settings) else { return Ok(None) };
    let (shown, forgetting) = (exchange.clone(), exchange.clone());
    let (id, clock) = (exchange.status().id, operations.instance.clock.clone());
    let counts = CountsOfInstances::start(store.clone(), id, state.history(), clock);
    let counts = Arc::new(counts.map_err(ServerError::io("cannot start the thread that tells what was counted"))?);
    let of_others = counts.clone();
    operations.set_instances(Instances {
        url: store.url.to_string(),
        status: Box::new(move || shown.status()),
        forget: Box::new(move |id| forgetting.forget(id).map_err(ForgetRefused)),
        counts: Box::new(move |step, from| of_others.of_others(step, from)),
    });
    Ok(Some(counts))
}

/// The name of this machine, for people.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
