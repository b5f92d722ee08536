//! [`Evidence::sink`] makes records for the evidence log: of a robots.txt that a crawler was served,
//! and of a request against the rules. If something proves that the client is the crawler, or that
//! it is not, the record has it.

use super::{Evidence, Hash, Record, time_text};
use crate::crawlers::{Binds, Claim};
use crate::finding::Finding;
use crate::identity::Proofs;
use crate::record::{Field, Judged, Line, NO_CRAWLER, RequestRecord, Sink, Value};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// The fields of a request against the rules, beside its time and the personal ones. This log
/// cannot forget them: it has no id that would join it with other logs, also with those about
/// visitors.
const FIELDS: &[Field] = &[
    Field::CallsItself,
    Field::Identity,
    Field::Proof,
    Field::Signature,
    Field::Doubt,
    Field::Method,
    Field::Host,
    Field::Verdict,
    Field::Readings,
    Field::Kind,
    Field::NeverFetched,
    Field::Rule,
    Field::RuleSource,
    Field::Version,
    Field::History,
    Field::Held,
    Field::Action,
    Field::Would,
    Field::Status,
    Field::RetryAfter,
];

/// Records requests as evidence.
struct EvidenceSink {
    evidence: Evidence,
    /// What proved crawlers.
    proofs: Arc<Proofs>,
}

impl Evidence {
    /// The sink that records requests in this log, with what proved their crawlers. `None` where
    /// evidence is off.
    pub fn sink(&self, proofs: &Arc<Proofs>) -> Option<Arc<dyn Sink>> {
        let sink = EvidenceSink {
            evidence: self.clone(),
            proofs: proofs.clone(),
        };
        self.is_on().then(|| Arc::new(sink) as Arc<dyn Sink>)
    }
}

impl EvidenceSink {
    /// The record of a whole copy of robots.txt, or of a 304 for the crawler's own copy.
    fn served(&self, record: &RequestRecord, judged: &Judged) -> Record {
        let request = &record.request;
        let file = &judged.entry().site.robots_txt;
        let data = json!({
            "arrived": time_text(request.arrival.arrived),
            "host": self.value(Field::Host, record),
            "status": record.response.status,
            "version": file.version.to_string(),
            "sha256": Hash::of(&[&file.body]),
            "identity": judged.identity.name(),
            "proof": judged.proof.name(),
            "if_none_match": request.validator().map(Value::bytes),
        });
        Record {
            personal: self.personal(record, &[Field::Client, Field::UserAgent]),
            documents: vec![file.body.clone()],
            proof: self.proof(record, judged),
            ..Record::of("served", data)
        }
    }

    /// The record of a request against the rules, with all versions of robots.txt that the request
    /// was judged by.
    fn request(&self, record: &RequestRecord, judged: &Judged) -> Record {
        let request = &record.request;
        let line = Line {
            record,
            fields: FIELDS,
            addresses: self.evidence.addresses(),
        };
        let values = line
            .values()
            .filter(|(_, value)| !value.is_nothing())
            .map(|(field, value)| (field.name().to_owned(), json!(value)));
        let mut documents: Vec<Arc<[u8]>> = judged.cached_files(request.host()).cloned().collect();
        let in_force = &judged.entry().site.robots_txt.body;
        let cached: Vec<Hash> = documents.iter().map(|file| Hash::of(&[file])).collect();
        let (tokens, binds) = followed(record, judged);
        let data = json!({
            "arrived": time_text(request.arrival.arrived),
            "sha256": Hash::of(&[in_force]),
            "held_sha256": cached,
            "tokens": tokens,
            "binds": binds,
        });
        documents.push(in_force.clone());
        let mut request = Record {
            personal: self.personal(record, &[Field::Client, Field::UserAgent, Field::Target]),
            documents,
            proof: self.proof(record, judged),
            ..Record::of("request", data)
        };
        request.data.extend(values);
        request
    }

