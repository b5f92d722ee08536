//! [`tell`] turns the entries of a case (an excerpt of the evidence log, as one file) into
//! findings: publications, copies of robots.txt that were served, gaps, and requests.
//! [`RobotsFiles`] judges each request again, by nothing but the robots.txt files in the case.

use super::{
    CHAINS, Entry, Findings, Hash, Link, Personal, PublishedVersion, RequestFinding, ServedFile,
    named_proof, value_of,
};
use crate::finding::Finding;
use crate::record::{Field, Row, Value};
use crate::robots::{Bound, Dialect, File, Reading};
use crate::verdict::Readings;
use serde_json::Value as Json;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// The fields of a request that a case shows.
const SHOWN: &[Field] = &[
    Field::Identity,
    Field::Proof,
    Field::Client,
    Field::UserAgent,
    Field::History,
    Field::Method,
    Field::Host,
    Field::Target,
    Field::Kind,
    Field::Rule,
    Field::RuleSource,
    Field::Version,
    Field::Status,
];

/// What no log can show, whatever it says.
const NEVER_KNOWN: [&str; 5] = [
    "whether an entry was true when it was written: that is the word of the operator",
    "whether an entry was left out before it was written",
    "whether the holder of the key wrote the log anew; a timestamp of an independent authority on a checkpoint bounds when",
    "whether an answer arrived at the crawler: crawlgate knows that it was written to the connection",
    "who was behind an address; `verified` says what proof crawlgate recorded",
];

/// What all logs of a case say together: one instance may have served the robots.txt by which
/// another one judged.
pub struct AllLogs {
    /// The robots.txt files.
    pub robots: RobotsFiles,
    /// When each was published first.
    published: BTreeMap<Hash, String>,
    /// The copies that were served, with the log that has them, in the order of time.
    served: Vec<(String, ServedFile)>,
}

impl AllLogs {
    /// Collects the publications and the served copies of all logs. `logs` gives the three chains
    /// and the name of each log. A file counts as published since the first time that any log
    /// names.
    pub fn new<'c>(
        robots: RobotsFiles,
        logs: impl Iterator<Item = (&'c [Vec<Link>; 3], &'c str)>,
    ) -> AllLogs {
        let mut published = BTreeMap::<Hash, String>::new();
        let mut all_served = Vec::new();
        for ([of_crawler, of_site, _], log) in logs {
            for entry in of_site.iter().map(|link| &link.entry) {
                let Some(hash) = entry.text("sha256").and_then(Hash::parse) else {
                    continue;
                };
                let first = published.entry(hash).or_insert_with(|| entry.time.clone());
                *first = std::mem::take(first).min(published_since(entry));
            }
            let copies = of_crawler
                .iter()
                .map(|link| &link.entry)
                .filter(|entry| entry.kind == "served");
            all_served.extend(copies.map(|entry| (log.to_owned(), served(entry))));
        }
        all_served.sort_by(|one, other| one.1.time.cmp(&other.1.time));
        AllLogs {
            robots,
            published,
            served: all_served,
        }
    }
}

