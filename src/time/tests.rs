//! Tests of parsing, formatting and arithmetic of timestamps.

use super::Timestamp;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[test]
fn rfc_3339_is_read_in_any_offset() {
    let moment = Some(Timestamp(1_796_086_800));
    for text in [
        "2026-12-01T01:00:00Z",
        "2026-12-01T02:00:00+01:00",
        "2026-11-30T20:00:00-05:00",
        "2026-12-01t01:00:00z",
    ] {
        assert_eq!(Timestamp::parse(text), moment, "{text}");
    }
    assert_eq!(Timestamp::parse("2026-12-01T01:00:00.999Z"), moment);
    assert_eq!(
        Timestamp::parse("1969-12-31T23:59:59Z"),
        Some(Timestamp(-1))
    );
}

#[test]
fn date_alone_is_midnight_utc() {
    assert_eq!(
        Timestamp::parse("2026-12-01"),
        Timestamp::parse("2026-12-01T00:00:00Z")
    );
    assert_eq!(
        Timestamp::parse("2028-02-29"),
        Some(Timestamp(1_835_395_200))
    );
}

#[test]
fn invalid_timestamps_are_rejected() {
    for text in [
        "",
        "soon",
        "2026-02-29",
        "2026-13-01",
        "2026-12-01T01:00:00",
        "2026-12-01T25:00:00Z",
        "12/01/2026",
        "\u{0}",
    ] {
        assert_eq!(Timestamp::parse(text), None, "{text:?}");
    }
}

#[test]
fn displayed_timestamp_parses_back() {
    for seconds in [0, 1, -1, 1_796_086_800, 253_402_300_799] {
        assert_eq!(
            Timestamp::parse(&Timestamp(seconds).to_string()),
            Some(Timestamp(seconds))
        );
    }
    assert_eq!(Timestamp(1_796_086_800).to_string(), "2026-12-01T01:00:00Z");
}

#[test]
fn http_dates_are_parsed_in_all_three_forms() {
    // RFC 9110 section 5.6.7.
    let moment = Timestamp(784_111_777);
    assert_eq!(moment.to_http_date(), "Sun, 06 Nov 1994 08:49:37 GMT");
    for text in [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ] {
        assert_eq!(Timestamp::from_http_date(text), Some(moment), "{text}");
    }
    assert_eq!(Timestamp::from_http_date("yesterday"), None);
}

#[test]
fn out_of_range_http_dates_are_clamped() {
    for past in [-1, i64::MIN] {
        assert_eq!(
            Timestamp(past).to_http_date(),
            "Thu, 01 Jan 1970 00:00:00 GMT"
        );
    }
    for future in [253_402_300_799, 253_402_300_800, i64::MAX] {
        assert_eq!(
            Timestamp(future).to_http_date(),
            "Fri, 31 Dec 9999 23:59:59 GMT"
        );
    }
}

#[test]
fn arithmetic_saturates() {
    assert_eq!(Timestamp(5).plus(Duration::from_secs(3)), Timestamp(8));
    assert_eq!(Timestamp(i64::MAX).plus(Duration::MAX), Timestamp(i64::MAX));
    assert_eq!(Timestamp(8).since(Timestamp(5)), Duration::from_secs(3));
    assert_eq!(Timestamp(5).since(Timestamp(8)), Duration::ZERO);
    assert_eq!(
        Timestamp(i64::MIN).since(Timestamp(i64::MAX)),
        Duration::ZERO
    );
    assert_eq!(
        Timestamp(i64::MAX).since(Timestamp(i64::MIN)),
        Duration::from_secs(i64::MAX as u64)
    );
}

#[test]
fn serde_accepts_seconds_and_rfc_3339() {
    #[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug)]
    struct Moments {
        ours: Timestamp,
        #[serde(serialize_with = "super::rfc3339")]
        theirs: Timestamp,
        #[serde(default, serialize_with = "super::rfc3339")]
        perhaps: Option<Timestamp>,
    }
    let moments = |seconds| Moments {
        ours: Timestamp(seconds),
        theirs: Timestamp(seconds),
        perhaps: None,
    };
    let text = serde_json::to_string(&Moments {
        perhaps: Some(Timestamp(86_400)),
        ..moments(60)
    })
    .expect("JSON");
    assert_eq!(
        text,
        r#"{"ours":60,"theirs":"1970-01-01T00:01:00Z","perhaps":"1970-01-02T00:00:00Z"}"#
    );
    for seconds in [0, -1, 1_765_000_000, i64::MIN, i64::MAX] {
        let text = serde_json::to_string(&moments(seconds)).expect("JSON");
        assert_eq!(
            serde_json::from_str::<Moments>(&text).expect("read again"),
            moments(seconds),
            "{text}"
        );
    }
    for wrong in [
        "\"soon\"",
        "true",
        "1.5",
        "18446744073709551615",
        "\"@\"",
        "null",
    ] {
        assert!(serde_json::from_str::<Timestamp>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn any_timestamp_can_be_displayed() {
    for seconds in [i64::MIN, i64::MAX] {
        assert!(
            Timestamp(seconds)
                .to_string()
                .contains(&seconds.to_string())
        );
    }
}

#[test]
fn system_time_is_taken_in_whole_seconds() {
    assert_eq!(
        Timestamp::from(UNIX_EPOCH + Duration::from_millis(1_999)),
        Timestamp(1)
    );
    assert_eq!(
        Timestamp::from(UNIX_EPOCH - Duration::from_secs(7)),
        Timestamp(-7)
    );
    assert_eq!(
        Timestamp::from(SystemTime::UNIX_EPOCH),
        Timestamp::default()
    );
}
