//! Conversion between the records of this instance (what it published and when, which hosts a site
//! had and when, since when it observes a host, files) and the [`SharedFact`]s of the shared store.
//! Times are in seconds of the store's clock, and keys are unique across instances and runs.
//!
//! | key | value |
//! |---|---|
//! | `p RUN NUMBER SITE` | a publication |
//! | `t RUN NUMBER HOSTS` | the time for which hosts were a site's |
//! | `o HOST INSTANCE` | since when the instance observes the host |
//! | `v VERSION` | the file, in base64 |
//! | `g INSTANCE` | none: an operator says that the instance is gone |
//!
//! Other keys without a value are in `event`.

use super::SharedFact;
use crate::policy::Version;
use crate::policy::decode::parse_host;
use crate::publications::{Change, Publication, Published, Span, Tenure, VersionFile};
use crate::state::{AsWritten, Observation};
use crate::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The clock of this instance beside that of the store, at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clocks {
    /// Milliseconds of the store's clock.
    pub store: i64,
    /// Milliseconds by which the own clock is ahead.
    pub ahead: i64,
}

impl Clocks {
    /// The time of the store, in seconds.
    pub fn now(self) -> i64 {
        self.store.div_euclid(1_000)
    }

    /// A moment by the own clock, by that of the store.
    pub fn to_store(self, own: Timestamp) -> i64 {
        own.0.saturating_sub(self.seconds_ahead())
    }

    /// A moment by the clock of the store (in seconds), by the own clock, and two seconds later.
    /// Both are whole seconds, both differences are rounded, and asking for the time takes some: a
    /// copy is taken for two seconds younger rather than for older than it is.
    pub fn to_own(self, store: i64) -> Timestamp {
        Timestamp(self.nearest(store).0.saturating_add(2))
    }

    /// As [`Clocks::to_own`], without the two seconds: as exactly as it is known.
    pub fn nearest(self, store: i64) -> Timestamp {
        Timestamp(store.saturating_add(self.seconds_ahead()))
    }

    /// By how many seconds the own clock is ahead of the store's, rounded to the nearest.
    fn seconds_ahead(self) -> i64 {
        self.ahead.saturating_add(500).div_euclid(1_000)
    }
}

