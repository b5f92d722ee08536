//! [`served`] and [`request`] make records for the evidence log: of a robots.txt that a crawler was
//! served, and of a request against the rules. If something proves that the client is the crawler,
//! or that it is not, the record has it.

use super::request::text;
use super::{Judged, Outcome, RequestFacts};
use crate::crawlers::{Binds, Claim, Registry};
use crate::evidence::{Evidence, Hash, Record, time_text};
use crate::identity::Proofs;
use crate::telemetry::Event;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The record of a whole copy of robots.txt, or of a 304 for the crawler's own copy.
pub fn served(
    evidence: &Evidence,
    proofs: &Proofs,
    request: &RequestFacts<'_>,
    judged: &Judged,
    outcome: &Outcome<'_>,
) -> Record {
    let file = &judged.entry().site.robots_txt;
    let mut data = fields(json!({
        "arrived": time_text(request.arrived),
        "host": text(request.host),
        "status": outcome.status,
        "version": file.version.to_string(),
        "sha256": Hash::of(&[&file.body]).to_string(),
        "identity": judged.identity.name(),
        "proof": judged.proof.name(),
    }));
    if let Some(validator) = outcome.if_none_match {
        data.insert("if_none_match".into(), text(validator).into());
    }
    Record {
        kind: "served",
        data,
        personal: personal(evidence, request),
        documents: vec![file.body.clone()],
        proof: proof(evidence, proofs, request, judged),
    }
}

/// The record of a request against the rules: what the event log says of it, without the ids by
/// which this log could be joined with others, and with all versions of robots.txt that the request
/// was judged by.
pub fn request(
    evidence: &Evidence,
    registry: &Registry,
    proofs: &Proofs,
    request: &RequestFacts<'_>,
    judged: &Judged,
    event: &Event,
) -> Record {
    let mut data = fields(serde_json::to_value(event).unwrap_or_default());
    // The ids join this log with others, also with those about people, and the log cannot forget
    // them.
    for name in [
        "site",
        "crawler",
        "time",
        "client",
        "target",
        "user_agent",
        "left_out",
        "request_id",
        "trace_id",
        "older_until",
    ] {
        data.remove(name);
    }
    data.retain(|_, value| !value.is_null());
    let mut documents: Vec<Arc<[u8]>> = judged.cached_files(request.host).cloned().collect();
    let in_force = &judged.entry().site.robots_txt.body;
    let cached = documents.iter().map(|file| Hash::of(&[file]).to_string());
    let (tokens, binds) = followed(registry, judged);
    data.extend(fields(json!({
        "arrived": time_text(request.arrived),
        "sha256": Hash::of(&[in_force]).to_string(),
        "held_sha256": cached.collect::<Value>(),
        "tokens": tokens,
        "binds": binds,
    })));
    documents.push(in_force.clone());
    let mut personal = personal(evidence, request);
    personal.push(("target", text(request.target)));
    Record {
        kind: "request",
        data,
        personal,
        documents,
        proof: proof(evidence, proofs, request, judged),
    }
}

/// The record of what proves that the client is the crawler, or that it is not. `None` if nothing
/// but the policy proves it, or no address is known. A name of DNS often has the address in it, so
/// it is kept only where whole addresses are.
fn proof(
    evidence: &Evidence,
    proofs: &Proofs,
    request: &RequestFacts<'_>,
    judged: &Judged,
) -> Option<Box<Record>> {
    let client = request.logged?;
    let found = (judged.identity, judged.proof);
    let basis = proofs.basis(judged.decision.claim, found, client, request.now())?;
    let lists = basis.lists.iter().map(|list| {
        json!({"source": list.url, "sha256": list.list.sha256.to_string(), "checked": list.list.copy.checked.to_string()})
    });
    let means = judged.proof.name();
    let mut data = fields(
        json!({"identity": judged.identity.name(), "means": means, "lists": lists.collect::<Value>()}),
    );
    let mut personal = Vec::new();
    if let Some((_, at)) = &basis.name {
        let dns = json!({"leads_back": true, "at": at.to_string()});
        data.insert("dns".into(), dns);
    }
    if let Some((first, last)) = basis.no_name {
        let dns =
            json!({"leads_back": false, "first": first.to_string(), "last": last.to_string()});
        data.insert("dns".into(), dns);
    }
    if let Some(signature) = &judged.good_signature {
        let key = URL_SAFE_NO_PAD.encode(&signature.key);
        data.insert("key".into(), key.into());
        let bytes = URL_SAFE_NO_PAD.encode(&signature.octets);
        data.insert("signature".into(), bytes.into());
        personal.push(("signature_base", signature.base.clone()));
    }
    let kept = evidence.addresses().apply(client);
    if kept == Some(client) {
        data.insert("address".into(), "whole".into());
        personal.extend(basis.name.map(|(name, _)| ("name", name)));
    }
    personal.extend(kept.map(|address| ("client", address.to_string())));
    let documents = basis
        .lists
        .iter()
        .map(|list| list.list.copy.bytes.clone())
        .collect();
    Some(Box::new(Record {
        kind: "proof",
        data,
        personal,
        documents,
        proof: None,
    }))
}

/// The fields of a JSON object; none for any other value.
fn fields(record: Value) -> Map<String, Value> {
    match record {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// The names by which robots.txt may speak of the crawler, and whether `*` binds it too. No names
/// for unlisted bots, tools and people.
fn followed(registry: &Registry, judged: &Judged) -> (Vec<String>, Binds) {
    match judged.decision.claim {
        Claim::Known(index) => {
            let crawler = registry.get(index);
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

/// The personal values of a record: the client's address, as far as the evidence log keeps
/// addresses, and the user agent.
fn personal(evidence: &Evidence, request: &RequestFacts<'_>) -> Vec<(&'static str, String)> {
    let client = request.logged_as(evidence.addresses());
    let client = client.map(|address| ("client", address.to_string()));
    let agent = request.user_agent.map(|agent| ("user_agent", text(agent)));
    client.into_iter().chain(agent).collect()
}
