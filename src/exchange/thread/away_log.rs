//! [`AwayLog`] logs when the shared store cannot be reached, and when it can be reached again. It
//! also logs when the reason changes: an operator may have mended one thing and broken another. A
//! store may fail in another way at each attempt, so such lines are at least a minute apart.

use crate::exchange::{Away, ExchangeStatus};
use crate::locks::lock;
use std::sync::Mutex;
use std::time::Duration;

/// The least time between two lines of one absence.
const EVERY: Duration = Duration::from_secs(60);

/// What was last said of the present absence, and when.
#[derive(Default)]
pub(super) struct AwayLog(Mutex<Option<(Away, Duration)>>);

/// What is to be said now.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Away(Away),
    Back(Away),
}

impl AwayLog {
    /// Logs that the store is away, or that it answers again, if that is to be said now.
    pub(super) fn note(&self, status: &ExchangeStatus, lived: Duration) {
        match self.next(status.away.as_ref(), lived) {
            Some(Line::Away(Away { since, error, .. })) => tracing::error!(
                "{error}; crawlgate goes on without the store (since {since}): it calls no request a violation, and {} until \
                 the store can be used",
                match status.withholds_robots_txt_since {
                    Some(_) => "answers /robots.txt with 503",
                    None => "keeps the robots.txt in force",
                }
            ),
            Some(Line::Back(Away { since, .. })) => {
                tracing::info!("the store answers again; it was away since {since}");
            }
            None => {}
        }
    }

    /// What is to be said now: that the store is away, at first and when the error changed and the
    /// last line is a minute old; that it is back, once. `None` if there is nothing to say.
    fn next(&self, away: Option<&Away>, lived: Duration) -> Option<Line> {
        let mut said = lock(&self.0);
        let Some(away) = away else {
            return said.take().map(|(away, _)| Line::Back(away));
        };
        if let Some((known, at)) = &*said
            && (known.error == away.error || lived.saturating_sub(*at) < EVERY)
        {
            return None;
        }
        *said = Some((away.clone(), lived));
        Some(Line::Away(away.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    #[test]
    fn another_reason_is_said_and_not_at_each_attempt() {
        let log = AwayLog::default();
        let away = |error: &str| Away {
            since: Timestamp(1),
            error: error.into(),
            is_refused: false,
        };
        let next = |away: Option<&Away>, second| log.next(away, Duration::from_secs(second));
        assert_eq!(next(None, 0), None);
        let [refused, closed] = ["refused", "closed"].map(away);
        let said = |away: &Away| Some(Line::Away(away.clone()));
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
        assert_eq!(next(None, 501), Some(Line::Back(closed)));
        assert_eq!(next(None, 502), None);
        assert_eq!(next(Some(&refused), 503), said(&refused), "another absence");
    }
}
