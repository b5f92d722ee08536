//! [`EvidenceRecorder::sink`] returns a sink (a receiver of finished requests) that makes entries
//! for the evidence log. It makes an entry when a crawler was served a robots.txt, when a request
//! broke the rules, and when a request passed with a licence token or in spite of a reservation. If
//! the identity of the client was proven or refuted, the entry names the proof.

use super::{EvidenceRecorder, Hash, NewEntry, format_time};
use crate::crawlers::Claim;
use crate::finding::Finding;
use crate::identity::IdentityVerifier;
use crate::record::{
    FieldValue, NO_CRAWLER, RecordField, RecordLine, RequestRecord, Sink, SiteJudgement,
};
use crate::settings::{AddressDetail, ListSource};
use crate::verdict::{Action, Kind};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value as Json, json};
use std::sync::Arc;

use Claim::*;
use ListSource::*;
use RecordField::*;

/// The fields of a request against the rules, beside its time and the personal ones. They are never
/// deleted, so there is no id that would link them to other logs.
const REQUEST_FIELDS: &[RecordField] = &[
    CallsItself,
    Identity,
    Proof,
    Signature,
    Doubt,
    Method,
    Host,
    Verdict,
    Readings,
    Kind,
    NeverFetched,
    Rule,
    RuleSource,
    Version,
    History,
    Cached,
    Action,
    Would,
    Status,
    RetryAfter,
    LicenseToken,
    Reserved,
];

/// Records requests as evidence.
struct EvidenceSink {
    evidence: EvidenceRecorder,
    proofs: Arc<IdentityVerifier>,
    /// From where the copies of lists and keys are.
    obtained: &'static str,
}

impl EvidenceRecorder {
    /// The sink that records requests in this log; `None` if evidence is disabled. `lists` is where
    /// lists and keys are from.
    pub fn sink(
        &self,
        proofs: &Arc<IdentityVerifier>,
        lists: &ListSource,
    ) -> Option<Arc<dyn Sink>> {
        let sink = EvidenceSink {
            evidence: self.clone(),
            proofs: proofs.clone(),
            obtained: match lists {
                Directory(_) => "directory",
                Mirror(_) => "mirror",
                // Keys are fetched without lists, too.
                Published | Off => "fetched",
            },
        };
        self.is_enabled().then(|| Arc::new(sink) as Arc<dyn Sink>)
    }
}

impl EvidenceSink {
    /// The entry about a whole robots.txt, or a 304 for the crawler's own copy.
    fn served_entry(&self, record: &RequestRecord, judged: &SiteJudgement) -> NewEntry {
        let request = &record.request;
        let file = &judged.entry().site.robots_txt;
        let data = json!({
            "arrived": format_time(request.arrival.arrived),
            "host": self.field_value(Host, record),
            "status": record.response.status,
            "version": file.version.to_string(),
            "sha256": Hash::digest(&[&file.body]),
            "identity": judged.identity.name(),
            "proof": judged.proof.name(),
            "if_none_match": request.validator().map(FieldValue::from_bytes),
            "address": self.network_name(),
        });
        NewEntry {
            personal: self.personal_values(record, &[Client, UserAgent]),
            documents: vec![file.body.clone()],
            proof: self.proof_entry(record, judged),
            ..NewEntry::new("served", data)
        }
    }

    /// The entry about a request against the rules, with all versions of robots.txt that it was judged
    /// by.
    fn request_entry(&self, record: &RequestRecord, judged: &SiteJudgement) -> NewEntry {
        let request = &record.request;
        let line = RecordLine {
            record,
            fields: REQUEST_FIELDS,
            addresses: self.evidence.address_detail(),
        };
        let values = line
            .values()
            .filter(|(_, value)| !value.is_empty())
            .map(|(field, value)| (field.name().to_owned(), json!(value)));
        let mut documents: Vec<Arc<[u8]>> = judged.cached_files(request.host()).cloned().collect();
        let in_force = &judged.entry().site.robots_txt.body;
        let cached: Vec<Hash> = documents.iter().map(|file| Hash::digest(&[file])).collect();
        let decision = &judged.decision;
        let site = &judged.entry().site;
        let license = decision.license(site).filter(|_| decision.lacks_license());
        let data = json!({
            "arrived": format_time(request.arrival.arrived),
            "license": license.map(|license| &license.url),
            "sha256": Hash::digest(&[in_force]),
            "cached_sha256": cached,
            "tokens": robots_tokens(record, judged),
            // With the policy's corrections of the registry.
            "binds": site.crawler_rules(decision.claim).binds,
            "address": self.network_name(),
        });
        documents.push(in_force.clone());
        let mut request = NewEntry {
            personal: self.personal_values(record, &[Client, UserAgent, Target]),
            documents,
            proof: self.proof_entry(record, judged),
            ..NewEntry::new("request", data)
        };
        request.data.extend(values);
        request
    }

