//! Turns the entries of a case (an excerpt of the evidence log, as one file) into the findings that
//! the report of the case shows. [`add_log_findings`] adds the robots.txt files that the site
//! published, those that the crawler was served, the crawler's requests, and the number of missing
//! entries. [`RobotsFiles`] judges each request again, using only the robots.txt files in the case.

use super::entry::{client_text, named_robots_files};
use super::{
    CHAIN_FILES, EvidenceEntry, Hash, LogFindings, PersonalValues, PublishedVersion,
    RequestFinding, ServedRobotsTxt, named_proof, personal_value,
};
use crate::finding::Finding;
use crate::numbers::plural_thousands;
use crate::printable::join;
use crate::record::{FieldValue, RecordField, RecordRow};
use crate::robots::{Dialect, DialectRules, FileVerdict, GroupMatch, RobotsFile};
use crate::verdict::RobotsReadings;
use serde_json::Value as Json;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use CaseRobotsVerdict::*;
use RecordField::*;

/// A log of a case whose structure was checked.
#[derive(Default)]
pub struct CheckedLog {
    pub chains: [Vec<EvidenceEntry>; 3],
    /// Proofs from before the span.
    pub earlier: Vec<EvidenceEntry>,
    pub personal: PersonalValues,
    pub robots: BTreeMap<Hash, Vec<u8>>,
    pub findings: LogFindings,
}

/// The fields of a request in the findings.
const CASE_FIELDS: &[RecordField] = &[
    Identity,
    Proof,
    Client,
    UserAgent,
    History,
    Method,
    Host,
    Target,
    Kind,
    NeverFetched,
    Verdict,
    Action,
    Would,
    Rule,
    RuleSource,
    Version,
    Status,
    LicenseToken,
    Reserved,
];

/// What no log can show.
const ALWAYS_UNKNOWN: [&str; 9] = [
    "whether an entry, also one about a list or DNS, was true when it was written: that is the site's word",
    "whether a list or key is the operator's: the case has the site's copy",
    "whether an entry was left out before it was written",
    "whether the holder of the key rewrote the log: a timestamp only shows that nothing was changed later, if you trust its authority",
    "whether a response reached the crawler: crawlgate only knows that the response was sent",
    "who used an address, beyond the proof that crawlgate recorded",
    "whether a licence token is valid: crawlgate does not check tokens. Any token, also a forged one, counts as a licence",
    "whether the operator mined a page: a request does not show it",
    "which licences, reservations (TDM) and content signals the site's own web server sent: the case has those of crawlgate's policy",
];

/// The publications and served copies of all logs of a case: one instance may have served the
/// robots.txt by which another one judged.
pub struct CaseRobotsEvidence {
    pub robots: RobotsFiles,
    /// When each file was first published in any log.
    published: BTreeMap<Hash, String>,
    /// The served copies with the name of their log, by time.
    served: Vec<(String, ServedRobotsTxt)>,
}

impl CaseRobotsEvidence {
    /// `robots` are the files of all logs.
    pub fn new(robots: RobotsFiles, logs: &[CheckedLog]) -> CaseRobotsEvidence {
        let mut published = BTreeMap::<Hash, String>::new();
        let mut all_served = Vec::new();
        for log in logs {
            let [of_crawler, of_site, _] = &log.chains;
            for entry in of_site {
                let Some(hash) = entry.data_text("sha256").and_then(Hash::parse) else {
                    continue;
                };
                // Nobody got a file that was answered with 503.
                if entry.number_or_zero("answer") != 200 {
                    continue;
                }
                let first = published.entry(hash).or_insert_with(|| entry.time.clone());
                *first = std::mem::take(first).min(published_since(entry));
            }
            let copies = of_crawler.iter().filter(|entry| entry.kind == "served");
            all_served.extend(
                copies.map(|entry| (log.findings.log.clone(), served_file(entry, &log.personal))),
            );
        }
        all_served.sort_by(|one, other| one.1.time.cmp(&other.1.time));
        CaseRobotsEvidence {
            robots,
            published,
            served: all_served,
        }
    }
}

