//! `crawlers`: the owner's own, and corrections to the registry, for this site.

use crate::crawlers::{Binds, Purpose, read_networks};
use crate::policy::model::DescribedCrawler;
use crate::yaml::{Decoder, Diagnostic, Located, Node};

/// A shorter marker stands in the user agents of too many people.
const MIN_MARKER: usize = 3;
const MAX_MARKER: usize = 100;

pub fn crawlers(node: &Node, decoder: &mut Decoder<'_>) -> Vec<DescribedCrawler> {
    let mut crawlers: Vec<DescribedCrawler> = Vec::new();
    let wanted = "a list of crawlers, like `{ token: IntranetBot, networks: 10.20.0.0/16 }`";
    for item in decoder.one_or_many_maps(node, wanted) {
        let Some(crawler) = crawler(item, decoder) else { continue };
        let same = |other: &&DescribedCrawler| other.token.value.eq_ignore_ascii_case(&crawler.token.value);
        if let Some(first) = crawlers.iter().find(same) {
            let message = format!("`{}` is described twice", crawler.token.value);
            let diagnostic = Diagnostic::error("duplicate-crawler", crawler.token.span, message)
                .related(first.token.span, "first here")
                .help("keep one of them; nothing is merged");
            decoder.diagnostics.push(diagnostic);
            continue;
        }
        crawlers.push(crawler);
    }
    crawlers
}

fn crawler(node: &Node, decoder: &mut Decoder<'_>) -> Option<DescribedCrawler> {
    let mut fields = decoder.fields(node, "a map: token, user_agent, purpose, ...")?;
    let token = match fields.take("token") {
        Some(node) => token(node, decoder),
        None => {
            decoder.error("missing-field", node.span, "a crawler needs a `token`: the name it looks for in robots.txt");
            None
        }
    };
    let purposes = Purpose::ALL.map(|purpose| (purpose.name(), purpose));
    let binds = [("star", Binds::Star), ("named", Binds::Named), ("never", Binds::Never)];
    let user_agent = fields.take("user_agent").map(|node| markers(node, decoder)).unwrap_or_default();
    let purpose = fields.take("purpose").and_then(|node| decoder.word(node, &purposes, "a purpose"));
    let binds = fields.take("binds").and_then(|node| decoder.word(node, &binds, "what binds it"));
    let crawl_delay = fields.take("crawl_delay").and_then(|node| decoder.boolean(node));
    let networks = fields.take("networks").map(|node| read_networks(node, decoder)).unwrap_or_default();
    fields.finish(decoder);
    Some(DescribedCrawler { token: token?, user_agent, purpose, binds, crawl_delay, networks })
}

fn token(node: &Node, decoder: &mut Decoder<'_>) -> Option<Located<String>> {
    let token = decoder.located(node, "the product token of a crawler")?;
    if super::is_token(&token.value) {
        return Some(token);
    }
    decoder.error("bad-token", token.span, format!("`{}` is not a product token", token.value)).help = Some(
        "a product token has letters, digits, `-` and `_`; how the user agent reads goes into `user_agent`".into(),
    );
    None
}

/// Found on token boundaries and without regard to case.
fn markers(node: &Node, decoder: &mut Decoder<'_>) -> Vec<Located<String>> {
    let mut markers = decoder.texts(node, "a list of what its user agent is known by");
    markers.retain(|marker| {
        let fits = (MIN_MARKER..=MAX_MARKER).contains(&marker.value.len())
            && marker.value.is_ascii()
            && !marker.value.bytes().any(|octet| octet.is_ascii_control());
        if !fits {
            decoder
                .error("bad-mark", marker.span, "this is no part of a user agent that tells a crawler from people")
                .help = Some(format!(
                "from {MIN_MARKER} to {MAX_MARKER} characters of ASCII, as the crawler sends them: `IntranetBot`"
            ));
        }
        fits
    });
    markers
}
