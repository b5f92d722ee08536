//! [`case_summary`] writes the first sentences of the report on a case (an excerpt of the evidence
//! log, as one file). They say what the crawler did and when, how certain it is that the client was
//! that crawler, and which facts the reader must take on trust from the site. [`count_requests`] has
//! the numbers below these sentences.

use super::{CaseFindings, LogFindings, MAX_NAMED, RequestFinding};
use crate::numbers::{plural_thousands, thousands};
use crate::printable::join;
use crate::record::{NO_CRAWLER, RecordField};
use crate::report::{crawler_name, is_unprovable_label};
use IdentityAssurance::{Asserted, AssertedImpostor, Claimed, Impostor, Proven};
use std::collections::{BTreeMap, BTreeSet};
use strum::VariantArray;

use RecordField::*;

/// How sure the case is that the client of a request was the crawler.
#[derive(Clone, Copy, Debug, PartialEq, VariantArray)]
pub enum IdentityAssurance {
    /// The case has a proof that it was.
    Proven,
    /// The site says that it was: by networks of the policy, or by a proof that was deleted or whose
    /// address was.
    Asserted,
    /// It is not known.
    Claimed,
    /// The case has a proof that it was not.
    Impostor,
    /// The site says that it was not.
    AssertedImpostor,
}

impl IdentityAssurance {
    pub fn from_request(request: &RequestFinding, findings: &LogFindings) -> IdentityAssurance {
        let has_proof = findings
            .proofs
            .iter()
            .any(|proof| Some(proof.number) == request.proof_entry && proof.is_complete);
        match (&*request.field_text_or_empty(Identity), has_proof) {
            ("verified", true) => Proven,
            ("verified", false) => Asserted,
            ("impostor", true) => Impostor,
            ("impostor", false) => AssertedImpostor,
            _ => Claimed,
        }
    }

    /// The heading of the numbers of these requests.
    pub fn heading(self) -> &'static str {
        match self {
            Proven => "verified",
            Asserted => "verified by the site's word alone",
            Claimed => "not verified",
            Impostor => "pretending",
            AssertedImpostor => "pretending by the site's word alone",
        }
    }
}

/// The requests of a log with this basis.
pub fn requests_with(findings: &LogFindings, basis: IdentityAssurance) -> Vec<&RequestFinding> {
    findings
        .requests
        .iter()
        .filter(|request| IdentityAssurance::from_request(request, findings) == basis)
        .collect()
}

/// `2026-11-28 10:00:00 UTC`; a text of another form is returned as it is.
pub fn format_time(time: &str) -> String {
    let day = time.get(..11).and_then(|day| day.strip_suffix('T'));
    match (day, time.get(11..19)) {
        (Some(day), Some(clock)) if time.ends_with('Z') => format!("{day} {clock} UTC"),
        _ => time.to_owned(),
    }
}

/// Like [`format_time`], with the milliseconds, which show the order of entries.
pub fn format_exact_time(time: &str) -> String {
    let milliseconds = time.get(19..23).unwrap_or_default();
    format_time(time).replace(" UTC", &format!("{milliseconds} UTC"))
}

/// The clients that a case is about: `clients that call themselves GPTBot`.
pub fn clients_text(crawler: &str) -> String {
    match crawler {
        NO_CRAWLER => "visitors".to_owned(),
        label if is_unprovable_label(label) => crawler_name(label).to_owned(),
        label => format!("clients that call themselves {}", crawler_name(label)),
    }
}

/// The hosts that the crawler asked, or the id of the site.
pub fn hosts_text(case: &CaseFindings) -> String {
    let mut hosts = BTreeSet::new();
    for log in &case.logs {
        hosts.extend(log.served.iter().map(|copy| copy.host.clone()));
        hosts.extend(
            log.requests
                .iter()
                .filter_map(|request| text(request, Host)),
        );
    }
    match hosts.len() {
        0 => case
            .logs
            .first()
            .map(|log| log.site.clone())
            .unwrap_or_default(),
        1..=MAX_NAMED => join(hosts, ", "),
        more => format!("{} hosts", thousands(more)),
    }
}