/// Adds the findings about the entries of one log: publications, served copies, the requests in the
/// span, and what cannot be known. `all` is from all logs of the case.
pub fn add_log_findings(
    chains: &[Vec<EvidenceEntry>; 3],
    personal: &PersonalValues,
    all: &CaseRobotsEvidence,
    findings: &mut LogFindings,
) {
    let [of_crawler, of_site, of_log] = chains;
    for entry in of_site {
        let version = published_version(entry, findings.published.last());
        findings.published.push(version);
    }
    findings.declared = declared_files(of_crawler, all);
    // Entries are written after their response, so a request may come before the robots.txt that was
    // served before it.
    findings.served = all
        .served
        .iter()
        .filter(|(log, _)| *log == findings.log)
        .map(|(_, copy)| copy.clone())
        .collect();
    for entry in of_crawler.iter().filter(|entry| entry.kind == "request") {
        add_request_finding(entry, personal, all, findings);
    }
    let judged = findings
        .requests
        .iter()
        .filter(|request| request.rejudged != "not judged")
        .count();
    if judged > 0 {
        findings.add_check(
            "judged-again",
            format!(
                "requests that were judged again by the robots.txt files in the case: {judged} of {}",
                findings.requests.len()
            ),
        );
    }
    // Entries before and after the span only show that none is missing.
    let time = findings.from.as_str()..findings.to.as_str();
    findings
        .requests
        .retain(|request| time.contains(&request.recorded.as_str()));
    add_words_of_site(findings);
    // Deletion for age is reported by the check of the beginnings.
    for gap in of_log
        .iter()
        .chain(of_crawler)
        .filter(|entry| entry.kind == "gap" && entry.data_text("reason") != Some("too_old"))
    {
        findings.gaps += usize::from(is_within(gap, findings));
        findings.unknown.push(gap_finding(gap));
    }
    if findings.withdrawn > 0 {
        findings.add_unknown(
            "withdrawn",
            format!(
                "personal values that were deleted: {}; their entries can still be checked",
                findings.withdrawn
            ),
        );
    }
    for sentence in ALWAYS_UNKNOWN {
        findings.add_unknown("never-known", sentence);
    }
}

/// The publication of an entry; `last` is the one before it.
fn published_version(entry: &EvidenceEntry, last: Option<&PublishedVersion>) -> PublishedVersion {
    let answer = entry.number_or_zero("answer");
    PublishedVersion {
        // The file of a pause is older than the pause.
        since: match answer {
            200 if last.is_none_or(|last| last.answer == 200) => published_since(entry),
            _ => entry.time.clone(),
        },
        version: entry.text_or_empty("version"),
        sha256: entry.text_or_empty("sha256"),
        answer,
        recorded: entry.time.clone(),
        signals: entry
            .data_texts("signals")
            .into_iter()
            .map(str::to_owned)
            .collect(),
    }
}

/// Adds for how many requests the site's word alone stands for the history or the proof.
fn add_words_of_site(findings: &mut LogFindings) {
    for (field, value, what) in [
        (
            History,
            "declared",
            "whether the robots.txt from before crawlgate was the one that the site declared (history: declared)",
        ),
        (
            Proof,
            "networks",
            "whether the networks in the site's policy are the crawler's (proof: networks)",
        ),
    ] {
        let count = findings
            .requests
            .iter()
            .filter(|request| request.field_text_or_empty(field) == value)
            .count();
        if count > 0 {
            let requests = plural_thousands(count, "request");
            let message = format!("{what}: that is the site's word, for {requests}");
            findings.add_unknown("word-of-operator", message);
        }
    }
}

/// The files that requests with a declared history were judged by, and that no log published.
fn declared_files(of_crawler: &[EvidenceEntry], all: &CaseRobotsEvidence) -> Vec<Hash> {
    let declared: BTreeSet<Hash> = of_crawler
        .iter()
        .filter(|entry| entry.data_text("history") == Some("declared"))
        .flat_map(|entry| entry.data_texts("cached_sha256"))
        .filter_map(Hash::parse)
        .filter(|hash| !all.published.contains_key(hash))
        .collect();
    Vec::from_iter(declared)
}

/// `since` of the entry, but not later than the entry itself. Each start of crawlgate records the
/// present publication again.
fn published_since(entry: &EvidenceEntry) -> String {
    entry
        .data_text("since")
        .filter(|since| *since < entry.time.as_str())
        .unwrap_or(&entry.time)
        .to_owned()
}

