//! The threads that work beside the requests: [`Background`]. They are those of `upkeep`, and the one that takes renewed
//! certificates. Must not know listeners or Pingora.

use super::ServerError;
use super::rooms::Rooms;
use crate::edge::Certificates;
use crate::settings::Settings;
use crate::time::Timestamp;
use crate::upkeep::{Instance, Repeated, UpkeepThreads};
use std::sync::Arc;
use std::time::Duration;

/// How often the files of certificates are looked at.
const RENEWAL: Duration = Duration::from_secs(10);
/// The running threads. All but the ledger's end when this is dropped.
pub struct Background {
    upkeep: UpkeepThreads,
    _certificates: Option<Repeated>,
}

impl Background {
    /// Starts them.
    pub fn start(
        settings: &Settings,
        rooms: &Rooms,
        certificates: Arc<Certificates>,
    ) -> Result<Background, ServerError> {
        let operations = rooms.operations.clone();
        let reload = move || drop(operations.reload());
        let operations = rooms.operations.clone();
        let keep_time = move || {
            operations.warn_of_setup();
            operations.keep_time()
        };
        let upkeep =
            UpkeepThreads::start((rooms.instance.clone(), rooms.store.clone()), &settings.policies, reload, keep_time)
                .map_err(ServerError::io("cannot start the threads of policies and the ledger"))?;
        Ok(Background { upkeep, _certificates: renewing(rooms.instance.clone(), certificates)? })
    }

    /// Ends them. The ledger is stored; nothing may be served any more.
    pub fn close(self) {
        self.upkeep.close();
    }
}

/// Takes renewed certificates, if there are any to renew.
fn renewing(instance: Arc<Instance>, certificates: Arc<Certificates>) -> Result<Option<Repeated>, ServerError> {
    if certificates.is_empty() {
        return Ok(None);
    }
    let renew = move || {
        certificates.renew(Timestamp::from(instance.clock.now()), &instance.metrics);
        RENEWAL
    };
    Repeated::start("certificates", renew)
        .map(Some)
        .map_err(ServerError::io("cannot start the thread for certificates"))
}
