//! The value of the Date field, which each thread formats once a second. [`with_date`] gives it as
//! octets, for heads that crawlgate writes itself. [`date_value`] gives it as a [`HeaderValue`],
//! for heads that are maps of fields.

use http::HeaderValue;
use std::cell::RefCell;
use std::time::SystemTime;

thread_local! {
    /// The second, and its Date.
    static DATE: RefCell<(u64, HeaderValue)> = const { RefCell::new((0, HeaderValue::from_static(""))) };
}

/// Calls `read` with the Date of this second. It is formatted only if the second of the thread's
/// last call was another one.
fn with_value<T>(read: impl FnOnce(&HeaderValue) -> T) -> T {
    let now = SystemTime::now();
    let second = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    DATE.with_borrow_mut(|(of, date)| {
        if (*of != second || date.is_empty())
            && let Ok(value) = HeaderValue::try_from(httpdate::fmt_http_date(now))
        {
            *of = second;
            *date = value;
        }
        read(date)
    })
}

/// Calls `write` with the value of the Date field now, for a head that is written as bytes.
pub fn with_date(write: impl FnOnce(&[u8])) {
    with_value(|date| write(date.as_bytes()));
}

/// The value of the Date field now, for a head that is a map.
pub fn date_value() -> HeaderValue {
    with_value(HeaderValue::clone)
}
