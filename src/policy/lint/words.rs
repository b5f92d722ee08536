//! What stands in a rule word by word, as its writer said it: which words say the opposite of each other, and which
//! say nothing that is not said already. Knows one scope of one rule at a time; nothing of paths and of crawlers.

use super::catalogue as lints;
use crate::indexing::{Directive, Directives, Flag, Scope};
use crate::policy::model::{IndexingRule, WrittenDirectives};
use crate::yaml::Diagnostics;

/// One directive as it was written.
pub struct Word<'r> {
    /// The text that it stands in.
    pub written: &'r WrittenDirectives,
    /// The word in lower case, or the key with its value.
    pub text: String,
    /// What it is short for.
    pub said: Directives,
}

/// What is written to a scope, in its order.
pub fn of<'r>(rule: &'r IndexingRule, scope: &Scope) -> Vec<Word<'r>> {
    let of_scope = rule.written.iter().filter(|written| written.scope == *scope);
    of_scope
        .flat_map(|written| split(&written.text.value).map(move |(text, said)| Word { written, text, said }))
        .collect()
}

/// The directives of a text. A date may hold commas: what says nothing alone is read with what follows.
fn split(text: &str) -> impl Iterator<Item = (String, Directives)> {
    let parts: Vec<&str> = text.split(',').collect();
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = parts.get(start..).filter(|rest| !rest.is_empty())?;
        let parsed = (1..=rest.len().min(4)).find_map(|used| {
            let text = rest[..used].join(",");
            Some((used, Directives::parse(&text).ok()?, text))
        });
        let Some((used, said, text)) = parsed else {
            start = parts.len();
            return None;
        };
        start += used;
        let text = match said.iter().next() {
            Some(only) if text.contains(':') => only.to_string(),
            _ => text.trim().to_ascii_lowercase(),
        };
        Some((text, said))
    })
}

impl Word<'_> {
    /// Whether it says that what a directive restricts is not restricted.
    pub fn permits(&self, directive: &Directive) -> bool {
        let flag = match directive {
            Directive::Flag(flag) => Some(*flag),
            _ => None,
        };
        match self.text.as_str() {
            "index" => flag == Some(Flag::NoIndex),
            "follow" => flag == Some(Flag::NoFollow),
            "archive" => flag == Some(Flag::NoArchive),
            "max-snippet: -1" => flag == Some(Flag::NoSnippet),
            "all" => restricts(directive),
            _ => false,
        }
    }

    /// Whether there is anything that it could loosen.
    pub fn may_loosen(&self) -> bool {
        self.valued().is_some() || ["index", "follow", "archive", "all"].contains(&self.text.as_str())
    }

    /// What of all that is said somewhere else leaves it without effect.
    pub fn undone_by<'d>(&self, said: &'d Directives) -> Option<&'d Directive> {
        let value = self.valued();
        let stricter = |known: &&Directive| {
            self.permits(known) || value.is_some_and(|value| known.name() == value.name() && is_stricter(known, value))
        };
        said.iter().find(stricter)
    }

    /// The only directive that it is, where it has a value.
    fn valued(&self) -> Option<&Directive> {
        self.said.iter().find(|directive| {
            use Directive::{MaxImagePreview, MaxSnippet, MaxVideoPreview, UnavailableAfter};
            matches!(directive, MaxSnippet(_) | MaxVideoPreview(_) | MaxImagePreview(_) | UnavailableAfter(_))
        })
    }

    /// Whether it is a word for several things, of which another word is one.
    fn includes(&self, other: &Word<'_>) -> bool {
        let parts: &[&str] = match self.text.as_str() {
            "none" => &["noindex", "nofollow"],
            "all" => &["index", "follow", "archive"],
            _ => &[],
        };
        parts.contains(&other.text.as_str())
    }
}

/// Whether a directive restricts what `all` is about: how pages are indexed and served. Training is another matter, and
/// what no crawler follows any more restricts nothing.
fn restricts(directive: &Directive) -> bool {
    use crate::indexing::ImagePreview;
    match directive {
        Directive::Flag(flag) => !matches!(
            flag,
            Flag::IndexIfEmbedded | Flag::NoOdp | Flag::NoYdir | Flag::NoAi | Flag::NoImageAi | Flag::NoMl
        ),
        Directive::MaxSnippet(limit) | Directive::MaxVideoPreview(limit) => limit.is_some(),
        Directive::MaxImagePreview(size) => *size != ImagePreview::Large,
        Directive::UnavailableAfter(_) => true,
        Directive::All | Directive::Custom(_) | Directive::Unknown(..) => false,
    }
}

/// Whether of two values of one key it is the first that counts.
fn is_stricter(one: &Directive, other: &Directive) -> bool {
    let mut both = Directives::default();
    both.insert(one.clone());
    both.insert(other.clone());
    one != other && both.iter().eq([one])
}

/// Words of one scope that say the opposite, or the same, and all that they say together.
pub fn lint(words: &[Word<'_>], said: &Directives, diagnostics: &mut Diagnostics) {
    for (place, word) in words.iter().enumerate() {
        let (span, text) = (word.written.text.span, &word.text);
        let opposite = words.iter().find(|other| other.said.iter().any(|directive| word.permits(directive)));
        let undone_by = || word.undone_by(said).map(Directive::to_string);
        if let Some(other) = opposite.map(|other| other.text.clone()).or_else(undone_by) {
            diagnostics.push(
                lints::CONTRADICTORY_TAG
                    .at(span, format!("`{text}` has no effect beside `{other}`"))
                    .help(format!("remove `{text}`, and what crawlers go by stays the same; without `{other}` these pages would be less restricted")),
            );
        } else if words[..place].iter().any(|other| other.text == *text) {
            diagnostics.push(lints::REDUNDANT_TAG.at(span, format!("`{text}` is said twice")));
        } else if let Some(other) = words.iter().find(|other| other.includes(word)) {
            diagnostics.push(lints::REDUNDANT_TAG.at(span, format!("`{}` says `{text}`, too", other.text)));
        } else if matches!(word.valued(), Some(Directive::MaxSnippet(_))) && said.says(Flag::NoSnippet) {
            let message = format!("beside nosnippet, `{text}` changes nothing that crawlers go by");
            diagnostics.push(lints::REDUNDANT_TAG.at(span, message));
        }
    }
}

/// What one bot is told beside everybody: nothing of it may loosen what everybody is told (Google unites the two).
pub fn beside_all(
    bot: &str,
    words: &[Word<'_>],
    said: &Directives,
    to_all: &Directives,
    diagnostics: &mut Diagnostics,
) {
    let undone = words.iter().find_map(|word| Some((word, word.undone_by(to_all)?)));
    if let Some((word, by)) = undone {
        let text = &word.text;
        let message = format!(
            "`{text}` has no effect on a crawler that, like Google's, goes by what everybody is told, too: `{by}`"
        );
        diagnostics.push(lints::CONTRADICTORY_TAG.at(word.written.text.span, message).help(format!(
            "to restrict these pages less for `{bot}` tell the others by their names, not `\"*\"`; if that is not meant, \
             remove `{text}`"
        )));
    } else if let Some(word) = words.first().filter(|_| said.beyond(to_all).is_empty()) {
        let message =
            "everybody is told this already: it adds nothing for a crawler that, like Google's, goes by that, too";
        diagnostics.push(lints::REDUNDANT_TAG.at(word.written.text.span, message).help(format!(
            "keep it for a `{bot}` that goes by its own name alone, with all that every crawler is told"
        )));
    }
}

#[cfg(test)]
mod tests;
