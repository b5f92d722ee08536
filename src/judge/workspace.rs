//! [`Workspace`]: what one thread keeps from request to request, so that judging neither locks nor allocates for it. Must
//! not know how a request is judged.

use super::claims::Claims;
use crate::verdict::Scratch;
use std::cell::RefCell;

/// Of so many requests of a thread one is timed.
const TIMED: u32 = 16;

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
    requests: u32,
}

impl Workspace {
    /// Whether this request is timed. The first one is.
    pub fn is_timed(&mut self) -> bool {
        let is_timed = self.requests.is_multiple_of(TIMED);
        self.requests = self.requests.wrapping_add(1);
        is_timed
    }
}

/// Runs with the workspace of this thread.
pub(super) fn with<T>(run: impl FnOnce(&mut Workspace) -> T) -> T {
    WORKSPACE.with_borrow_mut(run)
}