fn served_file(entry: &EvidenceEntry, personal: &PersonalValues) -> ServedRobotsTxt {
    ServedRobotsTxt {
        time: entry.text_or_empty("arrived"),
        host: entry.text_or_empty("host"),
        version: entry.text_or_empty("version"),
        status: entry.number_or_zero("status"),
        if_none_match: entry.data_text("if_none_match").map(str::to_owned),
        client: client_text(personal, entry),
        identity: entry.text_or_empty("identity"),
    }
}

/// Adds the finding about a `request` entry, judged again by the files of the case. It is a fault if
/// the entry is a violation, and a version that the crawler may have had allows it.
fn add_request_finding(
    entry: &EvidenceEntry,
    personal: &PersonalValues,
    all: &CaseRobotsEvidence,
    findings: &mut LogFindings,
) {
    let time = entry.text_or_empty("arrived");
    let client = client_text(personal, entry);
    // What an impostor was served says nothing about the crawler, and the other way round.
    let copies = all.served.iter().rev().filter(|(_, copy)| {
        entry.data_text("version") == Some(&copy.version)
            && entry.data_text("host") == Some(&copy.host)
            && entry.data_text("identity") == Some(&copy.identity)
            && copy.time <= time
    });
    // The last copy. One without an address may have been for this client.
    let served = copies
        .clone()
        .find(|(_, copy)| copy.client == client)
        .or_else(|| copies.min_by_key(|(_, copy)| copy.client.is_some()));
    let mut finding = RequestFinding {
        number: entry.number,
        recorded: entry.time.clone(),
        request: request_row(entry, personal),
        license: entry.data_text("license").map(str::to_owned),
        proof_entry: named_proof(entry).map(|proof| proof.number),
        served_at: served.map(|(_, copy)| copy.time.clone()),
        served_by: served
            .map(|(log, _)| log.clone())
            .filter(|log| *log != findings.log),
        served_to: served.and_then(|(_, copy)| copy.client.clone()),
        rule_in_case: None,
        rejudged: "not judged",
        time,
        remark: None,
    };
    let target = finding.field_text(Target).map(Cow::into_owned);
    let versions = named_robots_files(entry);
    match all.robots.rejudge(entry, target.as_deref(), &versions) {
        Disallowed => {
            finding.rejudged = "disallowed";
            finding.remark = earlier_version_remark(entry, all, target.as_deref(), &versions);
        }
        Allowed(by) => {
            finding.rejudged = "allowed";
            if entry.data_text("kind") == Some("violation") {
                findings.add_fault(
                    "allowed-violation",
                    format!(
                        "{}: entry {} is recorded as a violation, but a robots.txt that the crawler may have had allows it: {}",
                        CHAIN_FILES[0],
                        entry.number,
                        join(by, ", ")
                    ),
                );
            }
        }
        Unknown(why) => finding.remark = Some(why.to_owned()),
    }
    if finding.rejudged != "not judged" {
        finding.rule_in_case = all.robots.disallowing_line(entry, target.as_deref());
    }
    findings.requests.push(finding);
}

/// The [`CASE_FIELDS`] of a `request` entry.
fn request_row(entry: &EvidenceEntry, personal: &PersonalValues) -> RecordRow {
    let value = |field: &RecordField| {
        let name = field.name();
        let text = if *field == Client {
            client_text(personal, entry)
        } else if field.is_personal() {
            personal_value(personal, entry, name).map(str::to_owned)
        } else {
            entry.data_text(name).map(str::to_owned)
        };
        let value = match (text, entry.data.get(name)) {
            (Some(text), _) => FieldValue::from_string(text),
            (None, Some(Json::Bool(flag))) => FieldValue::Flag(*flag),
            (None, Some(Json::Number(number))) => number
                .as_u64()
                .map_or(FieldValue::Nothing, FieldValue::Number),
            _ => FieldValue::Nothing,
        };
        (*field, value)
    };
    CASE_FIELDS.iter().map(value).collect()
}

