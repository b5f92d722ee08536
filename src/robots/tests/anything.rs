//! What holds for any bytes: the lines put together are the bytes, nothing panics, and time is
//! linear.

use super::oracle::{SPACED, any_file, config};
use crate::robots::steps;
use crate::robots::{Dialect, File, LineEnd, Reading};
use proptest::collection::vec;
use proptest::prelude::*;

/// The lines put together are the bytes; what a line says lies in it.
fn check_lossless(bytes: &[u8]) -> Result<(), TestCaseError> {
    let file = File::parse(bytes);
    let mut together: Vec<u8> = Vec::new();
    for (place, line) in file.lines().iter().enumerate() {
        prop_assert_eq!(line.number, place + 1);
        prop_assert_eq!(line.text.start, together.len());
        together.extend(file.octets(&line.text));
        together.extend(match line.end {
            LineEnd::Lf => &b"\n"[..],
            LineEnd::Cr => b"\r",
            LineEnd::CrLf => b"\r\n",
            LineEnd::Nothing => b"",
        });
        prop_assert!(
            !file
                .octets(&line.text)
                .iter()
                .any(|octet| b"\r\n".contains(octet))
        );
        let within = |part: &std::ops::Range<usize>| {
            part.start >= line.text.start && part.end <= line.text.end
        };
        if let Some(record) = &line.record {
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
    fn lines_put_together_are_the_bytes(bytes in any_file()) {
        check_lossless(&bytes)?;
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..600), token in vec(any::<u8>(), 0..8), url in vec(any::<u8>(), 0..60)) {
        check_lossless(&bytes)?;
        let file = File::parse(bytes);
        for dialect in Dialect::ALL {
            let reading = Reading::new(&file, dialect, &SPACED);
            reading.verdict(&token, &url);
            reading.binding(&token);
        }
    }
}

// ---- time
// --------------------------------------------------------------------------------------------------------------

/// Files of so many octets, each of a kind that a careless reader takes long for.
fn files(octets: usize) -> [String; 22] {
    let filled = |before: &str, with: &str| {
        let mut text = before.to_owned();
        text.push_str(&with.repeat((octets - before.len()) / with.len()));
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
fn steps(text: &str) -> u64 {
    let url = format!("/{}", "a".repeat(200));
    steps::of(|| {
        let file = File::parse(text.as_bytes());
        for dialect in Dialect::ALL {
            let reading = Reading::new(&file, dialect, &SPACED);
            reading.verdict(b"Foo", url.as_bytes());
            reading.verdict(b"a", b"/b");
        }
    })
}

/// Twice the octets take twice the steps: what takes the square of them would take four times as
/// many.
#[test]
fn anything_is_read_in_linear_time() {
    const OCTETS: usize = 1 << 17;
    for (half, whole) in files(OCTETS).iter().zip(&files(2 * OCTETS)) {
        let (half, whole) = (steps(half), steps(whole));
        let most = half * 9 / 4 + 10_000;
        assert!(
            half * 2 >= OCTETS as u64 && whole <= most,
            "{half} steps, and {whole} for twice as much"
        );
    }
}