/// The sentences about what happened, about whose requests these were, and about what rests on the
/// word of the site.
pub fn case_summary(case: &CaseFindings) -> [String; 3] {
    [
        what_happened(case),
        identity_sentences(case),
        site_sentences(case),
    ]
}

fn what_happened(case: &CaseFindings) -> String {
    let Some(first) = case.logs.first() else {
        return String::new();
    };
    let requests = case.logs.iter().flat_map(|log| &log.requests);
    let mut times: Vec<String> = requests.clone().map(|one| format_time(&one.time)).collect();
    times.sort_unstable();
    let count = plural_thousands(times.len(), "request");
    times.dedup();
    let hosts = hosts_text(case);
    let clients = clients_text(&first.crawler);
    let when = match times.as_slice() {
        [] if !case.faults.is_empty() => {
            return "The requests of this case cannot be counted, because it is not valid."
                .to_owned();
        }
        [] => {
            return format!(
                "From {} until {} the log has no request by {clients} against the rules of {hosts}.",
                format_time(&first.from),
                format_time(&first.to)
            );
        }
        [time] => format!("At {time}"),
        [begin, .., end] => format!("From {begin} until {end}"),
    };
    let disallowed = match requests.filter(|one| one.is_disallowed()).count() {
        0 => String::new(),
        number => format!("; robots.txt disallows {}", thousands(number)),
    };
    format!("{when}, the log has {count} by {clients} to {hosts}{disallowed}.")
}

/// What requests are counted for, in the order of the rows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestFact {
    All,
    Disallowed,
    /// Disallowed, but with this reason why it may be no violation.
    Doubtful(String),
    Unlicensed,
    AskedForLicense,
    NotAskedForLicense,
    /// Disallowed or unlicensed, from a client that had been served this robots.txt before.
    Served,
    NotServed,
    PerhapsServed,
    /// Against the policy for this other reason.
    Other(String),
    WithToken,
    ReservedPage,
    ReservedPageWithToken,
    ReservedPageWithUnknownAnswer,
    Blocked,
    /// Enforcement would have blocked it.
    WouldBeBlocked,
    Passed,
    GotPage,
    UnknownAnswer,
}

use RequestFact::*;

/// The numbers of a case's requests, in the order of [`IdentityAssurance::VARIANTS`].
pub type RequestCounts = BTreeMap<RequestFact, [usize; IdentityAssurance::VARIANTS.len()]>;

pub fn count_requests(case: &CaseFindings) -> RequestCounts {
    let mut counts = RequestCounts::new();
    for (place, basis) in IdentityAssurance::VARIANTS.iter().enumerate() {
        for fact in case_requests_with(case, *basis)
            .into_iter()
            .flat_map(request_facts)
        {
            counts.entry(fact).or_default()[place] += 1;
        }
    }
    counts
}

/// The rules that disallow requests.
pub fn rule_names(case: &CaseFindings) -> String {
    names_text(case, "rules", |one| {
        text(one, Rule).filter(|_| one.is_disallowed())
    })
}

/// The licences that requests lack.
pub fn license_names(case: &CaseFindings) -> String {
    names_text(case, "licences", |one| one.license.clone())
}