/// A remark if a version that was published before the request allows it, and is not among those
/// that crawlgate judged by (`counted`).
fn earlier_version_remark(
    entry: &EvidenceEntry,
    all: &CaseRobotsEvidence,
    target: Option<&str>,
    counted: &[Hash],
) -> Option<String> {
    let (hash, since) = all.published.iter().find(|(hash, since)| {
        **since <= entry.time
            && !counted.contains(hash)
            && matches!(all.robots.rejudge(entry, target, &[**hash]), Allowed(_))
    })?;
    Some(format!(
        "robots/{hash}.txt, published from {since} on, allows it. This is no excuse: by the log, every copy of that file was \
         too old for the crawler to use"
    ))
}

/// Whether a `gap` entry says that entries of the span may be missing.
fn is_within(gap: &EvidenceEntry, findings: &LogFindings) -> bool {
    let time = |name| gap.data_text(name).unwrap_or(&gap.time);
    !matches!(gap.data_text("reason"), Some("clock" | "withdrawn"))
        && *time("from") < *findings.to
        && *time("until") >= *findings.from
}

/// The finding about a `gap` entry.
fn gap_finding(entry: &EvidenceEntry) -> Finding {
    let [reason, from, until] =
        ["reason", "from", "until"].map(|name| entry.data_text(name).unwrap_or("?"));
    let entries = entry.number_or_zero("entries");
    let time = &entry.time;
    let message = match reason {
        "stop" => {
            format!("nothing was recorded from {from} until {until}: crawlgate was not running")
        }
        "crash" => format!(
            "entries from {from} until {until} may be missing: crawlgate crashed, or could not write the end of its log, and did not run for a part of this time"
        ),
        "upgrade" => format!(
            "entries from {from} until {until} may be missing: crawlgate was upgraded, and its former process may have been killed"
        ),
        "too_many" => format!(
            "{entries} entries of this crawler were left out before {time}: too many came at once"
        ),
        "half_full" | "not_written" => {
            let why = if reason == "half_full" {
                "because the log was half full. These requests passed, and broke no rule"
            } else {
                "because the disk or the log was full"
            };
            format!("missing entries of all crawlers from {from} until {time}: {entries}, {why}")
        }
        "clock" => {
            let by = entry.data.get("milliseconds").unwrap_or(&Json::Null);
            format!(
                "the clock was changed by {by} ms before {time}: do not compare times before and after that"
            )
        }
        "withdrawn" => {
            format!("personal values that were deleted at {time}, of all crawlers: {entries}")
        }
        other => {
            return Finding::new(
                "gap",
                format!("entries may be missing before {time}: {other}"),
            );
        }
    };
    Finding {
        id: format!("gap-{}", reason.replace('_', "-")).into(),
        message,
    }
}

/// The longest target that is recorded as a whole, plus one.
const MAX_RECORDED_TARGET: usize = 2048;
/// The most readings in the cache.
const MAX_CACHED_READINGS: usize = 256;

/// The verdict of the robots.txt files in the case on a request.
pub enum CaseRobotsVerdict {
    /// All versions disallow it.
    Disallowed,
    /// These versions allow it or do not bind the crawler.
    Allowed(Vec<Hash>),
    /// It cannot be judged, for this reason.
    Unknown(&'static str),
}

/// Parsed files by hash, dialect, and the crawler's tokens that contain a blank.
type ReadingCache = HashMap<(Hash, Dialect, Vec<String>), Rc<DialectRules>>;

/// The robots.txt files of a case.
pub struct RobotsFiles {
    files: BTreeMap<Hash, Vec<u8>>,
    cache: RefCell<ReadingCache>,
}

impl RobotsFiles {
    pub fn new(files: BTreeMap<Hash, Vec<u8>>) -> RobotsFiles {
        RobotsFiles {
            files,
            cache: RefCell::default(),
        }
    }

