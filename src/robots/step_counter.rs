//! [`count_steps`] counts the work of parsing and matching a robots.txt (for example each byte that
//! is read), in tests only. With this number a test can check, without a clock, that parsing and
//! matching take linear time.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts steps, in tests. Does nothing elsewhere.
#[inline(always)]
pub(super) fn count_steps(steps: usize) {
    #[cfg(test)]
    STEPS.set(STEPS.get() + steps as u64);
    #[cfg(not(test))]
    let _ = steps;
}

/// The steps that `run` takes on this thread.
#[cfg(test)]
pub(super) fn count_steps_of<T>(run: impl FnOnce() -> T) -> u64 {
    let before = STEPS.get();
    run();
    STEPS.get() - before
}
