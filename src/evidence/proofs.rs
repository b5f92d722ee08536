//! Entries of the kind `proof` in the evidence log: why a client is the crawler that it claims to
//! be, or why it is not. [`WrittenProofs`] writes the same proof only once a day. [`tell`] checks
//! the proofs in a case, that is an excerpt of the log as one file.

use super::database::Appended;
use super::{
    CHAINS, ChainName, DatabaseError, Entry, Files, Findings, Hash, Link, Personal, ProofFinding,
    Record, Writing, canonical, hash_of, named_proof, text_of, value_of,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

/// The file of a case with proofs that are older than its span.
pub const FILE: &str = "proofs.jsonl";
/// Proofs that are remembered as written. Clients choose how many there are.
const MOST_REMEMBERED: usize = 20_000;

/// The proofs that were written on this day. They are written again on the next one, so that an
/// entry and its proof are deleted at about the same time.
#[derive(Default)]
pub struct WrittenProofs {
    day: String,
    written: HashMap<Hash, Appended>,
}

impl WrittenProofs {
    /// Writes a proof, unless it was written on this day.
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
        if self.day != day || self.written.len() >= MOST_REMEMBERED {
            (self.day, self.written) = (day.to_owned(), HashMap::new());
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

/// A digest of what a proof says. A list that was only checked again does not change it.
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

/// The proofs of a case that are older than its span. Each is one that an entry of the chain names
/// by its hash.
pub fn read_earlier(files: &Files, of_crawler: &[Link], findings: &mut Findings) -> Vec<Link> {
    let named: BTreeSet<(u64, Hash)> = of_crawler
        .iter()
        .filter_map(|link| named_proof(&link.entry))
        .collect();
    let Some(text) = text_of(files, FILE).filter(|text| text.is_empty() || text.ends_with('\n'))
    else {
        findings
            .faults
            .push(format!("{FILE} is missing or cut off"));
        return Vec::new();
    };
    let mut links: Vec<Link> = Vec::new();
    for (place, line) in text.split_terminator('\n').enumerate() {
        let link = Entry::read(line).map(|entry| Link {
            entry,
            hash: hash_of(line),
        });
        let is_new = |link: &Link| {
            links
                .iter()
                .all(|known| known.entry.number < link.entry.number)
        };
        match link.filter(|link| named.contains(&(link.entry.number, link.hash)) && is_new(link)) {
            Some(link) => links.push(link),
            None => findings.faults.push(format!(
                "{FILE}: line {} is no proof that an entry names",
                place + 1
            )),
        }
    }
    links
}

/// Tells what the proofs say, and checks what can be checked.
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
    let (mut used, mut missing): (BTreeSet<u64>, usize) = (BTreeSet::new(), 0);
    for entry in of_crawler.iter().map(|link| &link.entry) {
        let Some((number, hash)) = named_proof(entry) else {
            continue;
        };
        match known.get(&number) {
            Some(link) if link.hash == hash && link.entry.kind == "proof" => {
                drop(used.insert(number))
            }
            None if number < first => missing += 1,
            _ => {
                let fault = format!(
                    "entry {} names the proof {number}, which is another entry",
                    entry.number
                );
                findings.faults.push(format!("{}: {fault}", CHAINS[0]));
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
            findings
                .faults
                .push(format!("proof {number} does not hold: {fault}"));
        }
        let client = value_of(personal, entry, "client").map(str::to_owned);
        let (identity, means) = (entry.said("identity"), entry.said("means"));
        findings.proofs.push(ProofFinding {
            number,
            identity,
            means,
            client,
            says,
            requests,
        });
    }
    if !findings.proofs.is_empty() {
        let holds = "proofs of who the client was stand in the chain; lists and signatures among them were checked again";
        findings
            .holds
            .push(format!("{} {holds}", findings.proofs.len()));
    }
    if missing > 0 {
        let missing = format!(
            "the proofs that {missing} entries name: they are older than what the log keeps"
        );
        findings.unknown.push(missing);
    }
}

/// Checks a proof by the files of the case. `says` gets a sentence of each part.
fn check(
    entry: &Entry,
    personal: &Personal,
    files: &Files,
    says: &mut Vec<String>,
) -> Result<(), String> {
    let (is_verified, means) = (
        entry.text("identity") == Some("verified"),
        entry.text("means").unwrap_or_default(),
    );
    let client =
        value_of(personal, entry, "client").filter(|_| entry.text("address") == Some("whole"));
    let client = client.and_then(|client| client.parse::<IpAddr>().ok());
    let lists = super::entry::named_lists(entry);
    for (source, list) in &lists {
        let path = list.path();
        let Some(bytes) = files.get(&path).filter(|_| means != "signature") else {
            continue;
        };
        let networks = crate::crawlers::read_list(bytes)
            .map_err(|error| format!("{path} is no list: {error}"))?;
        let inside = client.map(|client| networks.iter().find(|network| network.contains(&client)));
        match inside {
            None => says.push(format!(
                "the list {source} counted ({path}); the address is not in the case"
            )),
            Some(None) if !is_verified => {
                says.push(format!("the address is outside the list {source} ({path})"))
            }
            Some(Some(network)) if is_verified => {
                says.push(format!(
                    "the address is in the network {network} of the list {source} ({path})"
                ));
            }
            Some(_) => return Err(format!("{path} says something else of the address")),
        }
    }
    if let Some(dns) = entry.data.get("dns") {
        let text = |name: &str| dns.get(name).and_then(Value::as_str).unwrap_or("?");
        let name = value_of(personal, entry, "name").unwrap_or("(withdrawn or never kept)");
        says.push(match dns.get("leads_back") == Some(&Value::Bool(true)) {
            true => format!(
                "reverse DNS named the address {name} at {}, and this name resolved to the address; that is the word of \
                 crawlgate",
                text("at")
            ),
            false => format!(
                "reverse DNS named no host of the crawler at {} and at {}; that is the word of crawlgate",
                text("first"),
                text("last")
            ),
        });
    }
    if means == "signature" {
        let octets = |name: &str| {
            entry
                .text(name)
                .and_then(|text| URL_SAFE_NO_PAD.decode(text).ok())
        };
        let (Some(key), Some(signature)) = (octets("key"), octets("signature")) else {
            return Err("it has no key and signature".to_owned());
        };
        for (source, list) in &lists {
            let path = list.path();
            let text = files
                .get(&path)
                .map(|bytes| String::from_utf8_lossy(bytes))
                .unwrap_or_default();
            if !text.contains(entry.text("key").unwrap_or_default()) {
                return Err(format!("{path} does not have its key"));
            }
            says.push(format!("the key is in the directory {source} ({path})"));
        }
        match value_of(personal, entry, "signature_base") {
            None => says.push("the text that was signed was withdrawn".to_owned()),
            Some(base) => {
                let is_good = UnparsedPublicKey::new(&ED25519, key)
                    .verify(base.as_bytes(), &signature)
                    .is_ok();
                is_good
                    .then_some(())
                    .ok_or("the signature does not fit its text")?;
                says.push(
                    "the signature of the request was checked with this key, and it is good"
                        .to_owned(),
                );
            }
        }
    }
    Ok(())
}
