//! [`crawlers`] decodes the policy section `crawlers`, which holds for one site. It describes the
//! owner's own crawlers, and corrects facts in the registry (crawlgate's table of known crawlers).

use crate::crawlers::{Binds, read_networks};
use crate::policy::model::DescribedCrawler;
use crate::yaml::{Fields, Located, Reader};

/// A shorter marker stands in the user agents of too many people.
const MIN_MARKER: usize = 3;
const MAX_MARKER: usize = 100;

/// Decodes the section: a list of crawlers, or a single one. Of two with the same token (without
/// regard to case) the first is kept and the second is an error.
pub fn crawlers(node: Reader<'_>) -> Vec<DescribedCrawler> {
    let mut crawlers: Vec<DescribedCrawler> = Vec::new();
    let wanted = [
        "a list of crawlers, like `{ token: IntranetBot, networks: 10.20.0.0/16 }`",
        "a map: token, user_agent, purpose, ...",
    ];
    for crawler in node.maps(wanted, crawler) {
        let token = &crawler.token;
        if let Some(first) = crawlers
            .iter()
            .find(|other| other.token.eq_ignore_ascii_case(token))
        {
            node.decoder.duplicate(
                "duplicate-crawler",
                [token.span, first.token.span],
                format!("`{}` is described twice", token.value),
                "keep one of them; nothing is merged",
            );
            continue;
        }
        crawlers.push(crawler);
    }
    crawlers
}

/// Decodes one crawler. `None` with an error where `token` is missing or not a product token. Each
/// other field may be left out; it then stays as the registry knows it.
fn crawler(fields: &mut Fields<'_>) -> Option<DescribedCrawler> {
    fields.required(
        "token",
        "a crawler needs a `token`: the name it looks for in robots.txt",
        None,
    );
    let token = fields.located("token", token);
    Some(DescribedCrawler {
        user_agent: fields.get_or_default("user_agent", markers),
        purpose: fields.variant("purpose", "a purpose"),
        binds: fields.word(
            "binds",
            &[
                ("star", Binds::Star),
                ("named", Binds::Named),
                ("never", Binds::Never),
            ],
            "what binds it",
        ),
        crawl_delay: fields.get("crawl_delay", Reader::boolean),
        networks: fields.get_or_default("networks", read_networks),
        // What is missing ends it only here: the mistakes of all other fields are shown before.
        token: token?,
    })
}

fn token(node: Reader<'_>) -> Option<String> {
    let help = "a product token has letters, digits, `-` and `_`; how the user agent reads goes into `user_agent`";
    node.parsed(
        "the product token of a crawler",
        |text| super::is_token(text).then(|| text.to_owned()),
        ("bad-token", "is not a product token", help),
    )
}

/// Decodes `user_agent`: markers, which are found on token boundaries and without regard to case. A
/// marker that is not 3 to 100 characters of printable ASCII is left out with an error.
fn markers(node: Reader<'_>) -> Vec<Located<String>> {
    node.checked("a list of what its user agent is known by", |decoder, marker| {
        let fits = (MIN_MARKER..=MAX_MARKER).contains(&marker.len())
            && marker.bytes().all(|octet| octet.is_ascii() && !octet.is_ascii_control());
        if !fits {
            decoder.error_with_help(
                "bad-mark",
                marker.span,
                "this is no part of a user agent that tells a crawler from people",
                format!(
                    "from {MIN_MARKER} to {MAX_MARKER} characters of ASCII, as the crawler sends them: `IntranetBot`"
                ),
            );
        }
        fits
    })
}
