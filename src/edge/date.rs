//! The value of Date, written once a second.

use std::cell::RefCell;
use std::time::SystemTime;

thread_local! {
    /// The second, and how HTTP writes it.
    static DATE: RefCell<(u64, String)> = RefCell::default();
}

pub(super) fn with_date(write: impl FnOnce(&[u8])) {
    let now = SystemTime::now();
    let second = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    DATE.with_borrow_mut(|(of, date)| {
        if *of != second || date.is_empty() {
            (*of, *date) = (second, httpdate::fmt_http_date(now));
        }
        write(date.as_bytes());
    });
}
