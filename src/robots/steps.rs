//! [`took`] counts the steps of reading and matching, in tests alone. So a test can check without a
//! clock that time is linear.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts steps, in tests. Does nothing elsewhere.
#[inline(always)]
pub(super) fn took(steps: usize) {
    #[cfg(test)]
    STEPS.set(STEPS.get() + steps as u64);
    #[cfg(not(test))]
    let _ = steps;
}

/// The steps that something takes on this thread.
#[cfg(test)]
pub(super) fn of<T>(run: impl FnOnce() -> T) -> u64 {
    let before = STEPS.get();
    run();
    STEPS.get() - before
}