fn request_facts(request: &RequestFinding) -> Vec<RequestFact> {
    let mut facts = vec![All];
    let reason = request.kind_reason().into_owned();
    let action = request.field_text_or_empty(Action);
    if request.is_disallowed() {
        facts.push(Disallowed);
        facts.push(served_fact(request));
        if reason.starts_with("may be no violation") {
            facts.push(Doubtful(reason));
        }
    } else if request.lacks_license() {
        facts.push(Unlicensed);
        facts.push(served_fact(request));
        facts.push(match &*action {
            "license" => AskedForLicense,
            _ => NotAskedForLicense,
        });
    } else if !request.is_allowed() {
        facts.push(Other(reason));
    }
    let status = request.field_text_or_empty(RecordField::Status);
    if request.is_reserved() {
        facts.push(ReservedPage);
        if request.has_license_token() {
            facts.push(ReservedPageWithToken);
        }
        if status == "0" {
            facts.push(ReservedPageWithUnknownAnswer);
        }
    }
    if request.has_license_token() {
        facts.push(WithToken);
    }
    match &*status {
        "200" => facts.push(GotPage),
        "0" => facts.push(UnknownAnswer),
        _ => {}
    }
    facts.push(match (&*action, text(request, Would)) {
        ("pass" | "", None) => Passed,
        ("pass" | "", Some(_)) => WouldBeBlocked,
        _ => Blocked,
    });
    facts
}

/// Whether the client of a request against the policy had been served robots.txt.
fn served_fact(request: &RequestFinding) -> RequestFact {
    match (text(request, Client), &request.served_to) {
        (Some(client), Some(served)) if client == *served => Served,
        (Some(_), Some(_)) => NotServed,
        _ if request.served_at.is_some() => PerhapsServed,
        _ => NotServed,
    }
}

/// The names of these requests, such as their rules, in brackets; or their number with the word
/// `kind`.
fn names_text(
    case: &CaseFindings,
    kind: &str,
    name: fn(&RequestFinding) -> Option<String>,
) -> String {
    let names: BTreeSet<String> = case
        .logs
        .iter()
        .flat_map(|log| &log.requests)
        .filter_map(name)
        .collect();
    match names.len() {
        0 => String::new(),
        1..=MAX_NAMED => format!(" ({})", join(names, ", ")),
        more => format!(" ({} {kind})", thousands(more)),
    }
}

/// The requests of all logs with this basis.
fn case_requests_with(case: &CaseFindings, basis: IdentityAssurance) -> Vec<&RequestFinding> {
    case.logs
        .iter()
        .flat_map(|log| requests_with(log, basis))
        .collect()
}

fn identity_sentences(case: &CaseFindings) -> String {
    let mut sentences = Vec::new();
    let mut has_proof = false;
    let name = case
        .logs
        .first()
        .map_or("", |log| crawler_name(&log.crawler));
    for basis in IdentityAssurance::VARIANTS {
        let requests = case_requests_with(case, *basis);
        if requests.is_empty() {
            continue;
        }
        has_proof |= matches!(basis, Proven | Impostor);
        let count = plural_thousands(requests.len(), "request");
        sentences.push(match basis {
            Proven => {
                format!("{count} came from {name}, by the addresses, DNS names or keys of its operator.")
            }
            Asserted => format!("Only the site says that {count} came from {name}."),
            Claimed => format!("Nobody has proved who sent {count}."),
            Impostor => format!(
                "{count} did not come from {name}, by the addresses or DNS names of its operator: the client only pretended to be {name}."
            ),
            AssertedImpostor => format!(
                "Only the site says that {count} did not come from {name}: the client pretended to be {name}."
            ),
        });
    }
    if has_proof {
        sentences.push(
            "The case has the site's copy of these. Compare it with what the operator publishes."
                .to_owned(),
        );
        let proofs = case.logs.iter().flat_map(|log| &log.proofs);
        let supplied = proofs.filter(|proof| proof.is_supplied).count();
        if supplied > 0 {
            let copy = plural_thousands(supplied, "proof");
            sentences.push(format!(
                "The site supplied the copy of {copy} itself, and did not fetch it from the operator."
            ));
        }
    }
    join(sentences, " ")
}