    /// The value of a field, with the client's address as far as it is kept.
    fn field_value<'r>(&self, field: RecordField, record: &'r RequestRecord) -> FieldValue<'r> {
        field.value(record, self.evidence.address_detail())
    }

    /// Whether entries have the address of a client (`whole`) or its network (`network`); `None` if
    /// they have neither.
    fn address_name(&self) -> Option<&'static str> {
        match self.evidence.address_detail() {
            AddressDetail::Full => Some("whole"),
            AddressDetail::Network => Some("network"),
            AddressDetail::None => None,
        }
    }

    /// `network` where entries have the network of a client in place of its address.
    fn network_name(&self) -> Option<&'static str> {
        self.address_name().filter(|name| *name == "network")
    }

    /// The values of these fields, which can be withdrawn later.
    fn personal_values(
        &self,
        record: &RequestRecord,
        listed: &[RecordField],
    ) -> Vec<(&'static str, String)> {
        listed
            .iter()
            .map(|field| (field.name(), self.field_value(*field, record)))
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name, value.to_text().into_owned()))
            .collect()
    }

    /// The entry about the proof of the client's identity. `None` if only the policy proves it, or the
    /// address is not known. A host name often contains the address, so it is kept only with the whole
    /// address.
    fn proof_entry(&self, record: &RequestRecord, judged: &SiteJudgement) -> Option<Box<NewEntry>> {
        let request = &record.request;
        let client = request.logged?;
        let found = (judged.identity, judged.proof);
        let basis =
            self.proofs
                .proof_basis(judged.decision.claim, found, client, request.arrived_at())?;
        let lists = basis.lists.iter().map(|list| {
            json!({
                "source": list.copy.url, "obtained": self.obtained, "sha256": list.sha256,
                "checked": list.copy.checked.to_string(),
            })
        });
        let dns = match (&basis.name, basis.no_name) {
            (Some((_, at)), _) => json!({"leads_back": true, "at": at.to_string()}),
            (None, Some((first, last))) => {
                json!({"leads_back": false, "first": first.to_string(), "last": last.to_string()})
            }
            (None, None) => Json::Null,
        };
        let signature = judged.good_signature.as_ref();
        let kept = self.evidence.address_detail().apply(client);
        let data = json!({
            "identity": judged.identity.name(),
            "means": judged.proof.name(),
            "lists": lists.collect::<Json>(),
            "dns": dns,
            "key": signature.map(|signature| URL_SAFE_NO_PAD.encode(&signature.key)),
            "signature": signature.map(|signature| URL_SAFE_NO_PAD.encode(&signature.bytes)),
            "address": self.address_name(),
        });
        let mut personal = Vec::new();
        personal.extend(signature.map(|signature| ("signature_base", signature.base.clone())));
        let name = basis
            .name
            .filter(|_| self.evidence.address_detail() == AddressDetail::Full);
        personal.extend(name.map(|(name, _)| ("name", name)));
        personal.extend(kept.map(|address| ("client", address.to_string())));
        let documents = basis
            .lists
            .iter()
            .map(|list| list.copy.bytes.clone())
            .collect();
        Some(Box::new(NewEntry {
            personal,
            documents,
            ..NewEntry::new("proof", data)
        }))
    }
}

impl Sink for EvidenceSink {
    /// An entry about robots.txt has the If-None-Match of the crawler.
    fn needs_validator(&self) -> bool {
        true
    }

    fn problem(&self) -> Option<Finding> {
        self.evidence.problem()
    }

    /// Records copies of robots.txt that crawlers got, and requests that were or would be blocked,
    /// slowed down or asked for a licence. Of those that simply passed, it records the ones with a
    /// licence token, and those of crawlers for AI training for pages with a reservation.
    fn record(&self, record: &RequestRecord) {
        let Some(judged) = record.judged() else {
            return;
        };
        let decision = &judged.decision;
        let has_unchecked_token = record.request.has_license_token
            && decision.claim != Visitor
            && decision.license(&judged.entry().site).is_some();
        let simply_passed = decision.recorded
            && matches!(decision.kind, Kind::Allowed | Kind::NotBound)
            && decision.action == Action::Pass;
        let is_event = decision.robots_txt || decision.is_logged_event();
        let is_evidence = if decision.robots_txt {
            record.response.is_copy && decision.claim != Visitor
        } else {
            is_event || simply_passed && (has_unchecked_token || record.has_reserved_page())
        };
        if !is_evidence {
            return;
        }
        let site = judged.entry().site.name.as_str();
        let crawler = record.crawler().unwrap_or(NO_CRAWLER);
        let arrived = record.request.arrival.arrived;
        self.evidence.record(site, crawler, arrived, !is_event, || {
            if decision.robots_txt {
                self.served_entry(record, judged)
            } else {
                self.request_entry(record, judged)
            }
        });
    }
}

/// The names that robots.txt may use for the crawler. None for unknown bots, tools and people.
fn robots_tokens(record: &RequestRecord, judged: &SiteJudgement) -> Vec<String> {
    match judged.decision.claim {
        Known(index) => {
            let crawler = record.registry.get(index);
            crawler
                .tokens
                .iter()
                .chain([&crawler.id, &crawler.name])
                .cloned()
                .collect()
        }
        PolicyToken(index) => {
            let token = judged.entry().site.tokens.tokens().get(usize::from(index));
            token.into_iter().cloned().collect()
        }
        UnknownBot | Tool | Visitor => Vec::new(),
    }
}
