//! The value of the Date header field, as bytes ([`with_date`]) and as a [`HeaderValue`]
//! ([`date_value`]). Each thread caches the value, and formats it again at most once per second.

use http::HeaderValue;
use std::cell::RefCell;
use std::time::SystemTime;

thread_local! {
    /// The second, and its Date.
    static CACHED_DATE: RefCell<(u64, HeaderValue)> = const { RefCell::new((0, HeaderValue::from_static(""))) };
}

/// Calls `read` with the Date of this second.
fn with_date_value<T>(read: impl FnOnce(&HeaderValue) -> T) -> T {
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

/// Calls `write` with the present value of the Date field.
pub fn with_date(write: impl FnOnce(&[u8])) {
    with_date_value(|date| write(date.as_bytes()));
}

/// The present value of the Date field.
pub fn date_value() -> HeaderValue {
    with_date_value(HeaderValue::clone)
}
