//! [`with_date`] passes on the value of the Date header field. Each thread caches the value, and
//! formats it again at most once per second.

use http::HeaderValue;
use std::cell::RefCell;
use std::time::SystemTime;

thread_local! {
    /// The second, and its Date.
    static CACHED_DATE: RefCell<(u64, HeaderValue)> = const { RefCell::new((0, HeaderValue::from_static(""))) };
}

/// Calls `read` with the Date of this second, and returns its result.
pub fn with_date<T>(read: impl FnOnce(&HeaderValue) -> T) -> T {
    let now = SystemTime::now();
    let second = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    CACHED_DATE.with_borrow_mut(|(cached_second, date)| {
        if (*cached_second != second || date.is_empty())
            && let Ok(value) = HeaderValue::try_from(httpdate::fmt_http_date(now))
        {
            *cached_second = second;
            *date = value;
        }
        read(date)
    })
}
