//! Writes robots directives such as `noindex` as HTML elements (`<meta name="robots">`), and reads
//! them. [`select_metas`] selects the directives that become metas, and [`meta_element`] writes one
//! meta. [`parse_content`] reads the content of one meta, and [`read_metas`] reads all metas of a
//! page.

use crate::indexing::{Directive, Directives, RobotsTags, TagScope, parse_lines};
use TagScope::*;
use lol_html::{RewriteStrSettings, element, rewrite_str};

/// Names that metas have which are not for one bot (HTML standard, section 4.2.5.1, and some more
/// that browsers know). A meta for a bot with such a name would change how the page is shown.
const OTHER_META_NAMES: [&str; 19] = [
    "robots",
    "application-name",
    "author",
    "color-scheme",
    "csrf-token",
    "description",
    "format-detection",
    "generator",
    "google-site-verification",
    "handheldfriendly",
    "htmx-config",
    "keywords",
    "mobileoptimized",
    "rating",
    "referrer",
    "supported-color-schemes",
    "theme-color",
    "viewport",
    "view-transition",
];

/// The directives that become metas: for all bots, and for single bots unless another kind of meta
/// has the bot's name. A scope with nothing but `all` needs no meta.
pub(super) fn select_metas(tags: &RobotsTags) -> RobotsTags {
    let mut metas = RobotsTags::default();
    for (scope, directives) in tags.iter() {
        let restricts = directives
            .iter()
            .any(|directive| *directive != Directive::All);
        let has_meta = match scope {
            All => true,
            Bot(name) => is_bot_name(name),
        };
        if restricts && has_meta {
            metas.add(scope.clone(), directives);
        }
    }
    metas
}

/// The scope of a meta with this name; `None` if it is not for crawlers.
pub(super) fn parse_scope(name: &str) -> Option<TagScope> {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "robots" => Some(All),
        _ => is_bot_name(&name).then(|| Bot(name.into())),
    }
}

/// The name of the meta for a scope.
pub(super) fn meta_name(scope: &TagScope) -> &str {
    match scope {
        All => "robots",
        Bot(name) => name,
    }
}

/// Whether a bot may have this name (in lower case), because no other kind of meta has it.
fn is_bot_name(name: &str) -> bool {
    let vendors = ["apple-", "msapplication-"];
    !OTHER_META_NAMES.contains(&name) && !vendors.iter().any(|vendor| name.starts_with(vendor))
}

/// The `<meta>` element with this name and these directives.
pub(super) fn meta_element(name: &str, directives: &Directives) -> String {
    let name = escape_attribute(name);
    let content = escape_attribute(&directives.to_string());
    format!("<meta name=\"{name}\" content=\"{content}\">")
}

/// Escapes text for an attribute in double quotes, in ASCII, so that the page's encoding does not
/// matter.
pub(super) fn escape_attribute(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            ' '..='~' => escaped.push(character),
            other => escaped += &format!("&#{};", u32::from(other)),
        }
    }
    escaped
}

/// Parses the content of a meta like an X-Robots-Tag field. `None` if that is not certain: with
/// `&`, with characters beyond ASCII, or with a scope. `noindex nofollow` without a comma is one
/// unknown directive, and stays as it was.
pub(super) fn parse_content(content: &str) -> Option<Directives> {
    if content.contains('&') || !content.is_ascii() {
        return None;
    }
    let mut directives = Directives::default();
    for (scope, own) in parse_lines([content.as_bytes()]).iter() {
        if *scope != TagScope::All {
            return None;
        }
        directives.extend(own);
    }
    Some(directives)
}

/// What a page says to search engines.
pub struct PageIndexing {
    /// The directives of all metas, also of those in its body: Google obeys them, too.
    pub tags: RobotsTags,
    /// The URL of its first `<link rel="canonical">`, as it is written.
    pub canonical: Option<String>,
}

/// Reads the metas and links of a page, which may be cut off.
pub fn read_metas(page: &[u8]) -> PageIndexing {
    let mut tags = RobotsTags::default();
    let mut canonical = None;
    let read_link = element!("link[rel~=canonical i][href]", |link| {
        let url = link.get_attribute("href").unwrap_or_default();
        canonical.get_or_insert(url);
        Ok(())
    });
    let read_meta = element!("meta[name][content]", |meta| {
        let name = meta.get_attribute("name").unwrap_or_default();
        let content = meta.get_attribute("content").unwrap_or_default();
        if let Some(scope) = parse_scope(&name)
            && let Some(directives) = parse_content(&content)
        {
            tags.add(scope, &directives);
        }
        Ok(())
    });
    let settings = RewriteStrSettings::new()
        .append_element_content_handler(read_meta)
        .append_element_content_handler(read_link)
        .with_strict(false);
    // Only the metas are wanted: those before an error count.
    let _ = rewrite_str(&String::from_utf8_lossy(page), settings);
    PageIndexing { tags, canonical }
}