    /// Judges a request by these versions, in each dialect in which the crawler may read them. A
    /// version counts as allowing if it does so in one dialect. `Unknown` if the target was withdrawn
    /// (`None`) or cut off, or a file is missing.
    pub fn rejudge(
        &self,
        request: &EvidenceEntry,
        target: Option<&str>,
        versions: &[Hash],
    ) -> CaseRobotsVerdict {
        let Some(target) = target else {
            return Unknown("the target was deleted");
        };
        if target.len() >= MAX_RECORDED_TARGET {
            return Unknown("only the beginning of the target was recorded");
        }
        let tokens = request.data_texts("tokens");
        let binds = request.data_text("binds").unwrap_or_default();
        let has_one_reading = request
            .data_text("readings")
            .is_none_or(|readings| readings == RobotsReadings::Rfc9309.name());
        let dialects = if has_one_reading {
            &[Dialect::Rfc9309]
        } else {
            Dialect::ALL.as_slice()
        };
        let mut allowed = Vec::new();
        for version in versions {
            for dialect in dialects {
                let Some(reading) = self.cached_reading(*version, *dialect, &tokens) else {
                    return Unknown("a robots.txt is not in the case");
                };
                if target_verdict(&reading, &tokens, binds, target).allowed {
                    allowed.push(*version);
                    break;
                }
            }
        }
        if allowed.is_empty() {
            Disallowed
        } else {
            Allowed(allowed)
        }
    }

    /// The file in the case that was in force, and its line that disallows the request by RFC 9309.
    fn disallowing_line(&self, request: &EvidenceEntry, target: Option<&str>) -> Option<String> {
        let hash = Hash::parse(request.data_text("sha256")?)?;
        let tokens = request.data_texts("tokens");
        let reading = self.cached_reading(hash, Dialect::Rfc9309, &tokens)?;
        let verdict = target_verdict(&reading, &tokens, request.data_text("binds")?, target?);
        let line = verdict.line.filter(|_| !verdict.allowed)?;
        Some(format!("robots/{hash}.txt line {line}"))
    }

    /// A robots.txt in this dialect for a crawler with these tokens; `None` if it is not in the case.
    fn cached_reading(
        &self,
        version: Hash,
        dialect: Dialect,
        tokens: &[&str],
    ) -> Option<Rc<DialectRules>> {
        let bytes = self.files.get(&version)?;
        let mut spaced = tokens.to_vec();
        spaced.retain(|token| token.contains(' '));
        let names = spaced.iter().map(ToString::to_string).collect();
        let key = (version, dialect, names);
        let mut cache = self.cache.borrow_mut();
        if cache.len() >= MAX_CACHED_READINGS {
            cache.clear();
        }
        let reading = cache.entry(key).or_insert_with(|| {
            Rc::new(DialectRules::new(
                &RobotsFile::parse(bytes.as_slice()),
                dialect,
                &spaced,
            ))
        });
        Some(reading.clone())
    }
}

/// The verdict of a robots.txt on a target. The group of the first token that has one binds the crawler;
/// else the group `*` if `binds` is `star` or `unknown`; else nothing does.
fn target_verdict(
    reading: &DialectRules,
    tokens: &[&str],
    binds: &str,
    target: &str,
) -> FileVerdict {
    let named = tokens
        .iter()
        .find(|token| reading.groups_for(token.as_bytes()).0 == GroupMatch::Named);
    // Within a URL: `//x/y` alone would be a host with a path.
    let url = if target.starts_with('/') {
        format!("https://host{target}")
    } else {
        target.to_owned()
    };
    match named {
        Some(token) => reading.verdict(token.as_bytes(), url.as_bytes()),
        // No crawler has the token `*`, so this finds the group for all.
        None if matches!(binds, "star" | "unknown") => reading.verdict(b"*", url.as_bytes()),
        None => FileVerdict {
            allowed: true,
            line: None,
            bound: GroupMatch::Nothing,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_token_with_a_group_binds() {
        let file = b"User-agent: *\nDisallow: /\n\nUser-agent: GPTBot\nDisallow: /private/\n";
        let reading = DialectRules::new(&RobotsFile::parse(file.as_slice()), Dialect::Rfc9309, &[]);
        for (tokens, binds, target, allowed) in [
            (&["GPTBot", "gptbot"][..], "star", "/a", true),
            (&["GPTBot"], "star", "/private/a?b", false),
            (&["OtherBot"], "unknown", "/a", false),
            (&["OtherBot"], "named", "/a", true),
        ] {
            assert_eq!(
                target_verdict(&reading, tokens, binds, target).allowed,
                allowed,
                "{tokens:?}"
            );
        }
        let doubled = DialectRules::new(
            &RobotsFile::parse(*b"User-agent: *\nDisallow: //x/\n"),
            Dialect::Rfc9309,
            &[],
        );
        assert!(!target_verdict(&doubled, &["GPTBot"], "star", "//x/y").allowed);
    }
}
