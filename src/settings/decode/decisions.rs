//! `decisions` decoded.

use super::super::{DecisionAddress, DecisionSettings};
use super::or_off;
use crate::crawlers::read_networks;
use crate::yaml::{Decoder, Node, Value};

/// `off`, an address, a list of them, or a map with `listen` and `trusted`.
pub(super) fn decisions(node: &Node, decoder: &mut Decoder<'_>) -> Option<Option<DecisionSettings>> {
    if !matches!(node.value, Value::Mapping(_)) {
        return or_off(node, decoder, |node, decoder| Some(DecisionSettings::local(addresses(node, decoder))));
    }
    let mut fields = decoder.fields(node, "a map: listen, trusted")?;
    let listen = fields.take("listen").map(|node| addresses(node, decoder));
    let trusted = fields.take("trusted").map(|node| read_networks(node, decoder));
    fields.finish(decoder);
    let Some(listen) = listen else {
        decoder.error("missing-field", node.span, "`decisions` needs `listen`, like 127.0.0.1:9180");
        return None;
    };
    let mut settings = DecisionSettings::local(listen);
    if let Some(trusted) = trusted {
        settings.trusted = trusted;
    }
    Some(Some(settings))
}

fn addresses(node: &Node, decoder: &mut Decoder<'_>) -> Vec<DecisionAddress> {
    let mut found = Vec::new();
    for item in decoder.one_or_many(node, "an address and port, like 127.0.0.1:9180") {
        let text = decoder.text(item, "an address and port, or `unix:` and a path");
        found.extend(text.and_then(|text| {
            text.parse().map_err(|error| decoder.error("bad-address", item.span, format!("{error}"))).ok()
        }));
    }
    found
}