/// Adds to the findings what the entries of one log say: publications, served copies, the requests
/// recorded in the span, what cannot be known. `all` has what all logs of the case say together.
pub fn tell(chains: &[Vec<Link>; 3], personal: &Personal, all: &AllLogs, findings: &mut Findings) {
    let [of_crawler, of_site, of_log] = chains;
    for entry in of_site.iter().map(|link| &link.entry) {
        findings.published.push(PublishedVersion {
            since: published_since(entry),
            version: entry.said("version"),
            sha256: entry.said("sha256"),
            answer: entry.number_of("answer"),
        });
    }
    // An entry is written when its response was: a request may stand before the robots.txt that was
    // served before it.
    let own = all
        .served
        .iter()
        .filter(|(log, _)| *log == findings.log)
        .map(|(_, copy)| copy.clone());
    findings.served = own.collect();
    let requests = of_crawler
        .iter()
        .map(|link| &link.entry)
        .filter(|entry| entry.kind == "request");
    requests.for_each(|entry| tell_request(entry, personal, all, findings));
    let judged = findings
        .requests
        .iter()
        .filter(|request| request.rejudged != "not judged")
        .count();
    if judged > 0 {
        findings.add_check(
            "judged-again",
            format!(
                "{judged} of {} requests were judged again by the files in the case",
                findings.requests.len()
            ),
        );
    }
    // Entries before and after this time are in the case to show that none of it is missing.
    let time = findings.from.as_str()..findings.to.as_str();
    let requests = &mut findings.requests;
    requests.retain(|request| time.contains(&request.recorded.as_str()));
    if requests.iter().any(|request| {
        request
            .text(Field::History)
            .is_some_and(|history| history == "declared")
            || request
                .text(Field::Proof)
                .is_some_and(|proof| proof == "networks")
    }) {
        findings.add_unknown(
            "word-of-operator",
            "whether robots.txt was as declared before crawlgate (`history: declared`), and whether the policy's networks are the \
             crawler's (`proof: networks`): that is the word of the operator",
        );
    }
    let gaps = of_log
        .iter()
        .chain(of_crawler)
        .map(|link| &link.entry)
        .filter(|entry| entry.kind == "gap");
    // What was deleted for its age matters where a chain begins too late, and is told there.
    let gaps = gaps.filter(|entry| entry.text("reason") != Some("too_old"));
    findings.unknown.extend(gaps.map(gap));
    if findings.withdrawn > 0 {
        findings.add_unknown(
            "withdrawn",
            format!(
                "{} personal values were withdrawn: their entries verify without them",
                findings.withdrawn
            ),
        );
    }
    for sentence in NEVER_KNOWN {
        findings.add_unknown("never-known", sentence);
    }
}

/// Since when a version is published: `since` of the entry, if that is before the entry was
/// written, else the time of the entry. Each start of crawlgate writes the present publication
/// again.
fn published_since(entry: &Entry) -> String {
    entry
        .text("since")
        .filter(|since| *since < entry.time.as_str())
        .unwrap_or(&entry.time)
        .to_owned()
}

fn served(entry: &Entry) -> ServedFile {
    ServedFile {
        time: entry.said("arrived"),
        host: entry.said("host"),
        version: entry.said("version"),
        status: entry.number_of("status"),
        if_none_match: entry.text("if_none_match").map(str::to_owned),
        identity: entry.said("identity"),
    }
}

/// Adds the finding about a `request` entry, judged again by the files of the case. A fault is
/// added if it was recorded as a violation, and a version that the crawler may have had allows it.
fn tell_request(entry: &Entry, personal: &Personal, all: &AllLogs, findings: &mut Findings) {
    let time = entry.said("arrived");
    // A copy that an impostor was served says nothing of the crawler, and the other way round.
    let served = all.served.iter().rev().find(|(_, copy)| {
        entry.text("version") == Some(&copy.version)
            && entry.text("host") == Some(&copy.host)
            && entry.text("identity") == Some(&copy.identity)
            && copy.time <= time
    });
    let mut finding = RequestFinding {
        number: entry.number,
        recorded: entry.time.clone(),
        request: row(entry, personal),
        proof_entry: named_proof(entry).map(|(number, _)| number),
        served_at: served.map(|(_, copy)| copy.time.clone()),
        served_by: served
            .map(|(log, _)| log.clone())
            .filter(|log| *log != findings.log),
        rejudged: "not judged",
        time,
        remark: None,
    };
    let target = finding.text(Field::Target).map(Cow::into_owned);
    let versions = super::entry::named_documents(entry);
    match all.robots.judge(entry, target.as_deref(), &versions) {
        Rejudged::Disallowed => {
            finding.rejudged = "disallowed";
            finding.remark = allowed_before(entry, all, target.as_deref(), &versions);
        }
        Rejudged::Allowed(by) => {
            finding.rejudged = "allowed";
            if entry.text("kind") == Some("violation") {
                let by: Vec<String> = by.iter().map(Hash::to_string).collect();
                findings.add_fault(
                    "allowed-violation",
                    format!(
                        "{}: entry {} is recorded as a violation, and a robots.txt that the crawler may have had allows it: {}",
                        CHAINS[0],
                        entry.number,
                        by.join(", ")
                    ),
                );
            }
        }
        Rejudged::Unjudged(why) => finding.remark = Some(why.to_owned()),
    }
    findings.requests.push(finding);
}

