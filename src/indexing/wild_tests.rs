//! Tests with lines of X-Robots-Tag that real servers send (`wild_tags.txt`): each is parsed,
//! rendered and parsed again.

use super::*;

/// Lines, and the directives that they give Googlebot, Bingbot and any other bot.
pub fn wild_lines() -> Vec<(Vec<Vec<u8>>, [String; 3])> {
    let text = include_str!("wild_tags.txt");
    let blocks = text
        .split("\n\n")
        .filter(|block| block.lines().any(|line| line.starts_with('>')));
    let rows = blocks.map(|block| {
        let lines = block
            .lines()
            .filter_map(|line| line.strip_prefix('>'))
            .map(|line| unescape(line.trim_matches(' ')));
        let of = |bot: &str| {
            let said = block
                .lines()
                .find_map(|line| line.strip_prefix(bot))
                .unwrap_or_else(|| panic!("{bot}: {block}"));
            let said = String::from_utf8(unescape(said.trim())).expect("UTF-8");
            if said == "-" { String::new() } else { said }
        };
        (
            lines.collect(),
            [of("googlebot "), of("bingbot "), of("other ")],
        )
    });
    rows.collect()
}

fn unescape(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).expect("two hexadecimal digits"));
        bytes.extend(&part.as_bytes()[2..]);
    }
    bytes
}

#[test]
fn wild_lines_bind_each_bot_as_listed() {
    let table = wild_lines();
    assert!(table.len() >= 40, "{}", table.len());
    for (lines, expected) in table {
        let read = parse_lines(lines.iter().map(Vec::as_slice));
        let sent = read.lines();
        let again = parse_lines(sent.iter().map(String::as_bytes));
        let shown: Vec<_> = lines
            .iter()
            .map(|line| String::from_utf8_lossy(line))
            .collect();
        for (bot, expected) in ["googlebot", "bingbot", "unnamedbot"]
            .into_iter()
            .zip(&expected)
        {
            assert_eq!(
                read.effective(bot).to_string(),
                *expected,
                "{bot} reads {shown:?}"
            );
            assert_eq!(
                again.effective(bot).to_string(),
                *expected,
                "{bot} reads {shown:?} as it is sent on: {sent:?}"
            );
        }
        assert_eq!(again, read, "{shown:?} is sent on as {sent:?}");
    }
}
