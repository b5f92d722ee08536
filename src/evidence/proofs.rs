//! Entries of the kind `proof` in the evidence log: why a client is the crawler that it claims to
//! be, or is not. [`WrittenProofs`] writes the same proof only once a day. [`add_proof_findings`]
//! checks the proofs in a case (an excerpt of the log as one file).

use super::entry::{client_text, has_supplied_list, named_lists};
use super::{
    CHAIN_FILES, CaseFiles, ChainName, DatabaseError, EntryRef, EvidenceEntry, Hash, LogFindings,
    NewEntry, PersonalValues, ProofFinding, WriteTransaction, canonical_json, file_text, line_hash,
    named_proof, personal_value,
};
use crate::finding::Finding;
use crate::numbers::plural_thousands;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

/// The file of a case with the proofs from before its span.
pub const EARLIER_PROOFS_FILE: &str = "proofs.jsonl";
/// The most proofs that are remembered as written. Clients choose how many there are.
const MAX_REMEMBERED: usize = 20_000;

/// The proofs that were written today. They are written again on the next day, so that a proof is
/// not deleted long before the entries that refer to it.
#[derive(Default)]
pub struct WrittenProofs {
    day: String,
    written: HashMap<Hash, EntryRef>,
}

impl WrittenProofs {
    /// Appends a proof to a chain, or returns the entry of the same proof of this day (UTC). After
    /// 20,000 proofs the memory is cleared, and proofs may be written twice.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_once(
        &mut self,
        log: &WriteTransaction<'_>,
        chain: &ChainName,
        proof: NewEntry,
        now: &str,
    ) -> Result<EntryRef, DatabaseError> {
        let day = now.get(..10).unwrap_or_default();
        if self.day != day || self.written.len() >= MAX_REMEMBERED {
            self.day = day.to_owned();
            self.written.clear();
        }
        let key = proof_digest(chain, &proof);
        if let Some(written) = self.written.get(&key) {
            return Ok(*written);
        }
        let written = log.append(chain, proof, now)?;
        self.written.insert(key, written);
        Ok(written)
    }
}

/// A hash of the chain, the data and the personal values, without the time when lists were checked.
fn proof_digest(chain: &ChainName, proof: &NewEntry) -> Hash {
    let mut data = proof.data.clone();
    for list in data
        .get_mut("lists")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        list.as_object_mut().and_then(|list| list.remove("checked"));
    }
    let personal: BTreeMap<_, _> = proof.personal.iter().cloned().collect();
    line_hash(&canonical_json(
        &serde_json::json!({"chain": chain, "data": data, "personal": personal}),
    ))
}

/// The proofs in `EARLIER_PROOFS_FILE`. An entry of the crawler's chain (`of_crawler`) must refer to
/// each, and they must be in rising order. Other lines, and a missing file, are faults.
pub fn read_earlier_proofs(
    files: &CaseFiles,
    of_crawler: &[EvidenceEntry],
    findings: &mut LogFindings,
) -> Vec<EvidenceEntry> {
    let named: BTreeSet<EntryRef> = of_crawler.iter().filter_map(named_proof).collect();
    let Some(text) = file_text(files, EARLIER_PROOFS_FILE)
        .filter(|text| text.is_empty() || text.ends_with('\n'))
    else {
        findings.add_fault(
            "missing-file",
            format!("{EARLIER_PROOFS_FILE} is missing or cut off"),
        );
        return Vec::new();
    };
    let mut earlier: Vec<EvidenceEntry> = Vec::new();
    let mut wrong = Vec::new();
    for (place, line) in text.split_terminator('\n').enumerate() {
        let hash = line_hash(line);
        let last = earlier.last().map(|entry| entry.number);
        let entry = EvidenceEntry::parse(line).filter(|entry| {
            named.contains(&EntryRef {
                number: entry.number,
                hash,
            }) && last.is_none_or(|last| last < entry.number)
        });
        match entry {
            Some(entry) => earlier.push(entry),
            None => wrong.push(place + 1),
        }
    }
    findings.add_lines_fault(
        "unnamed-proof",
        "proofs.jsonl: no entry names the proofs in these lines",
        wrong,
    );
    earlier
}

