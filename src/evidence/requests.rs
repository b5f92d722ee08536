//! [`tell`] turns the entries of a case (an excerpt of the evidence log, as one file) into
//! findings: publications, copies of robots.txt that were served, gaps, and requests.
//! [`RobotsFiles`] judges each request again, by nothing but the robots.txt files in the case.

use super::{
    CHAINS, Entry, Findings, Hash, Link, Personal, PublishedVersion, RequestFinding, ServedFile,
    named_proof, value_of,
};
use crate::robots::{Bound, Dialect, File, Reading};
use crate::verdict::Readings;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

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
    /// From the chains and the name of each log.
    pub fn new<'c>(
        robots: RobotsFiles,
        logs: impl Iterator<Item = (&'c [Vec<Link>; 3], &'c str)>,
    ) -> AllLogs {
        let (mut published, mut all_served) = (BTreeMap::<Hash, String>::new(), Vec::new());
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

/// Tells what the entries of one log say.
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
        findings.holds.push(format!(
            "{judged} of {} requests were judged again by the files in the case",
            findings.requests.len()
        ));
    }
    // Entries before and after this time are in the case to show that none of it is missing.
    let Findings {
        requests,
        from,
        to,
        unknown,
        ..
    } = findings;
    requests.retain(|request| (from.as_str()..to.as_str()).contains(&request.recorded.as_str()));
    if requests
        .iter()
        .any(|request| request.history == "declared" || request.proof == "networks")
    {
        unknown.push(
            "whether robots.txt was as declared before crawlgate (`history: declared`), and whether the policy's networks are the \
             crawler's (`proof: networks`): that is the word of the operator"
                .to_owned(),
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
        findings.unknown.push(format!(
            "{} personal values were withdrawn: their entries verify without them",
            findings.withdrawn
        ));
    }
    findings.unknown.extend(NEVER_KNOWN.map(str::to_owned));
}

/// Since when a version is published. Each start of crawlgate names the present one again.
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

fn tell_request(entry: &Entry, personal: &Personal, all: &AllLogs, findings: &mut Findings) {
    let text = |name: &str| entry.text(name).map(str::to_owned);
    let value = |name: &str| value_of(personal, entry, name).map(str::to_owned);
    let (version, host, time) = (
        entry.said("version"),
        entry.said("host"),
        entry.said("arrived"),
    );
    // A copy that an impostor was served says nothing of the crawler, and the other way round.
    let identity = entry.said("identity");
    let is_of_it = |copy: &ServedFile| {
        (&copy.version, &copy.host, &copy.identity) == (&version, &host, &identity)
            && copy.time <= time
    };
    let served = all.served.iter().rev().find(|(_, copy)| is_of_it(copy));
    let mut finding = RequestFinding {
        number: entry.number,
        recorded: entry.time.clone(),
        identity,
        proof: entry.said("proof"),
        proof_entry: named_proof(entry).map(|(number, _)| number),
        client: value("client"),
        user_agent: value("user_agent"),
        history: entry.said("history"),
        method: entry.said("method"),
        kind: entry.said("kind"),
        rule: text("rule"),
        rule_source: text("rule_source"),
        served_at: served.map(|(_, copy)| copy.time.clone()),
        served_by: served
            .map(|(log, _)| log.clone())
            .filter(|log| *log != findings.log),
        status: entry.number_of("status"),
        rejudged: "not judged",
        time,
        target: value("target"),
        version,
        host,
        remark: None,
    };
    let versions = super::entry::named_documents(entry);
    match all
        .robots
        .judge(entry, finding.target.as_deref(), &versions)
    {
        Rejudged::Disallowed => {
            finding.rejudged = "disallowed";
            finding.remark = allowed_before(entry, all, finding.target.as_deref(), &versions);
        }
        Rejudged::Allowed(by) => {
            finding.rejudged = "allowed";
            if finding.kind == "violation" {
                let by: Vec<String> = by.iter().map(Hash::to_string).collect();
                let fault = "is recorded as a violation, and a robots.txt that the crawler may have had allows it";
                findings.faults.push(format!(
                    "{}: entry {} {fault}: {}",
                    CHAINS[0],
                    entry.number,
                    by.join(", ")
                ));
            }
        }
        Rejudged::Unjudged(why) => finding.remark = Some(why.to_owned()),
    }
    findings.requests.push(finding);
}

