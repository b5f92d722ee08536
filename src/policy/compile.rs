//! A checked policy into a compiled [`Site`](super::Site).

pub mod hosts;
pub mod standings;
pub mod tags;

use super::{Policy, Site};
use crate::crawlers::Registry;
use crate::yaml::Diagnostics;
use std::sync::Arc;

/// The policy cannot be used; says why.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the policy cannot be compiled")]
pub struct CompileError {
    /// What is wrong.
    pub diagnostics: Diagnostics,
}

/// Compiles a policy: renders its robots.txt, prepares matching, standings, answers and tag plans. Runs neither the
/// policy's tests nor the interlocks.
///
/// # Errors
/// When the file would pass 500 KiB.
pub fn compile(policy: Arc<Policy>, registry: &'static Registry) -> Result<Site, CompileError> {
    let _ = (policy, registry);
    todo!()
}
