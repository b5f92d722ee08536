//! Entries of the kind `proof` in the evidence log: why a client is the crawler that it claims to
//! be, or why it is not. [`WrittenProofs`] writes the same proof only once a day. [`tell`] checks
//! the proofs in a case, that is an excerpt of the log as one file.

use super::database::Appended;
use super::entry::named_lists;
use super::{
    CHAINS, ChainName, DatabaseError, Entry, Files, Findings, Hash, Link, Personal, ProofFinding,
    Record, Writing, canonical, hash_of, named_proof, text_of, value_of,
};
use crate::finding::Finding;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

/// The file of a case with proofs that are older than its span.
pub const FILE: &str = "proofs.jsonl";
/// Proofs that are remembered as written. Clients choose how many there are.
const MAX_REMEMBERED: usize = 20_000;

/// The proofs that were written on this day. They are written again on the next one, so that an
/// entry and its proof are deleted at about the same time.
#[derive(Default)]
pub struct WrittenProofs {
    day: String,
    written: HashMap<Hash, Appended>,
}

impl WrittenProofs {
    /// Writes a proof as an entry of its chain, and returns its place. If the same proof was
    /// written on this day (UTC), only returns the place of that entry. After 20,000 proofs the
    /// memory starts anew, so that one may be written twice on a day.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(
        &mut self,
        log: &Writing<'_>,
        chain: &ChainName,
        proof: Record,
        now: &str,
    ) -> Result<Appended, DatabaseError> {
        let day = now.get(..10).unwrap_or_default();
        if self.day != day || self.written.len() >= MAX_REMEMBERED {
            self.day = day.to_owned();
            self.written.clear();
        }
        let key = key(chain, &proof);
        if let Some(written) = self.written.get(&key) {
            return Ok(*written);
        }
        let written = log.append(chain, proof, now)?;
        self.written.insert(key, written);
        Ok(written)
    }
}

/// A digest of what a proof says, by which a repetition is noticed. When a list was last checked is
/// not part of it.
fn key(chain: &ChainName, proof: &Record) -> Hash {
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
    hash_of(&canonical(
        &serde_json::json!({"chain": chain, "data": data, "personal": personal}),
    ))
}

/// The proofs of a case that are older than its span, from the file `FILE`. Each must be one that
/// an entry of the crawler's chain (`of_crawler`) names by number and hash, in rising order.
/// Others, and a missing file, are faults.
pub fn read_earlier(files: &Files, of_crawler: &[Link], findings: &mut Findings) -> Vec<Link> {
    let named: BTreeSet<(u64, Hash)> = of_crawler
        .iter()
        .filter_map(|link| named_proof(&link.entry))
        .collect();
    let Some(text) = text_of(files, FILE).filter(|text| text.is_empty() || text.ends_with('\n'))
    else {
        findings.add_fault("missing-file", format!("{FILE} is missing or cut off"));
        return Vec::new();
    };
    let mut links: Vec<Link> = Vec::new();
    for (place, line) in text.split_terminator('\n').enumerate() {
        let hash = hash_of(line);
        let last = links.last().map(|link| link.entry.number);
        let entry = Entry::read(line).filter(|entry| {
            named.contains(&(entry.number, hash)) && last.is_none_or(|last| last < entry.number)
        });
        match entry {
            Some(entry) => links.push(Link { entry, hash }),
            None => {
                findings.add_fault(
                    "unnamed-proof",
                    format!("{FILE}: line {} is no proof that an entry names", place + 1),
                );
            }
        }
    }
    links
}