/// Checks the proofs that entries of the crawler's chain refer to, and adds the findings. A proof
/// that does not hold, or is another entry, is a fault. One that is older than the chain and not
/// among `earlier` is unknown: the log has deleted it.
pub fn add_proof_findings(
    of_crawler: &[EvidenceEntry],
    earlier: &[EvidenceEntry],
    personal: &PersonalValues,
    files: &CaseFiles,
    findings: &mut LogFindings,
) {
    let in_chain = of_crawler.iter().filter(|entry| entry.kind == "proof");
    let known: BTreeMap<u64, (&EvidenceEntry, Hash)> = earlier
        .iter()
        .chain(in_chain)
        .map(|entry| (entry.number, (entry, entry.hash())))
        .collect();
    let first = of_crawler.first().map_or(0, |entry| entry.number);
    let mut used: BTreeSet<u64> = BTreeSet::new();
    let mut missing = 0;
    for entry in of_crawler {
        let Some(EntryRef { number, hash }) = named_proof(entry) else {
            continue;
        };
        match known.get(&number) {
            Some((proof, known)) if *known == hash && proof.kind == "proof" => {
                used.insert(number);
            }
            None if number < first => missing += 1,
            _ => {
                findings.add_fault(
                    "other-proof",
                    format!(
                        "{}: entry {} names the proof {number}, but that entry is a different one",
                        CHAIN_FILES[0], entry.number
                    ),
                );
            }
        }
    }
    for number in used {
        let requests = findings
            .requests
            .iter()
            .filter(|request| request.proof_entry == Some(number))
            .count();
        let (entry, _) = known[&number];
        let mut says = Vec::new();
        if let Err(fault) = check_proof(entry, personal, files, &mut says) {
            findings.faults.push(Finding {
                message: format!("proof {number} does not hold: {fault}"),
                ..fault
            });
        }
        findings.proofs.push(ProofFinding {
            number,
            identity: entry.text_or_empty("identity"),
            means: entry.text_or_empty("means"),
            client: client_text(personal, entry),
            is_complete: is_complete(entry, personal),
            is_supplied: has_supplied_list(entry),
            says,
            requests,
        });
    }
    add_proof_sums(findings);
    if missing > 0 {
        findings.add_unknown(
            "deleted-proofs",
            format!("proofs of identity that entries name: the log deleted {missing} of them because of their age"),
        );
    }
}

/// Adds how many proofs were checked again, how many cannot be, and how many rest on files that the
/// site supplied.
fn add_proof_sums(findings: &mut LogFindings) {
    let proofs = findings.proofs.iter();
    let supplied = proofs.filter(|proof| proof.is_supplied).count();
    if supplied > 0 {
        findings.add_unknown(
            "supplied-lists",
            format!(
                "whether the lists or keys of {} of identity are the operator's: the site supplied these files itself",
                plural_thousands(supplied, "proof")
            ),
        );
    }
    let all = findings.proofs.len();
    let proofs = findings.proofs.iter();
    let complete = proofs.filter(|proof| proof.is_complete).count();
    if complete > 0 {
        findings.add_check(
            "proofs",
            format!(
                "proofs of identity: {complete}; their lists and signatures were checked again"
            ),
        );
    }
    if complete < all {
        findings.add_unknown(
            "incomplete-proofs",
            format!(
                "whether {} of {all} proofs of identity hold: the address or the signed text was deleted or not kept",
                all - complete
            ),
        );
    }
}

/// Whether the case has the value that a proof is about.
fn is_complete(proof: &EvidenceEntry, personal: &PersonalValues) -> bool {
    if proof.data_text("means") == Some("signature") {
        personal_value(personal, proof, "signature_base").is_some()
    } else {
        proof.data_text("address") == Some("whole")
            && personal_value(personal, proof, "client").is_some()
    }
}

/// Checks a proof by the files of the case: whether the lists have the address (for an impostor: do
/// not have it), and whether the signature is good. Adds a finding about each part to `says`. Answers
/// of reverse DNS, and withdrawn values, cannot be checked.
///
/// # Errors
/// The part that does not hold.
fn check_proof(
    entry: &EvidenceEntry,
    personal: &PersonalValues,
    files: &CaseFiles,
    says: &mut Vec<Finding>,
) -> Result<(), Finding> {
    let is_signature = entry.data_text("means") == Some("signature");
    if !is_signature {
        check_lists(entry, personal, files, says)?;
    }
    if let Some(dns) = entry.data.get("dns") {
        says.push(dns_finding(dns, personal_value(personal, entry, "name")));
    }
    if is_signature {
        check_signature(entry, personal, files, says)?;
    }
    Ok(())
}

