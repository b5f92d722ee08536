//! [`AccessRecord`]: the fields of one line of the access log. [`moment`] and [`version`] write times and versions as JSON.

use crate::policy::Version;
use chrono::{DateTime, Datelike, Timelike, Utc};
use serde::{Serialize, Serializer};
use std::net::IpAddr;
use std::time::SystemTime;

/// Octets that a client sent. JSON has them as text, with a replacement for what is no UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Octets<'a>(pub &'a [u8]);

impl Serialize for Octets<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from_utf8_lossy(self.0))
    }
}

/// The fields of a line.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct AccessRecord<'a> {
    /// RFC 3339 with milliseconds, UTC.
    #[serde(serialize_with = "moment")]
    pub time: SystemTime,
    pub client: Option<IpAddr>,
    pub method: Octets<'a>,
    pub host: Octets<'a>,
    pub target: Octets<'a>,
    pub http: &'static str,
    /// The version of TLS.
    pub tls: Option<&'static str>,
    pub status: u16,
    pub bytes: u64,
    pub milliseconds: f64,
    pub user_agent: Option<Octets<'a>>,
    pub referer: Option<Octets<'a>>,
    pub site: Option<&'a str>,
    /// The registry's id, the policy's token, or `other`; absent for a person.
    pub crawler: Option<&'a str>,
    /// What is proven of the crawler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<&'static str>,
    /// Why nothing is proven of a crawler that can be proven here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<&'static str>,
    pub verdict: Option<&'static str>,
    pub kind: Option<&'static str>,
    /// A violation of a crawler that was served no robots.txt here within the time that it may use a copy.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub never_fetched: bool,
    /// The rule that decided: `Disallow: /cart/`.
    pub rule: Option<String>,
    /// The place of the rule: `file:line:column`.
    pub rule_source: Option<String>,
    pub action: &'static str,
    /// The action that `enforce` would have taken.
    pub would: Option<&'static str>,
    /// Why crawlgate did not take it: `mode`, `unlisted` or `unverified`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<&'static str>,
    /// The version of robots.txt that the request was judged by.
    #[serde(serialize_with = "version")]
    pub version: Option<Version>,
    /// The id that the origin gets, and that a trusted proxy in front may give.
    pub request_id: Octets<'a>,
    /// The trace id of W3C Trace Context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<Octets<'a>>,
    pub error: Option<&'a str>,
}

/// Writes a time digit by digit: the formatting machinery takes longer than all the rest of a line.
pub fn moment<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    let at = DateTime::<Utc>::from(*time);
    let mut text = *b"0000-00-00T00:00:00.000Z";
    let mut write = |place: usize, digits: usize, mut number: u32| {
        for digit in text[place..place + digits].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    };
    write(0, 4, at.year().clamp(0, 9_999).unsigned_abs());
    for (place, number) in [(5, at.month()), (8, at.day()), (11, at.hour()), (14, at.minute()), (17, at.second())] {
        write(place, 2, number);
    }
    write(20, 3, at.timestamp_subsec_millis());
    serializer.serialize_str(std::str::from_utf8(&text).unwrap_or_default())
}

pub fn version<S: Serializer>(version: &Option<Version>, serializer: S) -> Result<S::Ok, S::Error> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let Some(Version(octets)) = version else { return serializer.serialize_none() };
    let mut text = [0; 16];
    for (pair, octet) in text.chunks_exact_mut(2).zip(octets) {
        pair.copy_from_slice(&[HEX[usize::from(octet >> 4)], HEX[usize::from(octet & 15)]]);
    }
    serializer.serialize_str(std::str::from_utf8(&text).unwrap_or_default())
}
