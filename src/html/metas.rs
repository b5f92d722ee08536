//! Robots directives such as `noindex`, written and read as `<meta>` elements. [`of_tags`] selects
//! the directives that become metas, [`element`] writes the meta for all bots or for one bot, and
//! [`read`] reads a meta of the page.

use crate::indexing::{Directive, Directives, Scope, Tags, parse_lines};

/// Names of other kinds of metas (HTML standard, section 4.2.5.1, and some that browsers know
/// besides). A scope with such a name would change how the page is shown. `robots` is the name for
/// all bots.
const NOT_FOR_BOTS: [&str; 19] = [
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
/// has the bot's name. A scope without restrictions (nothing but `all`) needs no meta.
pub(super) fn of_tags(tags: &Tags) -> Tags {
    let mut metas = Tags::default();
    for (scope, directives) in tags.iter() {
        let mut each = directives.iter();
        let restricts = each.any(|directive| *directive != Directive::All);
        let has_meta = match scope {
            Scope::All => true,
            Scope::Bot(name) => is_for_bots(name),
        };
        if restricts && has_meta {
            metas.add(scope.clone(), directives);
        }
    }
    metas
}

/// The scope of a meta with this name; `None` where it cannot be one for crawlers.
pub(super) fn scope(name: &str) -> Option<Scope> {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "robots" => Some(Scope::All),
        _ => is_for_bots(&name).then(|| Scope::Bot(name.into())),
    }
}

/// The name of the meta for a scope.
pub(super) fn name(scope: &Scope) -> &str {
    match scope {
        Scope::All => "robots",
        Scope::Bot(name) => name,
    }
}

/// Whether no other kind of meta has this name (in lower case), so that a bot may have it.
fn is_for_bots(name: &str) -> bool {
    let vendors = ["apple-", "msapplication-"];
    !NOT_FOR_BOTS.contains(&name) && !vendors.iter().any(|vendor| name.starts_with(vendor))
}

/// The `<meta>` element with this name and these directives.
pub(super) fn element(name: &str, directives: &Directives) -> String {
    let name = quoted(name);
    let content = quoted(&directives.to_string());
    format!("<meta name=\"{name}\" content=\"{content}\">")
}

/// Text as it stands in an attribute.
fn quoted(text: &str) -> String {
    escaped(text).replace('"', "&quot;")
}

/// Text of an attribute, in ASCII, so that the page's encoding does not matter. The caller escapes
/// quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            ' '..='~' => escaped.push(sign),
            other => escaped += &format!("&#{};", u32::from(other)),
        }
    }
    escaped
}

/// The directives in the content of a meta; `None` where they cannot be told for sure: with `&`,
/// with other characters than ASCII, or with a scope. The content is otherwise read as a field is.
/// `noindex nofollow` without its comma is one rule that no operator documents, and stays as it
/// was.
pub(super) fn read(content: &str) -> Option<Directives> {
    if content.contains('&') || !content.is_ascii() {
        return None;
    }
    let tags = parse_lines([content.as_bytes()]);
    let mut directives = Directives::default();
    for (scope, said) in tags.iter() {
        if *scope != Scope::All {
            return None;
        }
        directives.extend(said);
    }
    Some(directives)
}