fn site_sentences(case: &CaseFindings) -> String {
    let mut sentences = timestamp_sentences(case);
    let mut not_judged = 0;
    let mut declared = 0;
    for request in case.logs.iter().flat_map(|log| &log.requests) {
        if request.field_text_or_empty(History) == "declared" {
            declared += usize::from(request.rejudged == "disallowed");
        }
        not_judged += usize::from(request.rejudged == "not judged" && request.is_disallowed());
    }
    if not_judged > 0 {
        let count = plural_thousands(not_judged, "request");
        sentences += &format!(
            " Only the site says that robots.txt disallows {count}: the path was deleted or cut off."
        );
    }
    if declared > 0 {
        let count = plural_thousands(declared, "disallowed request");
        sentences += &format!(
            " {count} came when the crawler could still use a robots.txt from before crawlgate. That file disallows \
             the same, but only the site says what it was."
        );
    }
    sentences
}

/// Which requests the timestamps cover. Empty if there are timestamps, but no requests: the checks
/// name the timestamps.
fn timestamp_sentences(case: &CaseFindings) -> String {
    if case.logs.iter().all(|log| log.timestamps.is_empty()) {
        return "This case has no timestamp of an authority. The times are only the site's word. Only the site says \
                that the entries are true and complete."
            .to_owned();
    }
    let mut all = 0;
    // The earliest timestamp of each request that has one.
    let mut stamps = Vec::new();
    for log in &case.logs {
        all += log.requests.len();
        for request in &log.requests {
            let covering = log.timestamps.iter();
            let covering = covering.filter(|stamp| request.recorded <= stamp.covers_until);
            stamps.extend(covering.min_by_key(|stamp| &stamp.time));
        }
    }
    if all == 0 {
        return String::new();
    }
    stamps.sort_by_key(|stamp| &stamp.time);
    let requests = plural_thousands(all, "request");
    let mut existed = Vec::new();
    for stamp in stamps.first().into_iter().chain(stamps.last()) {
        let covered = stamps.iter().filter(|one| one.time <= stamp.time).count();
        let part = if covered < all {
            format!("{} of ", thousands(covered))
        } else {
            String::new()
        };
        existed.push(format!(
            "A timestamp shows that the entries of {part}{requests} existed at {} ({}).",
            format_time(&stamp.time),
            stamp.authority
        ));
    }
    existed.dedup();
    if existed.is_empty() {
        return format!(
            "No timestamp covers the entries of {requests}. Only the site says that they are true and complete."
        );
    }
    format!(
        "{} The site chose the authority: decide whether you trust it. \
         check.sh checks the signature. Only the site says that the entries are true and complete.",
        join(existed, " ")
    )
}