    /// The value of a field, as far as this log may have it.
    fn value<'r>(&self, field: Field, record: &'r RequestRecord) -> Value<'r> {
        field.value(record, self.evidence.addresses())
    }

    /// The personal values of a record, which can be withdrawn later.
    fn personal(&self, record: &RequestRecord, listed: &[Field]) -> Vec<(&'static str, String)> {
        let values = listed
            .iter()
            .map(|field| (field.name(), self.value(*field, record)));
        values
            .filter(|(_, value)| !value.is_nothing())
            .map(|(name, value)| (name, value.to_text().into_owned()))
            .collect()
    }

    /// The record of what proves that the client is the crawler, or that it is not. `None` if nothing
    /// but the policy proves it, or no address is known. A name of DNS often has the address in it, so
    /// it is kept only where whole addresses are.
    fn proof(&self, record: &RequestRecord, judged: &Judged) -> Option<Box<Record>> {
        let request = &record.request;
        let client = request.logged?;
        let found = (judged.identity, judged.proof);
        let basis = self
            .proofs
            .basis(judged.decision.claim, found, client, request.now())?;
        let lists = basis.lists.iter().map(|list| {
            json!({"source": list.copy.url, "sha256": list.sha256, "checked": list.copy.checked.to_string()})
        });
        let dns = match (&basis.name, basis.no_name) {
            (Some((_, at)), _) => json!({"leads_back": true, "at": at.to_string()}),
            (None, Some((first, last))) => {
                json!({"leads_back": false, "first": first.to_string(), "last": last.to_string()})
            }
            (None, None) => Json::Null,
        };
        let signature = judged.good_signature.as_ref();
        let kept = self.evidence.addresses().apply(client);
        let is_whole = kept == Some(client);
        let data = json!({
            "identity": judged.identity.name(),
            "means": judged.proof.name(),
            "lists": lists.collect::<Json>(),
            "dns": dns,
            "key": signature.map(|signature| URL_SAFE_NO_PAD.encode(&signature.key)),
            "signature": signature.map(|signature| URL_SAFE_NO_PAD.encode(&signature.octets)),
            "address": is_whole.then_some("whole"),
        });
        let mut personal = Vec::new();
        personal.extend(signature.map(|signature| ("signature_base", signature.base.clone())));
        let name = basis.name.filter(|_| is_whole);
        personal.extend(name.map(|(name, _)| ("name", name)));
        personal.extend(kept.map(|address| ("client", address.to_string())));
        let documents = basis
            .lists
            .iter()
            .map(|list| list.copy.bytes.clone())
            .collect();
        Some(Box::new(Record {
            personal,
            documents,
            ..Record::of("proof", data)
        }))
    }
}

impl Sink for EvidenceSink {
    /// An entry about robots.txt has the version that the crawler says it has.
    fn needs_validator(&self) -> bool {
        true
    }

    fn problem(&self) -> Option<Finding> {
        self.evidence.problem()
    }

    /// Records that a crawler got a copy of robots.txt, and a request that was blocked or slowed
    /// down, or would be.
    fn record(&self, record: &RequestRecord) {
        let Some(judged) = record.judged() else {
            return;
        };
        let decision = &judged.decision;
        let is_evidence = if decision.robots_txt {
            record.response.is_copy && decision.claim != Claim::Nobody
        } else {
            decision.is_event()
        };
        if !is_evidence {
            return;
        }
        let site = judged.entry().site.name.as_str();
        let crawler = record.crawler().unwrap_or(NO_CRAWLER);
        let arrived = record.request.arrival.arrived;
        self.evidence.record(site, crawler, arrived, || {
            if decision.robots_txt {
                self.served(record, judged)
            } else {
                self.request(record, judged)
            }
        });
    }
}

/// The names by which robots.txt may speak of the crawler, and whether `*` binds it too. No names
/// for unlisted bots, tools and people.
fn followed(record: &RequestRecord, judged: &Judged) -> (Vec<String>, Binds) {
    match judged.decision.claim {
        Claim::Known(index) => {
            let crawler = record.registry.get(index);
            let names = crawler.tokens.iter().chain([&crawler.id, &crawler.name]);
            (names.cloned().collect(), crawler.binds)
        }
        Claim::Token(index) => {
            let token = judged.entry().site.tokens.tokens().get(usize::from(index));
            (token.into_iter().cloned().collect(), Binds::Unknown)
        }
        Claim::Other | Claim::Tool | Claim::Nobody => (Vec::new(), Binds::Unknown),
    }
}