/// Checks that the lists in the case have the address of a verified client, and not of an impostor.
fn check_lists(
    entry: &EvidenceEntry,
    personal: &PersonalValues,
    files: &CaseFiles,
    says: &mut Vec<Finding>,
) -> Result<(), Finding> {
    let is_verified = entry.data_text("identity") == Some("verified");
    let client = personal_value(personal, entry, "client")
        .filter(|_| entry.data_text("address") == Some("whole"))
        .and_then(|client| client.parse::<IpAddr>().ok());
    for (source, list) in named_lists(entry) {
        let path = list.case_path();
        let Some(bytes) = files.get(&path) else {
            continue;
        };
        let networks = crate::crawlers::parse_network_list(bytes).map_err(|error| {
            Finding::new(
                "no-list",
                format!("{path} is not a list of networks: {error}"),
            )
        })?;
        let Some(client) = client else {
            let message = format!(
                "not checked against the list {source} ({path}): the address is not in the case"
            );
            says.push(Finding::new("list-without-address", message));
            continue;
        };
        let network = networks.iter().find(|network| network.contains(&client));
        if network.is_some() != is_verified {
            return Err(Finding::new(
                "list-contradicts",
                format!("{path} contradicts it"),
            ));
        }
        says.push(match network {
            Some(network) => Finding::new(
                "inside-list",
                format!("the address is in the network {network} of the list {source} ({path})"),
            ),
            None => Finding::new(
                "outside-list",
                format!("the address is outside the list {source} ({path})"),
            ),
        });
    }
    Ok(())
}

/// The recorded answer of reverse DNS. `name` is the host name of the address.
fn dns_finding(dns: &Value, name: Option<&str>) -> Finding {
    let text = |name: &str| dns.get(name).and_then(Value::as_str).unwrap_or("?");
    if dns.get("leads_back") == Some(&Value::Bool(true)) {
        Finding::new(
            "reverse-dns",
            format!(
                "reverse DNS gave the address the name {} at {}, and this name resolved to the address (the site's word)",
                name.unwrap_or("(deleted or not kept)"),
                text("at")
            ),
        )
    } else {
        Finding::new(
            "no-reverse-dns",
            format!(
                "reverse DNS gave no name of the crawler at {} and at {} (the site's word)",
                text("first"),
                text("last")
            ),
        )
    }
}

/// Checks that the key is in the directories that the proof names, and checks the signature.
fn check_signature(
    entry: &EvidenceEntry,
    personal: &PersonalValues,
    files: &CaseFiles,
    says: &mut Vec<Finding>,
) -> Result<(), Finding> {
    let [key, signature] =
        ["key", "signature"].map(|name| URL_SAFE_NO_PAD.decode(entry.data_text(name)?).ok());
    let (Some(key), Some(signature)) = (key, signature) else {
        return Err(Finding::new("no-signature", "it has no key and signature"));
    };
    for (source, list) in named_lists(entry) {
        let path = list.case_path();
        let text = files
            .get(&path)
            .map(|bytes| String::from_utf8_lossy(bytes))
            .unwrap_or_default();
        if !text.contains(entry.data_text("key").unwrap_or_default()) {
            return Err(Finding::new(
                "key-not-in-directory",
                format!("{path} does not have its key"),
            ));
        }
        says.push(Finding::new(
            "key-in-directory",
            format!("the key is in the directory {source} ({path})"),
        ));
    }
    let Some(base) = personal_value(personal, entry, "signature_base") else {
        let message = "the signature was not checked: the signed text was deleted";
        says.push(Finding::new("withdrawn-text", message));
        return Ok(());
    };
    if UnparsedPublicKey::new(&ED25519, key)
        .verify(base.as_bytes(), &signature)
        .is_err()
    {
        return Err(Finding::new(
            "wrong-signature",
            "the signature does not match its text",
        ));
    }
    says.push(Finding::new(
        "signature",
        "this key made the signature of the request",
    ));
    Ok(())
}
