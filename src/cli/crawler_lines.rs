//! [`identify`]: `crawlers --identify -`. It reads a user agent from each line, and writes which crawler that claims to be.

use super::Failure;
use crate::crawlers::{Claim, Crawler, Registry, calls_itself};
use crate::logs::printable;
use serde::Serialize;
use std::io::{self, BufRead, BufWriter, Read, Write};

/// Longer lines are cut: a user agent is read up to 4,096 octets.
const MAX_LINE: u64 = 16 * 1024;

/// What a user agent claims to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Claimed {
    Known,
    Other,
    Tool,
    Nobody,
}

impl From<Claim> for Claimed {
    fn from(claim: Claim) -> Claimed {
        match claim {
            Claim::Known(_) => Claimed::Known,
            Claim::Other | Claim::Token(_) => Claimed::Other,
            Claim::Tool => Claimed::Tool,
            Claim::Nobody => Claimed::Nobody,
        }
    }
}

impl Claimed {
    /// The word for a client without a record, and its kind.
    fn word(self) -> (&'static str, &'static str) {
        match self {
            Claimed::Known | Claimed::Other => ("other", "bot"),
            Claimed::Tool => ("tool", "tool"),
            Claimed::Nobody => ("nobody", "person"),
        }
    }
}

/// The answer to one line.
#[derive(Serialize)]
struct IdentifiedLine<'a> {
    user_agent: &'a str,
    claim: Claimed,
    /// The id of a crawler of the registry.
    crawler: Option<&'a str>,
    /// The purpose of a crawler of the registry; or `bot`, `tool`, `person`.
    kind: &'static str,
    why: &'a str,
    calls_itself: Option<&'a str>,
}

/// Answers each line of standard input: id or word, kind, why and the user agent, with tabs between them.
pub fn identify(registry: &Registry, json: bool) -> Result<(), Failure> {
    let (mut input, mut out) = (io::stdin().lock(), BufWriter::with_capacity(1 << 16, io::stdout().lock()));
    let mut line = Vec::new();
    while read_line(&mut input, &mut line)? {
        let (claim, reason) = registry.explain(&line);
        let crawler = if let Claim::Known(index) = claim { Some(registry.get(index)) } else { None };
        let claimed = Claimed::from(claim);
        let (word, kind) = crawler.map_or(claimed.word(), |crawler| (crawler.id.as_str(), crawler.purpose.name()));
        let named = crawler.and_then(|crawler| marker_in(crawler, &line)).map(|marker| format!("it names `{marker}`"));
        let why = named.as_deref().unwrap_or(reason.text());
        if json {
            let named_by = matches!(claimed, Claimed::Other | Claimed::Tool).then(|| calls_itself(&line)).flatten();
            let identified = IdentifiedLine {
                user_agent: &String::from_utf8_lossy(&line),
                claim: claimed,
                crawler: crawler.map(|crawler| crawler.id.as_str()),
                kind,
                why,
                calls_itself: named_by,
            };
            serde_json::to_writer(&mut out, &identified)?;
            writeln!(out)?;
        } else {
            writeln!(out, "{word}\t{kind}\t{why}\t{}", printable(&line))?;
        }
    }
    Ok(out.flush()?)
}

/// Reads the next line without its end; of a longer one than [`MAX_LINE`] only the beginning. Says whether there was one.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    if input.by_ref().take(MAX_LINE).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.pop_if(|last| *last == b'\n').is_some() {
        line.pop_if(|last| *last == b'\r');
    } else {
        input.skip_until(b'\n')?;
    }
    Ok(true)
}

/// The longest marker of a crawler that stands in a user agent.
fn marker_in<'a>(crawler: &'a Crawler, user_agent: &[u8]) -> Option<&'a str> {
    let markers = crawler.markers.iter().map(|marker| marker.trim_start_matches(['=', '^']));
    let stands =
        |marker: &&str| user_agent.windows(marker.len()).any(|part| part.eq_ignore_ascii_case(marker.as_bytes()));
    markers.filter(stands).max_by_key(|marker| marker.len())
}

#[cfg(test)]
mod tests {
    use super::{MAX_LINE, read_line};

    #[test]
    fn a_long_line_is_cut_and_the_next_is_whole() {
        let mut text = vec![b'x'; 3 * MAX_LINE as usize];
        text.extend_from_slice(b"\r\nnext\r\n\nlast");
        let (mut input, mut line, mut lines) = (text.as_slice(), Vec::new(), Vec::new());
        while read_line(&mut input, &mut line).expect("memory can be read") {
            lines.push((line.len(), line.first().copied()));
        }
        assert_eq!(lines, [(MAX_LINE as usize, Some(b'x')), (4, Some(b'n')), (0, None), (4, Some(b'l'))]);
    }
}
