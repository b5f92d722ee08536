//! [`OutageLogger`] writes a log line when the store that crawlgate instances share becomes
//! unusable, and another one when the store can be used again. If the error changes during an
//! outage, [`OutageLogger`] logs the new error, but at most one error a minute.

use crate::exchange::{ExchangeStatus, StoreOutage};
use crate::locks::lock;
use std::sync::Mutex;
use std::time::Duration;

/// The minimum time between two lines about one outage.
const MIN_LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The outage as last logged, and when.
#[derive(Default)]
pub struct OutageLogger(Mutex<Option<(StoreOutage, Duration)>>);

impl OutageLogger {
    /// Logs an outage or its end, if that is due.
    pub fn log_status(&self, status: &ExchangeStatus, monotonic: Duration) {
        let Some(StoreOutage { since, error }) = self.due_outage(status.away.as_ref(), monotonic)
        else {
            return;
        };
        if status.away.is_none() {
            tracing::info!("the store answers again, after an outage since {since}");
        } else {
            tracing::error!(
                "{error}; crawlgate goes on without the store (since {since}): it counts no violations and {} until \
                 the store can be used",
                match status.withholds_robots_txt_since {
                    Some(_) => "answers /robots.txt with 503",
                    None => "keeps the current robots.txt",
                }
            );
        }
    }

    /// Returns the outage if it is new, or if its error changed and the last line is a minute old.
    /// Returns an outage that ended once. Otherwise `None`.
    fn due_outage(&self, away: Option<&StoreOutage>, monotonic: Duration) -> Option<StoreOutage> {
        let mut said = lock(&self.0);
        let Some(away) = away else {
            return said.take().map(|(away, _)| away);
        };
        if let Some((known, at)) = &*said
            && (known.error == away.error || monotonic.saturating_sub(*at) < MIN_LOG_INTERVAL)
        {
            return None;
        }
        *said = Some((away.clone(), monotonic));
        Some(away.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    #[test]
    fn changed_error_is_logged_at_most_once_a_minute() {
        let log = OutageLogger::default();
        let away = |error: &str| StoreOutage {
            since: Timestamp(1),
            error: error.into(),
        };
        let next =
            |away: Option<&StoreOutage>, second| log.due_outage(away, Duration::from_secs(second));
        assert_eq!(next(None, 0), None);
        let [refused, closed] = ["refused", "closed"].map(away);
        let said = |away: &StoreOutage| Some(away.clone());
        assert_eq!(next(Some(&refused), 1), said(&refused));
        // It changes at each attempt, and then stays another one.
        let flaps = (2..61).filter_map(|second| {
            next(
                Some(if second % 2 == 0 { &closed } else { &refused }),
                second,
            )
        });
        assert_eq!(flaps.count(), 0);
        assert_eq!(next(Some(&closed), 61), said(&closed));
        assert_eq!(next(Some(&closed), 500), None, "the same reason");
        assert_eq!(next(None, 501), said(&closed));
        assert_eq!(next(None, 502), None);
        assert_eq!(next(Some(&refused), 503), said(&refused), "another absence");
    }
}