/// A version that the site published in the span and that would have allowed the request, though
/// crawlgate did not count it among those that the crawler may have had.
fn allowed_before(
    entry: &Entry,
    all: &AllLogs,
    target: Option<&str>,
    counted: &[Hash],
) -> Option<String> {
    let others = all
        .published
        .iter()
        .filter(|(hash, since)| **since <= entry.time && !counted.contains(hash));
    let mut others = others.filter(|(hash, _)| all.robots.has(**hash));
    let allowed = others.find(|(hash, _)| {
        matches!(
            all.robots.judge(entry, target, &[**hash]),
            Rejudged::Allowed(_)
        )
    });
    allowed.map(|(hash, since)| {
        format!(
            "robots/{hash}.txt, published since {since}, allows it; crawlgate recorded that the crawler could not have it any more"
        )
    })
}

fn gap(entry: &Entry) -> String {
    let text = |name: &str| entry.text(name).unwrap_or("?");
    let (entries, from, until) = (entry.number_of("entries"), text("from"), text("until"));
    match text("reason") {
        "stop" => format!("nothing was recorded from {from} until {until}: crawlgate was stopped"),
        "crash" => format!(
            "from {from} until {until} entries may be missing: crawlgate ended without a word, and was not running for a part of it"
        ),
        "upgrade" => format!(
            "from {from} until {until} a process of crawlgate took the place of another one: entries of this time may be missing \
             if the one before was killed"
        ),
        "too_many" => {
            format!(
                "{entries} entries of this crawler were left out before {}: there were too many",
                entry.time
            )
        }
        "not_written" => format!(
            "{entries} entries of all crawlers were not written before {}: the disk or the log was full",
            entry.time
        ),
        "clock" => format!(
            "the clock was set by {} ms before {}: times before and after it cannot be compared",
            entry
                .data
                .get("milliseconds")
                .map(ToString::to_string)
                .unwrap_or_default(),
            entry.time
        ),
        "withdrawn" => format!(
            "{entries} personal values of all chains were withdrawn at {}",
            entry.time
        ),
        other => format!("entries may be missing before {}: {other}", entry.time),
    }
}

/// A target of so many octets was cut off when it was recorded.
const CUT_TARGET: usize = 2048;
/// Readings that are kept.
const MOST_READ: usize = 256;

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

    /// Judges a request by these versions. `target` is `None` where it was withdrawn.
    pub fn judge(&self, request: &Entry, target: Option<&str>, versions: &[Hash]) -> Rejudged {
        let Some(target) = target else {
            return Rejudged::Unjudged("the target was withdrawn");
        };
        if target.len() >= CUT_TARGET {
            return Rejudged::Unjudged("only the beginning of the target was recorded");
        }
        let (tokens, binds) = (
            request.texts("tokens"),
            request.text("binds").unwrap_or_default(),
        );
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

    /// A robots.txt, read for a crawler of these names.
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
        if read.len() >= MOST_READ {
            read.clear();
        }
        let reading = || {
            Rc::new(Reading::new(
                &File::parse(bytes.as_slice()),
                dialect,
                &spaced,
            ))
        };
        Some(read.entry(key).or_insert_with(reading).clone())
    }
}

/// Whether a robots.txt lets a crawler of these names fetch the target. The crawler obeys the first
/// name that has a group.
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
        let allows =
            |tokens: &[&str], binds, target| super::allows(&reading, tokens, binds, target);
        assert!(allows(&["GPTBot", "gptbot"], "star", "/a"));
        assert!(!allows(&["GPTBot"], "star", "/private/a?b"));
        assert!(!allows(&["OtherBot"], "unknown", "/a"));
        assert!(allows(&["OtherBot"], "named", "/a"));
        let doubled = Reading::new(
            &File::parse(*b"User-agent: *\nDisallow: //x/\n"),
            Dialect::Rfc9309,
            &[],
        );
        assert!(!super::allows(&doubled, &["GPTBot"], "star", "//x/y"));
    }
}
