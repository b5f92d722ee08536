//! [`case_summary`] writes the first paragraphs of the report on a case (an excerpt of the
//! evidence log, as one file). They say what the crawler did and when, how certain it is that the
//! client was that crawler, and which facts the reader must take on trust from the site.

use super::proofs::SUPPLIED_LISTS;
use super::{CaseFindings, LogFindings, RequestFinding};
use crate::numbers::{plural_thousands, thousands};
use crate::printable::join;
use crate::record::{NO_CRAWLER, RecordField};
use crate::report::{crawler_name, is_unprovable_label};
use IdentityAssurance::{Asserted, AssertedImpostor, Claimed, Impostor, Proven};
use std::collections::{BTreeMap, BTreeSet};
use strum::VariantArray;

use RecordField::*;

/// More hosts or rules are only counted.
const MAX_NAMED: usize = 3;

const PROOF_SOURCE: &str = "The proof rests on the site's copy of a list, DNS names or keys. Compare this copy with what the operator publishes.";

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
        let mut proofs = findings.proofs.iter();
        let has_proof =
            proofs.any(|proof| Some(proof.number) == request.proof_entry && proof.is_complete);
        match (&*request.field_text_or_empty(Identity), has_proof) {
            ("verified", true) => Proven,
            ("verified", false) => Asserted,
            ("impostor", true) => Impostor,
            ("impostor", false) => AssertedImpostor,
            _ => Claimed,
        }
    }

    /// The clients of this identity as the subject of a sentence.
    fn subject(self, crawler: &str) -> String {
        let name = crawler_name(crawler);
        match self {
            Proven => name.to_owned(),
            Asserted => format!("{name} (by the site's word alone)"),
            Claimed => clients_text(crawler).replacen("clients", "unverified clients", 1),
            Impostor => format!("clients that only pretended to be {name}"),
            AssertedImpostor => {
                format!("clients that only pretended to be {name} (by the site's word alone)")
            }
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

/// What the case shows: what happened (a line for each identity of clients), whose requests these
/// were, and what rests on the word of the site.
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
    let hosts = hosts_text(case);
    if case.logs.iter().all(|log| log.requests.is_empty()) {
        return format!(
            "From {} until {} the log has no request by {} against the rules of {hosts}.",
            format_time(&first.from),
            format_time(&first.to),
            clients_text(&first.crawler)
        );
    }
    let mut sentences = Vec::new();
    for basis in IdentityAssurance::VARIANTS {
        let logs = case.logs.iter();
        let requests: Vec<_> = logs.flat_map(|log| requests_with(log, *basis)).collect();
        if !requests.is_empty() {
            let subject = basis.subject(&first.crawler);
            sentences.push(requests_sentences(&requests, &subject, &hosts));
        }
    }
    join(sentences, "\n")
}

/// What clients of one identity (`subject`) sent, a sentence for each fact.
fn requests_sentences(requests: &[&RequestFinding], subject: &str, hosts: &str) -> String {
    let mut times: Vec<String> = requests.iter().map(|one| format_time(&one.time)).collect();
    times.sort_unstable();
    times.dedup();
    let when = match times.as_slice() {
        [begin, .., end] => format!("From {begin} until {end}"),
        times => format!("At {}", times.concat()),
    };
    let disallowed: Vec<_> = requests.iter().filter(|one| one.is_disallowed()).collect();
    let unlicensed: Vec<_> = requests.iter().filter(|one| one.lacks_license()).collect();
    let mut others = BTreeMap::new();
    for one in requests {
        if !one.is_disallowed() && !one.lacks_license() {
            *others.entry(policy_words(one)).or_default() += 1;
        }
    }
    let disallows = format!(
        "that the robots.txt of {hosts} disallows{}",
        names_text(&disallowed, "rules", |one| text(one, Rule))
    );
    let lacks = format!(
        "to {hosts} without the licence that the site's policy asks for{}",
        names_text(&unlicensed, "licences", |one| one.license.clone())
    );
    let mut facts = vec![(disallows, disallowed.len()), (lacks, unlicensed.len())];
    facts.extend(others);
    let mut sentences = Vec::new();
    for (what, count) in facts {
        if count > 0 {
            let begin = match sentences.len() {
                0 => format!("{when}, {subject} sent"),
                _ => "The same clients also sent".to_owned(),
            };
            let count = plural_thousands(count, "request");
            sentences.push(format!("{begin} {count} {what}."));
        }
    }
    let mut in_doubt: BTreeMap<_, usize> = BTreeMap::new();
    let reasons = disallowed.iter().map(|one| one.kind_reason());
    for why in reasons.filter(|why| why.starts_with("may be no violation")) {
        *in_doubt.entry(why).or_default() += 1;
    }
    for (why, count) in in_doubt {
        let count = thousands(count);
        sentences.push(format!("Of the disallowed requests, {count} {why}."));
    }
    sentences.push(answers_sentence(requests));
    join(sentences, " ") + &served_sentence(requests)
}

/// What a request was that robots.txt does not disallow, and that lacked no licence.
fn policy_words(request: &RequestFinding) -> String {
    match request.passing_words() {
        Some(words) => words.to_owned(),
        None => format!(
            "that the site's policy does not allow ({})",
            request.kind_reason()
        ),
    }
}

/// How many requests the site refused or would have refused, and how they were answered. Counts of 0
/// are left out, except that of the refused requests.
fn answers_sentence(requests: &[&RequestFinding]) -> String {
    let actions = requests.iter().filter_map(|one| text(one, Action));
    let refused = actions.filter(|action| action != "pass");
    let mut sentence = format!(
        "In all, the site refused {} of {}",
        thousands(refused.count()),
        plural_thousands(requests.len(), "request")
    );
    let all = &requests.to_vec();
    let mut reserved = all.clone();
    reserved.retain(|one| one.is_reserved());
    for (among, field, value, what) in [
        (
            all,
            Would,
            "",
            "passed that the site would have refused under enforcement",
        ),
        (all, Status, "200", "got the page (status 200)"),
        (
            all,
            Status,
            "0",
            "got an answer that is not known: the site's own proxy sent it, or the client left before it",
        ),
        (
            all,
            Reserved,
            "",
            "passed to a page with a published reservation (TDM, Content-Signal or Content-Usage)",
        ),
        (
            &reserved,
            LicenseToken,
            "",
            "to such a page had a licence token that was not checked",
        ),
        (
            &reserved,
            Status,
            "0",
            "to such a page got an answer that is not known",
        ),
    ] {
        let count = among
            .iter()
            .filter_map(|one| text(one, field))
            .filter(|text| ["", text.as_str()].contains(&value))
            .count();
        if count > 0 {
            sentence += &format!(". {} {what}", plural_thousands(count, "request"));
        }
    }
    if sentence.contains(". ") {
        sentence.insert_str(0, "A request may be in several of these counts. ");
    }
    sentence + "."
}

/// How many of the requests against the policy came from a client that had been served robots.txt,
/// and of how many this is not known; empty without such requests.
fn served_sentence(requests: &[&RequestFinding]) -> String {
    let mut kinds = "disallowed or without a licence";
    let mut known = 0;
    let mut unknown = 0;
    let mut served = 0;
    for one in requests {
        if !one.is_disallowed() && !one.lacks_license() {
            continue;
        }
        let client = text(one, Client);
        if one.served_at.is_some() && (client.is_none() || one.served_to.is_none()) {
            unknown += 1;
        } else {
            known += 1;
            served += usize::from(client.is_some() && client == one.served_to);
        }
    }
    let mut sentences = String::new();
    if unknown > 0 {
        sentences = format!(
            " For {} {kinds}, it is not known whether the client had been sent this robots.txt before: its address was \
             not kept, or was deleted.",
            plural_thousands(unknown, "request")
        );
        kinds = "for which it is known";
    }
    if known > 0 {
        sentences += &format!(
            " Of the {} {kinds}, {} came from an address or network that had been sent this robots.txt before, with \
             the same kind of identity (verified, not verified, or pretending).",
            plural_thousands(known, "request"),
            thousands(served)
        );
    }
    sentences
}

/// The names of these requests, such as their rules, in brackets; or their number with the word
/// `kind`.
fn names_text(
    requests: &[&&RequestFinding],
    kind: &str,
    name: fn(&RequestFinding) -> Option<String>,
) -> String {
    let names: BTreeSet<String> = requests.iter().filter_map(|one| name(one)).collect();
    match names.len() {
        0 => String::new(),
        1..=MAX_NAMED => format!(" ({})", join(names, ", ")),
        more => format!(" ({} {kind})", thousands(more)),
    }
}

fn identity_sentences(case: &CaseFindings) -> String {
    let mut sentences = Vec::new();
    let name = case
        .logs
        .first()
        .map_or("", |log| crawler_name(&log.crawler));
    for basis in IdentityAssurance::VARIANTS {
        let requests: Vec<_> = case
            .logs
            .iter()
            .flat_map(|log| requests_with(log, *basis))
            .collect();
        if requests.is_empty() {
            continue;
        }
        let verb = if requests.len() == 1 { "is" } else { "are" };
        let count = plural_thousands(requests.len(), "request");
        sentences.push(match basis {
            Proven => {
                format!("This case has a proof that {count} {verb} {name}'s. {PROOF_SOURCE}")
            }
            Asserted => format!("Only the site says that {count} {verb} {name}'s."),
            Claimed => format!("Nobody has proved who sent {count}."),
            Impostor => format!(
                "This case has a proof that {count} {verb} not {name}'s: the client pretended to be {name}. {PROOF_SOURCE}"
            ),
            AssertedImpostor => format!(
                "Only the site says that {count} {verb} not {name}'s: the client pretended to be {name}."
            ),
        });
    }
    let unknown = case.logs.iter().flat_map(|log| &log.unknown);
    let supplied = unknown.filter(|finding| finding.id == SUPPLIED_LISTS);
    sentences.extend(supplied.map(|finding| format!("It is not known {finding}.")));
    join(sentences, " ")
}

fn site_sentences(case: &CaseFindings) -> String {
    let mut latest = None;
    let mut all = 0;
    let mut covered = 0;
    let mut not_judged = 0;
    let mut declared = 0;
    for log in &case.logs {
        latest = latest
            .into_iter()
            .chain(&log.timestamp)
            .max_by_key(|stamp| &stamp.time);
        for request in &log.requests {
            all += 1;
            if request.field_text_or_empty(History) == "declared" {
                declared += usize::from(request.rejudged == "disallowed");
            }
            covered += usize::from(
                log.timestamp
                    .as_ref()
                    .is_some_and(|stamp| request.recorded <= stamp.covers_until),
            );
            not_judged += usize::from(request.rejudged == "not judged" && request.is_disallowed());
        }
    }
    let mut sentences = match latest {
        None => "This case has no timestamp of an authority. The times are only the site's word. Only the site says \
                 that the entries are true and complete."
            .to_owned(),
        // The checks name it.
        Some(_) if all == 0 => String::new(),
        Some(stamp) => format!(
            "A timestamp of {} covers the entries of {} of {}: it says that they existed at {}. The site chose this authority: \
             decide whether you trust it. check.sh checks the signature. The timestamp does not show that the entries are true or complete: that is \
             the site's word.",
            stamp.authority,
            thousands(covered),
            plural_thousands(all, "request"),
            format_time(&stamp.time)
        ),
    };
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

fn text(request: &RequestFinding, field: RecordField) -> Option<String> {
    request.field_text(field).map(|text| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::ProofFinding;
    use crate::evidence::findings::CheckpointTimestamp;
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
        let [happened, identity, of_site] = case_summary(&CaseFindings::from_logs(vec![log]));
        for part in [
            "GPTBot",
            "clients that call themselves GPTBot sent 1 request that",
            "Of the disallowed requests, 1 may be no violation: a cache in front",
            "1 request that the site's policy does not allow",
            "shop.example",
            "(Disallow: /cart/)",
            "refused 1 of 2 requests",
            ". 1 request passed that the site would have refused",
            "Of the 1 request disallowed or without a licence, 1 came from an address or network",
            "2026-11-28 10:00:11 UTC",
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
        let happened = |log: &LogFindings| {
            let [happened, ..] = case_summary(&CaseFindings::from_logs(vec![log.clone()]));
            happened
        };
        let partly = happened(&log);
        for part in [
            "For 1 request disallowed or without a licence, it is not known",
            "Of the 2 requests for which it is known, 2 came",
        ] {
            assert!(partly.contains(part), "{part}: {partly}");
        }
        // The addresses of the copies were deleted, and that of one request was not.
        log.requests[0].request.push(RecordField::Client, client);
        for request in &mut log.requests {
            request.served_to = None;
        }
        let unknown = happened(&log);
        assert!(
            unknown.contains("For 3 requests") && !unknown.contains("came from"),
            "{unknown}"
        );
        // Nobody of the class was sent the file: that is known.
        for request in &mut log.requests {
            request.served_at = None;
        }
        let never = happened(&log);
        assert!(
            never.contains("Of the 3 requests disallowed or without a licence, 0 came"),
            "{never}"
        );
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
        let [happened, ..] = case_summary(&CaseFindings::from_logs(vec![log]));
        let parts = [
            "At 2026-11-28 10:00:12 UTC, GPTBot sent 1 request that",
            "At 2026-11-28 10:00:11 UTC, unverified clients that call themselves GPTBot sent 1",
            "At 2026-11-28 10:00:10 UTC, clients that only pretended to be GPTBot (by",
        ];
        let places = parts.map(|part| happened.find(part).unwrap_or_else(|| panic!("{happened}")));
        assert!(places[0] == 0 && places.is_sorted(), "{happened}");
    }

    #[test]
    fn requests_without_licence_are_no_disallowed_ones() {
        // Of the kinds of `log_findings`, robots.txt allows this one.
        let mut log = log_findings(&["too_fast", "violation"]);
        log.requests[0].request = with_fields(&[
            (RecordField::Kind, "allowed"),
            (RecordField::Host, "shop.example"),
            (RecordField::Client, "203.0.113.5"),
            (RecordField::Action, "license"),
        ]);
        let [both, ..] = case_summary(&CaseFindings::from_logs(vec![log.clone()]));
        for part in [
            "1 request that the robots.txt of shop.example disallows",
            ". The same clients also sent 1 request to shop.example without the licence",
            "Of the 2 requests disallowed or without a licence, 2 came",
            "sent this robots.txt before, with the same kind of identity",
        ] {
            assert!(both.contains(part), "{part}: {both}");
        }
        let passed = [
            (RecordField::Kind, "allowed"),
            (RecordField::Action, "pass"),
        ];
        for (flag, part) in [
            (
                RecordField::LicenseToken,
                "sent 1 request with a licence token",
            ),
            (
                RecordField::Reserved,
                "sent 1 request to a page with a published reservation (TDM, Content-Signal or Content-Usage)",
            ),
        ] {
            log.requests[1].request = with_fields(&passed);
            log.requests[1].request.push(flag, FieldValue::Flag(true));
            let [passing, ..] = case_summary(&CaseFindings::from_logs(vec![log.clone()]));
            for part in [part, "refused 1 of 2"] {
                assert!(passing.contains(part), "{part}: {passing}");
            }
        }
        log.requests.truncate(1);
        let [alone, ..] = case_summary(&CaseFindings::from_logs(vec![log]));
        assert!(alone.contains("sent 1 request to shop.example without the licence"));
    }

    #[test]
    fn reserved_pages_are_counted_beside_other_findings() {
        let mut log = log_findings(&["violation", "violation", "violation"]);
        for request in &mut log.requests[..2] {
            let reserved = FieldValue::Flag(true);
            request.request.push(RecordField::Reserved, reserved);
        }
        let token = FieldValue::Flag(true);
        log.requests[1]
            .request
            .push(RecordField::LicenseToken, token);
        let words: Vec<_> = log.requests.iter().map(|one| one.kind_words()).collect();
        assert_eq!(
            words,
            [
                "violation; to a page with a published reservation (TDM, Content-Signal or Content-Usage)",
                "violation; to a page with a published reservation (TDM, Content-Signal or Content-Usage)",
                "violation"
            ]
        );
        let unknown = FieldValue::Number(0);
        log.requests[0].request.push(RecordField::Status, unknown);
        let [happened, ..] = case_summary(&CaseFindings::from_logs(vec![log]));
        let part = ". 2 requests passed to a page with a published reservation (TDM, Content-Signal or Content-Usage). 1 request to such a page had a licence token that was not checked. 1 request to such a page got an answer that is not known.";
        assert!(happened.contains(part), "{happened}");
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
    fn summary_says_why_and_whether_requests_were_answered() {
        let mut log = log_findings(&["violation", "impostor", "license"]);
        let observed = |kind, would| {
            with_fields(&[
                (RecordField::Kind, kind),
                (RecordField::Host, "shop.example"),
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
        let [happened, ..] = case_summary(&CaseFindings::from_logs(vec![log]));
        for part in [
            "asks for (https://shop.example/license.xml).",
            "does not allow (the client only pretended to be the crawler).",
            ". A request may be in several of these counts. In all, the site refused 0 of 3 requests. 3 requests passed that the site would have refused under enforcement. 1 request got",
        ] {
            assert!(happened.contains(part), "{part}: {happened}");
        }
        assert!(!happened.contains("not known"), "{happened}");
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
        let [happened, ..] = case_summary(&CaseFindings::from_logs(vec![log]));
        for part in [
            "Of the disallowed requests, 2 may be no violation: the client may have used an older",
            "Of the disallowed requests, 1 may be no violation: the path can be read in two ways",
            "Of the disallowed requests, 1 may be no violation: robots.txt does not bind this crawler",
        ] {
            assert!(happened.contains(part), "{part}: {happened}");
        }
    }

    #[test]
    fn only_times_of_the_log_are_shown_as_utc() {
        let shown = format_time("2026-11-28T10:00:00.000Z");
        assert_eq!(shown, "2026-11-28 10:00:00 UTC");
        for other in ["2026-11-28T10:00:00+09:00", "2026-11-28 10:00:00Z", "TZ"] {
            assert_eq!(format_time(other), other);
        }
    }

    #[test]
    fn timestamp_counts_for_requests_that_it_covers() {
        let mut log = log_findings(&["violation", "violation"]);
        log.timestamp = Some(CheckpointTimestamp {
            covers_until: "2026-11-28T10:00:11.000Z".into(),
            time: "2026-11-28T10:01:00Z".into(),
            authority: "CN=tsa".into(),
        });
        let without = LogFindings {
            requests: Vec::new(),
            ..log.clone()
        };
        let [_, _, of_site] = case_summary(&CaseFindings::from_logs(vec![log]));
        for part in ["1 of 2 requests", "2026-11-28 10:01:00 UTC", "CN=tsa"] {
            assert!(of_site.contains(part), "{part}: {of_site}");
        }
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