#[derive(Serialize, Deserialize)]
struct PublicationValue {
    answered: Answered,
    identities: u64,
    tells: bool,
    since: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<(i64, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unreported: Option<i64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answered {
    Version(String),
    Unavailable,
    Unknown,
    UnknownOrUnavailable,
}

#[derive(Serialize, Deserialize)]
struct TenureValue {
    site: String,
    since: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<(i64, u64)>,
}

#[derive(Serialize, Deserialize)]
struct ObservationValue {
    site: String,
    since: i64,
    seen: i64,
    named: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<u64>,
}

pub(super) fn json(value: &impl Serialize) -> String {
    // Of numbers and texts: this cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}

/// The key of a publication of a run, by the number of the change that it began with.
pub fn publication_key(run: &str, publication: &Publication) -> String {
    format!(
        "p\n{run}\n{}\n{}",
        publication.span.since.number, publication.site
    )
}

/// The key of a tenure of a run, by the number of the change that it began with. The hosts are
/// empty for every other host.
pub fn tenure_key(run: &str, tenure: &Tenure) -> String {
    let hosts = tenure
        .pattern
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    format!("t\n{run}\n{}\n{hosts}", tenure.span.since.number)
}

impl OfLog {
    /// The fact by which others are told the record under a key, at a time of the store's clock.
    /// Times in it are converted to the store's clock.
    pub fn fact(&self, key: &str, at: i64, clocks: Clocks) -> SharedFact {
        let span = self.span();
        let since = clocks.to_store(span.since.at);
        let until = span
            .until
            .map(|until| (clocks.to_store(until.at), until.number));
        let value = match self {
            OfLog::Publication(Publication {
                published,
                identities,
                tells,
                unreported_until,
                ..
            }) => json(&PublicationValue {
                answered: match published {
                    Published::Version(version) => Answered::Version(version.to_string()),
                    Published::Unavailable => Answered::Unavailable,
                    Published::Unknown => Answered::Unknown,
                    Published::UnknownOrUnavailable => Answered::UnknownOrUnavailable,
                },
                identities: *identities,
                tells: *tells,
                since,
                until,
                unreported: unreported_until.map(|until| clocks.to_store(until)),
            }),
            OfLog::Tenure(Tenure { site, .. }) => json(&TenureValue {
                site: site.clone(),
                since,
                until,
            }),
        };
        SharedFact {
            key: key.to_owned(),
            at,
            value,
        }
    }

    /// The version that was published, if it is known.
    pub fn version(&self) -> Option<Version> {
        match self {
            OfLog::Publication(publication) => publication.published.version(),
            OfLog::Tenure(_) => None,
        }
    }

    /// Whether it has no end yet.
    pub fn is_open(&self) -> bool {
        self.span().until.is_none()
    }

    /// When it was in force.
    fn span(&self) -> Span {
        match self {
            OfLog::Publication(publication) => publication.span,
            OfLog::Tenure(tenure) => tenure.span,
        }
    }

    /// Notes that it never was in force: it ends by the change that it began with, so that it
    /// counts for no moment.
    pub fn never_was(&mut self, at: Timestamp) {
        let span = match self {
            OfLog::Publication(publication) => &mut publication.span,
            OfLog::Tenure(tenure) => &mut tenure.span,
        };
        span.until = Some(Change {
            number: span.since.number,
            at,
        });
    }
}

/// A record of the log of an instance: what it published, or which hosts were a site's.
#[derive(Clone, PartialEq)]
pub enum OfLog {
    /// A publication.
    Publication(Publication),
    /// A tenure.
    Tenure(Tenure),
}

/// A span of the store's times, converted to the own clock. `until` is the time and the number of
/// the change that ended it.
fn span_of(number: u64, since: i64, until: Option<(i64, u64)>, clocks: Clocks) -> Span {
    let until = until.map(|(at, number)| Change {
        number,
        at: clocks.to_own(at),
    });
    Span {
        since: Change {
            number,
            at: clocks.to_own(since),
        },
        until,
    }
}

/// Reads a publication or a tenure from a fact, with the run that it is of, and times by the own
/// clock. `None` where the key is another kind's or the value cannot be read. A version that cannot
/// be read counts as unknown.
pub fn of_log<'a>(key: &'a str, value: &str, clocks: Clocks) -> Option<(&'a str, OfLog)> {
    let mut parts = key.splitn(4, '\n');
    let kind = parts.next()?;
    let run = parts.next()?;
    let number = parts.next()?.parse().ok()?;
    let name = parts.next()?;
    let read = match kind {
        "p" => {
            let value: PublicationValue = serde_json::from_str(value).ok()?;
            OfLog::Publication(Publication {
                site: name.to_owned(),
                published: match value.answered {
                    Answered::Version(id) => {
                        Version::parse(&id).map_or(Published::Unknown, Published::Version)
                    }
                    Answered::Unavailable => Published::Unavailable,
                    Answered::Unknown => Published::Unknown,
                    Answered::UnknownOrUnavailable => Published::UnknownOrUnavailable,
                },
                identities: value.identities,
                tells: value.tells,
                span: span_of(number, value.since, value.until, clocks),
                unreported_until: value.unreported.map(|until| clocks.to_own(until)),
            })
        }
        "t" => {
            let value: TenureValue = serde_json::from_str(value).ok()?;
            let pattern = if name.is_empty() {
                None
            } else {
                Some(parse_host(name).ok()?)
            };
            OfLog::Tenure(Tenure {
                pattern,
                site: value.site,
                span: span_of(number, value.since, value.until, clocks),
            })
        }
        _ => return None,
    };
    Some((run, read))
}

/// The fact that an instance observes a host, and since when.
pub fn observation(instance: &str, observed: &Observation, at: i64, clocks: Clocks) -> SharedFact {
    let value = ObservationValue {
        site: observed.site.clone(),
        // Of a host that is new with crawlgate it is the beginning of time, by every clock.
        since: if observed.since.0.0 <= 0 {
            observed.since.0.0
        } else {
            clocks.to_store(observed.since.0)
        },
        seen: clocks.to_store(observed.seen),
        named: observed.named,
        cache: observed.behind_cache,
    };
    SharedFact {
        key: format!("o\n{}\n{instance}", observed.host),
        at,
        value: json(&value),
    }
}

/// Reads the observation of another instance, with times by the own clock. `None` where the fact is
/// none.
pub fn observation_of(key: &str, value: &str, clocks: Clocks) -> Option<Observation> {
    let (host, _) = key.strip_prefix("o\n")?.split_once('\n')?;
    let value: ObservationValue = serde_json::from_str(value).ok()?;
    let since = if value.since <= 0 {
        Timestamp(value.since)
    } else {
        clocks.to_own(value.since)
    };
    Some(Observation {
        host: host.to_owned(),
        site: value.site,
        since: AsWritten(since),
        seen: clocks.to_own(value.seen),
        named: value.named,
        behind_cache: value.cache,
    })
}

/// The key of a file.
pub fn file_key(version: Version) -> String {
    format!("v\n{version}")
}

/// The fact with the bytes of a version.
pub fn file(version: Version, bytes: &[u8], at: i64) -> SharedFact {
    SharedFact {
        key: file_key(version),
        at,
        value: STANDARD.encode(bytes),
    }
}

/// Reads the version and the bytes of a file. `None` where the bytes are not those of the version.
pub fn file_of(fact: &SharedFact) -> Option<VersionFile> {
    let version = Version::parse(fact.key.strip_prefix("v\n")?)?;
    let bytes: Arc<[u8]> = STANDARD.decode(&fact.value).ok()?.into();
    (Version::of(&bytes) == version).then_some((version, bytes))
}

/// The fact that an operator says that an instance is gone.
pub fn gone(instance: &str, at: i64) -> SharedFact {
    SharedFact {
        key: format!("g\n{instance}"),
        at,
        value: String::new(),
    }
}

/// The id of the instance that a key says is gone; `None` for other keys.
pub fn gone_of(key: &str) -> Option<&str> {
    key.strip_prefix("g\n")
}
