//! Decodes `decisions`: the addresses of the decision service, and the proxies that may ask it.

use super::super::{DecisionSettings, ListenAddress};
use super::or_off;
use crate::crawlers::read_networks;
use crate::yaml::{Decoder, Node};

/// `off`, an address, a list of them, or a map with `listen` and `trusted`.
pub(super) fn decisions(decoder: &mut Decoder, node: &Node) -> Option<Option<DecisionSettings>> {
    if !node.is_map() {
        return or_off(|decoder, node| Some(DecisionSettings::local(addresses(decoder, node))))(decoder, node);
    }
    let settings = decoder.map(node, "a map: listen, trusted", |fields| {
        let listen = fields.get("listen", |decoder, node| Some(addresses(decoder, node)));
        let trusted = fields.get("trusted", |decoder, node| Some(read_networks(decoder, node)));
        fields.finish();
        fields.required("listen", "`decisions` needs `listen`, like 127.0.0.1:9180", None);
        let settings = DecisionSettings::local(listen?);
        Some(DecisionSettings { trusted: trusted.unwrap_or(settings.trusted), ..settings })
    });
    settings.flatten().map(Some)
}

fn addresses(decoder: &mut Decoder, node: &Node) -> Vec<ListenAddress> {
    let items = decoder.one_or_many(node, "an address and port, like 127.0.0.1:9180").iter();
    let read = |item: &Node| {
        let text = decoder.text(item, "an address and port, or `unix:` and a path")?;
        text.parse().map_err(|error| decoder.error("bad-address", item.span, format!("{error}"))).ok()
    };
    items.filter_map(read).collect()
}