/// Checks the proofs that entries of the crawler's chain name, and adds what they say to the
/// findings. A proof that does not hold, or is another entry, is a fault. One that is older than
/// the case's chain and not among `earlier` is unknown: the log does not keep it any more.
pub fn tell(
    of_crawler: &[Link],
    earlier: &[Link],
    personal: &Personal,
    files: &Files,
    findings: &mut Findings,
) {
    let known: BTreeMap<u64, &Link> = earlier
        .iter()
        .chain(of_crawler)
        .map(|link| (link.entry.number, link))
        .collect();
    let first = of_crawler.first().map_or(0, |link| link.entry.number);
    let mut used: BTreeSet<u64> = BTreeSet::new();
    let mut missing = 0;
    for entry in of_crawler.iter().map(|link| &link.entry) {
        let Some((number, hash)) = named_proof(entry) else {
            continue;
        };
        match known.get(&number) {
            Some(link) if link.hash == hash && link.entry.kind == "proof" => {
                used.insert(number);
            }
            None if number < first => missing += 1,
            _ => {
                findings.add_fault(
                    "other-proof",
                    format!(
                        "{}: entry {} names the proof {number}, which is another entry",
                        CHAINS[0], entry.number
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
        let entry = &known[&number].entry;
        let mut says = Vec::new();
        if let Err(fault) = check(entry, personal, files, &mut says) {
            findings.faults.push(Finding {
                message: format!("proof {number} does not hold: {fault}"),
                ..fault
            });
        }
        findings.proofs.push(ProofFinding {
            number,
            identity: entry.said("identity"),
            means: entry.said("means"),
            client: value_of(personal, entry, "client").map(str::to_owned),
            says,
            requests,
        });
    }
    if !findings.proofs.is_empty() {
        findings.add_check(
            "proofs",
            format!(
                "{} proofs of who the client was stand in the chain; lists and signatures among them were checked again",
                findings.proofs.len()
            ),
        );
    }
    if missing > 0 {
        findings.add_unknown(
            "deleted-proofs",
            format!(
                "the proofs that {missing} entries name: they are older than what the log keeps"
            ),
        );
    }
}

/// Checks a proof by the files of the case: whether the lists have the address (or not, for an
/// impostor), and whether the signature is good. Adds a sentence about each part to `says`. What
/// reverse DNS said cannot be checked. If the address or the signed text was withdrawn, that part
/// is left open.
///
/// # Errors
/// What does not hold.
fn check(
    entry: &Entry,
    personal: &Personal,
    files: &Files,
    says: &mut Vec<Finding>,
) -> Result<(), Finding> {
    let is_signature = entry.text("means") == Some("signature");
    if !is_signature {
        check_lists(entry, personal, files, says)?;
    }
    if let Some(dns) = entry.data.get("dns") {
        says.push(by_dns(dns, value_of(personal, entry, "name")));
    }
    if is_signature {
        check_signature(entry, personal, files, says)?;
    }
    Ok(())
}

/// Checks that the lists in the case say of the address what the proof says of it.
fn check_lists(
    entry: &Entry,
    personal: &Personal,
    files: &Files,
    says: &mut Vec<Finding>,
) -> Result<(), Finding> {
    let is_verified = entry.text("identity") == Some("verified");
    let client =
        value_of(personal, entry, "client").filter(|_| entry.text("address") == Some("whole"));
    let client = client.and_then(|client| client.parse::<IpAddr>().ok());
    for (source, list) in named_lists(entry) {
        let path = list.path();
        let Some(bytes) = files.get(&path) else {
            continue;
        };
        let networks = crate::crawlers::read_list(bytes)
            .map_err(|error| Finding::new("no-list", format!("{path} is no list: {error}")))?;
        let Some(client) = client else {
            let message =
                format!("the list {source} counted ({path}); the address is not in the case");
            says.push(Finding::new("list-without-address", message));
            continue;
        };
        let network = networks.iter().find(|network| network.contains(&client));
        if network.is_some() != is_verified {
            return Err(Finding::new(
                "list-contradicts",
                format!("{path} says something else of the address"),
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

/// What reverse DNS said. `name` is the name of the address.
fn by_dns(dns: &Value, name: Option<&str>) -> Finding {
    let text = |name: &str| dns.get(name).and_then(Value::as_str).unwrap_or("?");
    if dns.get("leads_back") == Some(&Value::Bool(true)) {
        Finding::new(
            "reverse-dns",
            format!(
                "reverse DNS named the address {} at {}, and this name resolved to the address; that is the word of crawlgate",
                name.unwrap_or("(withdrawn or never kept)"),
                text("at")
            ),
        )
    } else {
        Finding::new(
            "no-reverse-dns",
            format!(
                "reverse DNS named no host of the crawler at {} and at {}; that is the word of crawlgate",
                text("first"),
                text("last")
            ),
        )
    }
}

/// Checks that the key of a signature is in the directories that the proof names, and the signature
/// itself.
fn check_signature(
    entry: &Entry,
    personal: &Personal,
    files: &Files,
    says: &mut Vec<Finding>,
) -> Result<(), Finding> {
    let [key, signature] = ["key", "signature"].map(|name| {
        let text = entry.text(name)?;
        URL_SAFE_NO_PAD.decode(text).ok()
    });
    let (Some(key), Some(signature)) = (key, signature) else {
        return Err(Finding::new("no-signature", "it has no key and signature"));
    };
    for (source, list) in named_lists(entry) {
        let path = list.path();
        let text = files
            .get(&path)
            .map(|bytes| String::from_utf8_lossy(bytes))
            .unwrap_or_default();
        if !text.contains(entry.text("key").unwrap_or_default()) {
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
    let Some(base) = value_of(personal, entry, "signature_base") else {
        let message = "the text that was signed was withdrawn";
        says.push(Finding::new("withdrawn-text", message));
        return Ok(());
    };
    if UnparsedPublicKey::new(&ED25519, key)
        .verify(base.as_bytes(), &signature)
        .is_err()
    {
        let message = "the signature does not fit its text";
        return Err(Finding::new("wrong-signature", message));
    }
    let message = "the signature of the request was checked with this key, and it is good";
    says.push(Finding::new("signature", message));
    Ok(())
}