/// The fields of a `request` entry that a case shows.
fn row(entry: &Entry, personal: &Personal) -> Row {
    let value = |field: &Field| {
        let name = field.name();
        let text = if field.is_personal() {
            value_of(personal, entry, name)
        } else {
            entry.text(name)
        };
        let number = || entry.data.get(name)?.as_u64().map(Value::Number);
        let value = match text {
            Some(text) => Value::text_of(text.to_owned()),
            None => number().unwrap_or(Value::Nothing),
        };
        (*field, value)
    };
    SHOWN.iter().map(value).collect()
}

/// A remark about a version that was published before the request and allows it, though crawlgate
/// did not count it among those that the crawler may have had (`counted`). `None` if there is none.
fn allowed_before(
    entry: &Entry,
    all: &AllLogs,
    target: Option<&str>,
    counted: &[Hash],
) -> Option<String> {
    for (hash, since) in &all.published {
        if *since > entry.time || counted.contains(hash) || !all.robots.has(*hash) {
            continue;
        }
        if let Rejudged::Allowed(_) = all.robots.judge(entry, target, &[*hash]) {
            return Some(format!(
                "robots/{hash}.txt, published since {since}, allows it; crawlgate recorded that the crawler could not have it any more"
            ));
        }
    }
    None
}

/// What is not known because of a gap.
fn gap(entry: &Entry) -> Finding {
    let [reason, from, until] =
        ["reason", "from", "until"].map(|name| entry.text(name).unwrap_or("?"));
    let entries = entry.number_of("entries");
    let time = &entry.time;
    let (id, message) = match reason {
        "stop" => (
            "gap-stop",
            format!("nothing was recorded from {from} until {until}: crawlgate was stopped"),
        ),
        "crash" => (
            "gap-crash",
            format!(
                "from {from} until {until} entries may be missing: crawlgate ended without a word, and was not running for a part of it"
            ),
        ),
        "upgrade" => (
            "gap-upgrade",
            format!(
                "from {from} until {until} a process of crawlgate took the place of another one: entries of this time may be missing \
                 if the one before was killed"
            ),
        ),
        "too_many" => (
            "gap-too-many",
            format!(
                "{entries} entries of this crawler were left out before {time}: there were too many"
            ),
        ),
        "not_written" => (
            "gap-not-written",
            format!(
                "{entries} entries of all crawlers were not written before {time}: the disk or the log was full"
            ),
        ),
        "clock" => {
            let by = entry.data.get("milliseconds").unwrap_or(&Json::Null);
            let message = format!(
                "the clock was set by {by} ms before {time}: times before and after it cannot be compared"
            );
            ("gap-clock", message)
        }
        "withdrawn" => (
            "gap-withdrawn",
            format!("{entries} personal values of all chains were withdrawn at {time}"),
        ),
        other => (
            "gap",
            format!("entries may be missing before {time}: {other}"),
        ),
    };
    Finding::new(id, message)
}

/// A target of so many octets was cut off when it was recorded.
const CUT_TARGET: usize = 2048;
/// Readings that are kept.
const MAX_READ: usize = 256;

/// What the robots.txt files say of a request.
#[derive(Debug)]
pub enum Rejudged {
    /// Each version that the crawler may have had disallows it.
    Disallowed,
    /// These versions allow it, or do not bind the crawler.
    Allowed(Vec<Hash>),
    /// Nothing can be judged, for this reason.
    Unjudged(&'static str),
}

/// Files that were read, by their hash, the dialect, and the names of the crawler that have a
/// blank.
type KnownReadings = HashMap<(Hash, Dialect, Vec<String>), Rc<Reading>>;

/// The robots.txt files of a case.
pub struct RobotsFiles {
    files: BTreeMap<Hash, Vec<u8>>,
    /// The latest that were read: a case has one crawler.
    read: RefCell<KnownReadings>,
}

impl RobotsFiles {
    /// From the files by their hash.
    pub fn new(files: BTreeMap<Hash, Vec<u8>>) -> RobotsFiles {
        RobotsFiles {
            files,
            read: RefCell::default(),
        }
    }

    /// Whether there is such a file.
    pub fn has(&self, hash: Hash) -> bool {
        self.files.contains_key(&hash)
    }