fn text(request: &RequestFinding, field: RecordField) -> Option<String> {
    request.field_text(field).map(|text| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::findings::CheckpointTimestamp;
    use crate::evidence::{ProofFinding, RESERVED_PAGE};
    use crate::record::{FieldValue, RecordRow};

    /// A log with a request of each of these kinds.
    fn log_findings(kinds: &[&str]) -> LogFindings {
        let requests = kinds.iter().zip(10..).map(|(kind, second)| RequestFinding {
            time: format!("2026-11-28T10:00:{second}.000Z"),
            recorded: format!("2026-11-28T10:00:{second}.500Z"),
            served_to: Some("203.0.113.5".to_owned()),
            rejudged: "not judged",
            request: [
                (RecordField::Kind, *kind),
                (RecordField::Host, "shop.example"),
                (RecordField::Rule, "Disallow: /cart/"),
                (RecordField::Client, "203.0.113.5"),
                (RecordField::Action, "block"),
                (
                    RecordField::Verdict,
                    match *kind {
                        "too_fast" => "allowed",
                        _ => "disallowed",
                    },
                ),
            ]
            .map(|(field, text)| (field, FieldValue::from_string(text.to_owned())))
            .into_iter()
            .collect(),
            ..RequestFinding::default()
        });
        LogFindings {
            crawler: "gptbot".into(),
            site: "shop".into(),
            requests: requests.collect(),
            ..LogFindings::default()
        }
    }

    /// A request with only these fields.
    fn with_fields(fields: &[(RecordField, &str)]) -> RecordRow {
        let texts = fields.iter().copied();
        texts
            .map(|(field, text)| (field, FieldValue::from_string(text.to_owned())))
            .collect()
    }

    /// The numbers of requests with this fact, by identity.
    fn counts(log: &LogFindings, fact: RequestFact) -> Vec<usize> {
        let case = CaseFindings::from_logs(vec![log.clone()]);
        let counts = count_requests(&case);
        let numbers = counts.get(&fact).copied().unwrap_or_default().into_iter();
        let columns = numbers.zip(counts[&All]).filter(|(_, all)| *all > 0);
        columns.map(|(number, _)| number).collect()
    }

    fn flag(request: &mut RequestFinding, field: RecordField) {
        request.request.push(field, FieldValue::Flag(true));
    }

    #[test]
    fn summary_has_names_times_rules_and_numbers() {
        let mut log = log_findings(&["violation", "unproven", "too_fast"]);
        log.requests[2].request = with_fields(&[
            (RecordField::Kind, "too_fast"),
            (RecordField::Host, "shop.example"),
            (RecordField::Action, "pass"),
            (RecordField::Would, "slow"),
        ]);
        log.requests[1].served_to = None;
        let cached = FieldValue::from_string("perhaps_cached".to_owned());
        log.requests[1].request.push(RecordField::History, cached);
        log.requests[1].rejudged = "disallowed";
        let impostor = FieldValue::from_string("impostor".to_owned());
        log.requests[0]
            .request
            .push(RecordField::Identity, impostor);
        for (fact, numbers) in [
            (All, [2, 1]),
            (Disallowed, [1, 1]),
            (Doubtful(log.requests[1].kind_reason().into()), [1, 0]),
            (Other("too fast".into()), [1, 0]),
            (Served, [0, 1]),
            (NotServed, [1, 0]),
            (Blocked, [1, 1]),
            (WouldBeBlocked, [1, 0]),
        ] {
            assert_eq!(counts(&log, fact.clone()), numbers, "{fact:?}");
        }
        let case = CaseFindings::from_logs(vec![log]);
        assert_eq!(rule_names(&case), " (Disallow: /cart/)");
        let [happened, identity, of_site] = case_summary(&case);
        for part in [
            "3 requests by clients that call themselves GPTBot to shop.example",
            "disallows 2",
            "2026-11-28 10:00:10 UTC",
            "2026-11-28 10:00:12 UTC",
        ] {
            assert!(happened.contains(part), "{part}: {happened}");
        }
        assert!(identity.contains("2 requests"), "{identity}");
        assert!(of_site.contains("disallows 1 request:"), "{of_site}");
    }

    #[test]
    fn deleted_addresses_are_counted_as_not_known() {
        let mut log = log_findings(&["violation", "violation", "violation"]);
        for request in &mut log.requests {
            request.served_at = Some("2026-11-28T09:00:00.000Z".to_owned());
        }
        let client = FieldValue::from_string("203.0.113.5".to_owned());
        log.requests[0].request = with_fields(&[(RecordField::Verdict, "disallowed")]);
        let served = |log: &LogFindings| {
            [Served, NotServed, PerhapsServed].map(|fact| counts(log, fact).iter().sum::<usize>())
        };
        assert_eq!(served(&log), [2, 0, 1]);
        // The addresses of the copies were deleted, and that of one request was not.
        log.requests[0].request.push(RecordField::Client, client);
        for request in &mut log.requests {
            request.served_to = None;
        }
        assert_eq!(served(&log), [0, 0, 3]);
        // Nobody of the class was sent the file: that is known.
        for request in &mut log.requests {
            request.served_at = None;
        }
        assert_eq!(served(&log), [0, 3, 0]);
    }

    #[test]
    fn proven_crawler_is_first_and_apart_from_impostors() {
        let mut log = log_findings(&["violation", "violation", "violation"]);
        for (place, identity) in ["impostor", "unverified", "verified"].iter().enumerate() {
            let value = FieldValue::from_string((*identity).to_owned());
            let request = &mut log.requests[place];
            request.request.push(RecordField::Identity, value);
            request.proof_entry = (*identity == "verified").then_some(7);
        }
        log.proofs.push(ProofFinding {
            number: 7,
            is_complete: true,
            ..ProofFinding::default()
        });
        let counts = count_requests(&CaseFindings::from_logs(vec![log]));
        assert_eq!(counts[&All], [1, 0, 1, 0, 1]);
    }

    #[test]
    fn requests_without_licence_are_no_disallowed_ones() {
        // Of the kinds of `log_findings`, robots.txt allows this one.
        let mut log = log_findings(&["too_fast", "violation", "too_fast"]);
        for (place, action) in [(0, "license"), (2, "pass")] {
            log.requests[place].request = with_fields(&[
                (RecordField::Kind, "allowed"),
                (RecordField::Client, "203.0.113.5"),
                (RecordField::Action, action),
                (RecordField::Would, if place == 0 { "" } else { "license" }),
            ]);
        }
        for (fact, number) in [
            (Disallowed, 1),
            (Unlicensed, 2),
            (AskedForLicense, 1),
            (NotAskedForLicense, 1),
            (Served, 3),
        ] {
            assert_eq!(counts(&log, fact.clone()), [number], "{fact:?}");
        }
    }

    #[test]
    fn tokens_and_reserved_pages_are_counted_beside_findings() {
        let mut log = log_findings(&["violation", "violation", "violation", "allowed"]);
        log.requests[3].request = with_fields(&[
            (RecordField::Kind, "allowed"),
            (RecordField::Action, "pass"),
        ]);
        for place in [0, 1] {
            flag(&mut log.requests[place], RecordField::Reserved);
        }
        for place in [1, 2, 3] {
            flag(&mut log.requests[place], RecordField::LicenseToken);
        }
        let words: Vec<_> = log.requests.iter().map(|one| one.kind_words()).collect();
        assert_eq!(
            words,
            [
                format!("violation; {RESERVED_PAGE}"),
                format!("violation; with a licence token; {RESERVED_PAGE}"),
                "violation; with a licence token".to_owned(),
                "not disallowed by robots.txt; with a licence token".to_owned(),
            ]
        );
        let unknown = FieldValue::Number(0);
        log.requests[0].request.push(RecordField::Status, unknown);
        for (fact, number) in [
            (WithToken, 3),
            (ReservedPage, 2),
            (ReservedPageWithToken, 1),
            (ReservedPageWithUnknownAnswer, 1),
            (UnknownAnswer, 1),
            (Passed, 1),
        ] {
            assert_eq!(counts(&log, fact.clone()), [number], "{fact:?}");
        }
    }

    #[test]
    fn declared_file_is_no_excuse_where_it_disallows() {
        let mut log = log_findings(&["violation", "unproven"]);
        log.requests[0].rejudged = "disallowed";
        for request in &mut log.requests {
            let declared = FieldValue::from_string("declared".to_owned());
            request.request.push(RecordField::History, declared);
        }
        let [.., of_site] = case_summary(&CaseFindings::from_logs(vec![log]));
        for part in [
            "1 disallowed request came when the crawler could still use a robots.txt from before",
            "only the site says what it was",
        ] {
            assert!(of_site.contains(part), "{part}: {of_site}");
        }
    }

    #[test]
    fn observed_requests_are_apart_from_blocked_ones() {
        let mut log = log_findings(&["violation", "impostor", "license"]);
        let observed = |kind, would| {
            with_fields(&[
                (RecordField::Kind, kind),
                (RecordField::Action, "pass"),
                (RecordField::Would, would),
            ])
        };
        log.requests[0].request = observed("violation", "block");
        log.requests[0].rejudged = "disallowed";
        log.requests[1].request = observed("impostor", "block");
        log.requests[2].request = observed("allowed", "license");
        let status = FieldValue::Number(200);
        log.requests[2].request.push(RecordField::Status, status);
        log.requests[2].license = Some("https://shop.example/license.xml".to_owned());
        for (fact, number) in [
            (WouldBeBlocked, 3),
            (GotPage, 1),
            (Blocked, 0),
            (UnknownAnswer, 0),
        ] {
            assert_eq!(counts(&log, fact).iter().sum::<usize>(), number);
        }
        let words = license_names(&CaseFindings::from_logs(vec![log]));
        assert!(
            words.contains("(https://shop.example/license.xml)"),
            "{words}"
        );
    }

    #[test]
    fn requests_that_may_be_no_violation_are_counted_with_the_reason() {
        let kinds = [
            "stale_copy",
            "unproven",
            "ambiguous",
            "violation",
            "not_bound",
        ];
        let log = log_findings(&kinds);
        for (place, number) in [(0, 2), (2, 1), (4, 1)] {
            let fact = Doubtful(log.requests[place].kind_reason().into());
            assert_eq!(counts(&log, fact), [number]);
        }
    }

    #[test]
    fn only_times_of_the_log_are_shown_as_utc() {
        let shown = format_time("2026-11-28T10:00:00.000Z");
        assert_eq!(shown, "2026-11-28 10:00:00 UTC");
        let exact = format_exact_time("2026-11-28T10:00:00.007Z");
        assert_eq!(exact, "2026-11-28 10:00:00.007 UTC");
        for other in ["2026-11-28T10:00:00+09:00", "2026-11-28 10:00:00Z", "TZ"] {
            assert_eq!(format_time(other), other);
        }
    }

    #[test]
    fn timestamp_counts_for_requests_that_it_covers() {
        let mut log = log_findings(&["violation", "violation"]);
        let stamp = |covers_until: &str, time: &str| CheckpointTimestamp {
            covers_until: covers_until.into(),
            time: time.into(),
            authority: "CN=tsa".into(),
        };
        log.timestamps = vec![stamp("2026-11-28T10:00:11.000Z", "2026-11-28T10:01:00Z")];
        let without = LogFindings {
            requests: Vec::new(),
            ..log.clone()
        };
        let [_, _, of_site] = case_summary(&CaseFindings::from_logs(vec![log.clone()]));
        for part in ["1 of 2 requests", "at 2026-11-28 10:01:00 UTC (CN=tsa)"] {
            assert!(of_site.contains(part), "{part}: {of_site}");
        }
        // The earliest timestamp of each request counts.
        for time in ["2026-11-28T10:02:00Z", "2026-11-28T10:03:00Z"] {
            log.timestamps.push(stamp("2026-11-28T10:00:12.000Z", time));
        }
        let [_, _, of_site] = case_summary(&CaseFindings::from_logs(vec![log]));
        for part in [
            "1 of 2 requests existed at 2026-11-28 10:01:00 UTC",
            "of 2 requests existed at 2026-11-28 10:02:00 UTC",
        ] {
            assert!(of_site.contains(part), "{part}: {of_site}");
        }
        assert!(!of_site.contains("10:03:00"), "{of_site}");
        let [_, _, of_site] = case_summary(&CaseFindings::from_logs(vec![without]));
        assert!(of_site.is_empty(), "{of_site}");
    }

    #[test]
    fn case_without_requests_has_its_time_and_site() {
        let log = LogFindings {
            from: "2026-11-01T00:00:00.000Z".into(),
            ..log_findings(&[])
        };
        let [happened, identity, _] = case_summary(&CaseFindings::from_logs(vec![log]));
        assert!(happened.contains("2026-11-01 00:00:00 UTC") && happened.contains("shop"));
        assert!(identity.is_empty());
    }
}
