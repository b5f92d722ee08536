//! A property test with random bytes as robots.txt: parsing never panics, takes linear time, and
//! loses no byte of the file.

use super::oracle::{SPACED, any_file, config};
use crate::robots::step_counter;
use crate::robots::{Dialect, DialectRules, RobotsFile};
use proptest::collection::vec;
use proptest::prelude::*;

/// The lines put together are the bytes; what a line says lies in it.
fn check_lossless(bytes: &[u8]) -> Result<(), TestCaseError> {
    let file = RobotsFile::parse(bytes);
    let mut together: Vec<u8> = Vec::new();
    for (place, line) in file.lines().iter().enumerate() {
        prop_assert_eq!(line.number, place + 1);
        prop_assert_eq!(line.text.start, together.len());
        together.extend(file.slice(&line.text));
        together.extend(match bytes.get(line.text.end..).unwrap_or_default() {
            [b'\r', b'\n', ..] => &b"\r\n"[..],
            [b'\r', ..] => b"\r",
            [b'\n', ..] => b"\n",
            _ => b"",
        });
        prop_assert!(
            !file
                .slice(&line.text)
                .iter()
                .any(|byte| b"\r\n".contains(byte))
        );
        let within = |part: &std::ops::Range<usize>| {
            part.start >= line.text.start && part.end <= line.text.end
        };
        if let Some(record) = &line.key_value {
            prop_assert!(
                within(&record.name)
                    && within(&record.value)
                    && record.name.end <= record.value.start
            );
            prop_assert!(!record.name.is_empty());
        }
        prop_assert!(line.comment.as_ref().is_none_or(within));
    }
    prop_assert_eq!(&together, bytes);
    prop_assert_eq!(&**file.bytes(), bytes);
    Ok(())
}

proptest! {
    #![proptest_config(config(3_000))]

    #[test]
    fn joined_lines_are_the_bytes(bytes in any_file()) {
        check_lossless(&bytes)?;
    }

    #[test]
    fn any_bytes_are_parsed_without_panic(bytes in vec(any::<u8>(), 0..600), token in vec(any::<u8>(), 0..8), url in vec(any::<u8>(), 0..60)) {
        check_lossless(&bytes)?;
        let file = RobotsFile::parse(bytes);
        for dialect in Dialect::ALL {
            let reading = DialectRules::new(&file, dialect, &SPACED);
            reading.verdict(&token, &url);
            reading.groups_for(&token);
        }
    }
}

// ---- time
// --------------------------------------------------------------------------------------------------------------

/// Files of so many bytes, each of a kind that a careless reader takes long for.
fn adverse_files(bytes: usize) -> [String; 22] {
    let filled = |before: &str, with: &str| {
        let mut text = before.to_owned();
        text.push_str(&with.repeat((bytes - before.len()) / with.len()));
        text
    };
    [
        filled("", "*"),
        filled("", "#"),
        filled("", ":"),
        filled("", "\r"),
        filled("", "\n"),
        filled("", "\r\n"),
        filled("", " "),
        filled("", "x"),
        filled("", "%"),
        filled("", "\0"),
        filled("", "\u{FEFF}"),
        filled("", "a:b\n"),
        filled("", "User-agent: a\n"),
        filled("", "User-agent: *\nAllow:\n"),
        filled("", "User-agent: a\nUser-agent: *\nDisallow: /a\n"),
        filled("User-agent: *\nDisallow: /", "*"),
        filled("User-agent: *\nDisallow: /", "*a"),
        filled("User-agent: *\n", "Disallow: /a*b$\n"),
        filled("User-agent: *\n", "Disallow: /*a*a*a*b\n"),
        filled("User-agent: *\n", "Allow /index.htm\n"),
        filled("User-agent: *\n", "Disallow: /\u{e9}%e9%%\n"),
        filled("User-agent: *\nDisallow: /", "x"),
    ]
}

/// The steps of reading a file in every dialect, and of two verdicts in each.
fn reading_steps(text: &str) -> u64 {
    let url = format!("/{}", "a".repeat(200));
    step_counter::count_steps_of(|| {
        let file = RobotsFile::parse(text.as_bytes());
        for dialect in Dialect::ALL {
            let reading = DialectRules::new(&file, dialect, &SPACED);
            reading.verdict(b"Foo", url.as_bytes());
            reading.verdict(b"a", b"/b");
        }
    })
}

/// Twice the bytes take twice the steps: what takes the square of them would take four times as
/// many.
#[test]
fn any_file_is_parsed_in_linear_time() {
    const BYTES: usize = 1 << 17;
    for (half, whole) in adverse_files(BYTES).iter().zip(&adverse_files(2 * BYTES)) {
        let (half, whole) = (reading_steps(half), reading_steps(whole));
        let most = half * 9 / 4 + 10_000;
        assert!(
            half * 2 >= BYTES as u64 && whole <= most,
            "{half} steps, and {whole} for twice as much"
        );
    }
}
