//! [`GateLayer`]: the gate as a tower layer, which wraps the services of an application.

mod builder;

pub use builder::{GateBuilder, OpenError};

use super::service::Gate;
use super::shared::Shared;
use std::path::Path;
use std::sync::Arc;
use tower_layer::Layer;

/// The gate as a tower layer. Cloning is cheap, and clones share everything.
///
/// The gate ends with its last clone: its threads stop, and what it knows is written to the state directory.
///
/// ```no_run
/// # fn main() -> Result<(), crawlgate::middleware::OpenError> {
/// use crawlgate::middleware::GateLayer;
///
/// let gate = GateLayer::open("policies")?;
/// let for_metrics = gate.clone();
/// // In a handler of the application:
/// let text: String = for_metrics.metrics();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct GateLayer(Arc<Shared>);

impl GateLayer {
    /// Loads the policies of a directory, and follows their changes.
    ///
    /// # Errors
    /// See [`OpenError`]. A policy with a mistake is named with its file and line.
    pub fn open(policies: impl AsRef<Path>) -> Result<GateLayer, OpenError> {
        GateLayer::builder(policies).open()
    }

    /// The options of a gate with the policies of a directory. [`GateBuilder::open`] opens it.
    pub fn builder(policies: impl AsRef<Path>) -> GateBuilder {
        GateBuilder::new(policies.as_ref())
    }

    /// All metrics of the gate in the text format of Prometheus, for a handler of the application. `docs/logs-and-metrics.md`
    /// describes them. Blocking for less than a millisecond.
    pub fn metrics(&self) -> String {
        let upkeep = &self.0.upkeep;
        upkeep.set_gauges(&upkeep.status());
        upkeep.instance.metrics.render()
    }
}

impl std::fmt::Debug for GateLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GateLayer").finish_non_exhaustive()
    }
}

impl<S> Layer<S> for GateLayer {
    type Service = Gate<S>;

    fn layer(&self, inner: S) -> Gate<S> {
        Gate { inner, shared: self.0.clone() }
    }
}
