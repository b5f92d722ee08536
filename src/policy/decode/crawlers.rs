//! [`crawlers`] decodes the policy section `crawlers`. The section adds crawlers to the registry
//! (crawlgate's table of known crawlers), and corrects entries of the registry. It applies to one
//! site only.

use crate::crawlers::{RobotsObedience, decode_networks};
use crate::policy::model::CrawlerDescription;
use crate::yaml::{Located, MapFields, NodeReader};

/// Shorter markers are found in the user agents of too many people.
const MIN_MARKER: usize = 3;
const MAX_MARKER: usize = 100;

/// Decodes the section: a list of crawlers, or a single one. A token can be described once.
pub fn crawlers(node: NodeReader<'_>) -> Vec<CrawlerDescription> {
    let crawlers = node.decode_maps(
        [
            "a list of crawlers, like \"{ token: IntranetBot, networks: 10.20.0.0/16 }\"",
            "a map: token, user_agent, purpose, ...",
        ],
        crawler,
    );
    super::report_repeated(
        crawlers.iter().map(|crawler| &crawler.token),
        [
            "duplicate-crawler",
            "is described twice",
            "keep one of the two: they are not merged",
        ],
        node.decoder,
    );
    crawlers
}

/// Decodes one crawler. `None` without a valid `token`.
fn crawler(fields: &mut MapFields<'_>) -> Option<CrawlerDescription> {
    fields.required_field(
        "token",
        "a crawler needs a \"token\": the name it looks for in robots.txt",
        None,
    );
    let token = fields.located("token", product_token);
    Some(CrawlerDescription {
        user_agent: fields.get_or_default("user_agent", user_agent_markers),
        purpose: fields.variant("purpose", "a purpose"),
        binds: fields.word(
            "binds",
            &[
                ("star", RobotsObedience::Star),
                ("named", RobotsObedience::Named),
                ("never", RobotsObedience::Never),
            ],
            "a value of \"binds\"",
        ),
        crawl_delay: fields.get("crawl_delay", NodeReader::boolean),
        networks: fields.get_or_default("networks", decode_networks),
        // Last, so that the mistakes of all other fields are reported.
        token: token?,
    })
}

fn product_token(node: NodeReader<'_>) -> Option<String> {
    node.parse_with(
        "the product token of a crawler",
        |text| super::is_token(text).then(|| text.to_owned()),
        (
            "bad-token",
            "is not a product token",
            "a product token has letters, digits, \"-\" and \"_\"; other parts of the user \
                agent go into \"user_agent\"",
        ),
    )
}

/// Decodes `user_agent`: markers of 3 to 100 characters of printable ASCII.
fn user_agent_markers(node: NodeReader<'_>) -> Vec<Located<String>> {
    node.texts_where("a list of parts of its user agent", |decoder, marker| {
        let fits = (MIN_MARKER..=MAX_MARKER).contains(&marker.len())
            && marker
                .bytes()
                .all(|byte| byte.is_ascii() && !byte.is_ascii_control());
        if !fits {
            decoder.error_with_help(
                "bad-mark",
                marker.span,
                "this text does not tell the crawler from visitors",
                format!(
                    "write {MIN_MARKER} to {MAX_MARKER} ASCII characters, as the crawler sends \
                     them: \"IntranetBot\""
                ),
            );
        }
        fits
    })
}
