//! The other instances in the running server: [`start`] makes this one a member of those that meet in the store of the
//! settings, and [`report`] shows them to an operator.

use super::ServerError;
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

/// Shows the instances in the status.
pub(super) fn report(
    operations: &Operations,
    exchange: Option<&Arc<ExchangeThread>>,
    settings: Option<&StoreSettings>,
) {
    let Some((exchange, store)) = exchange.zip(settings) else { return };
    let (shown, forgetting) = (exchange.clone(), exchange.clone());
    operations.set_instances(Instances {
        url: store.url.to_string(),
        status: Box::new(move || shown.status()),
        forget: Box::new(move |id| forgetting.forget(id).map_err(ForgetRefused)),
    });
}

/// The name of this machine, for people.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
