//! [`Workspace`]: what one thread keeps from request to request, so that judging neither locks nor allocates for it. Must
//! not know how a request is judged.

use super::claims::Claims;
use crate::verdict::Scratch;
use std::cell::RefCell;

thread_local! {
    /// Judging runs to its end on one thread.
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

/// What a thread keeps.
#[derive(Default)]
pub(super) struct Workspace {
    /// The claims of the user agents that came last.
    pub claims: Claims,
    /// The memory of a decision.
    pub scratch: Scratch,
}

/// Runs with the workspace of this thread.
#[inline]
pub(super) fn with<T>(run: impl FnOnce(&mut Workspace) -> T) -> T {
    WORKSPACE.with_borrow_mut(run)
}