    /// Judges a request by these versions. If one of them allows it, by one of the dialects in
    /// which the crawler may read it, the result is `Allowed` with all such versions. Nothing can
    /// be judged if the target was withdrawn (`None`) or cut off, or a file is not in the case.
    pub fn judge(&self, request: &Entry, target: Option<&str>, versions: &[Hash]) -> Rejudged {
        let Some(target) = target else {
            return Rejudged::Unjudged("the target was withdrawn");
        };
        if target.len() >= CUT_TARGET {
            return Rejudged::Unjudged("only the beginning of the target was recorded");
        }
        let tokens = request.texts("tokens");
        let binds = request.text("binds").unwrap_or_default();
        // What one reading of a crawler allows is no violation.
        let has_one = request
            .text("readings")
            .is_none_or(|readings| readings == Readings::Rfc9309.name());
        let dialects = if has_one {
            &[Dialect::Rfc9309]
        } else {
            Dialect::ALL.as_slice()
        };
        let mut allowed = Vec::new();
        for version in versions {
            for dialect in dialects {
                let Some(reading) = self.read(*version, *dialect, &tokens) else {
                    return Rejudged::Unjudged("a robots.txt is not in the case");
                };
                if allows(&reading, &tokens, binds, target) {
                    allowed.push(*version);
                    break;
                }
            }
        }
        if allowed.is_empty() {
            Rejudged::Disallowed
        } else {
            Rejudged::Allowed(allowed)
        }
    }

    /// A robots.txt, read in this dialect for a crawler of these names. Keeps up to 256 readings.
    fn read(&self, version: Hash, dialect: Dialect, tokens: &[&str]) -> Option<Rc<Reading>> {
        let bytes = self.files.get(&version)?;
        let spaced: Vec<&str> = tokens
            .iter()
            .filter(|token| token.contains(' '))
            .copied()
            .collect();
        let key = (
            version,
            dialect,
            spaced.iter().map(ToString::to_string).collect(),
        );
        let mut read = self.read.borrow_mut();
        if read.len() >= MAX_READ {
            read.clear();
        }
        let reading = read.entry(key).or_insert_with(|| {
            let file = File::parse(bytes.as_slice());
            Rc::new(Reading::new(&file, dialect, &spaced))
        });
        Some(reading.clone())
    }
}

/// Whether a robots.txt lets a crawler of these names fetch the target. The crawler obeys the group
/// of the first name that has one. Without one it obeys the group for all, if `binds` says so
/// (`star` or `unknown`), else nothing, and everything is allowed.
fn allows(reading: &Reading, tokens: &[&str], binds: &str, target: &str) -> bool {
    let named = tokens
        .iter()
        .find(|token| reading.binding(token.as_bytes()).0 == Bound::Named);
    // As a part of a URL, for `//x/y` alone would be a host with a path.
    let url = if target.starts_with('/') {
        format!("https://host{target}")
    } else {
        target.to_owned()
    };
    match named {
        Some(token) => reading.verdict(token.as_bytes(), url.as_bytes()).allowed,
        // `*` is not the token of a crawler, so it finds the group for all.
        None if matches!(binds, "star" | "unknown") => {
            reading.verdict(b"*", url.as_bytes()).allowed
        }
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_with_a_group_is_obeyed() {
        let file = b"User-agent: *\nDisallow: /\n\nUser-agent: GPTBot\nDisallow: /private/\n";
        let reading = Reading::new(&File::parse(file.as_slice()), Dialect::Rfc9309, &[]);
        for (tokens, binds, target, allowed) in [
            (&["GPTBot", "gptbot"][..], "star", "/a", true),
            (&["GPTBot"], "star", "/private/a?b", false),
            (&["OtherBot"], "unknown", "/a", false),
            (&["OtherBot"], "named", "/a", true),
        ] {
            assert_eq!(
                allows(&reading, tokens, binds, target),
                allowed,
                "{tokens:?}"
            );
        }
        let doubled = Reading::new(
            &File::parse(*b"User-agent: *\nDisallow: //x/\n"),
            Dialect::Rfc9309,
            &[],
        );
        assert!(!allows(&doubled, &["GPTBot"], "star", "//x/y"));
    }
}
