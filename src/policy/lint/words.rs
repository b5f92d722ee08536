//! Lints of directives in `indexing` rules that have no effect, because another directive of the
//! same rule restricts more: the strictest directive for a page wins.

use super::catalogue as lints;
use crate::indexing::{Directive, Directives, Flag, ImagePreview, Scope};
use crate::policy::model::IndexingRule;
use crate::yaml::{Diagnostics, Span};

/// Reports the directives of a rule that have no effect beside another for the same crawlers.
pub fn lint(rule: &IndexingRule, diagnostics: &mut Diagnostics) {
    for (scope, _) in rule.tags.iter() {
        beside_each_other(&words(rule, scope), diagnostics);
    }
}

/// One directive as it was written.
struct Word {
    span: Span,
    /// The word in lower case, or the key with its value.
    text: String,
    /// The directives that the word stands for.
    said: Directives,
}

/// The words of a rule for a scope, in their order. A piece between commas that is no directive,
/// such as a part of a date that holds commas, is left out.
fn words(rule: &IndexingRule, scope: &Scope) -> Vec<Word> {
    let mut words = Vec::new();
    for written in rule.texts_for(scope) {
        for part in written.split(',') {
            let Ok(said) = Directives::parse(part) else {
                continue;
            };
            let text = match said.iter().next() {
                Some(only) if part.contains(':') => only.to_string(),
                _ => part.trim().to_ascii_lowercase(),
            };
            words.push(Word {
                span: written.span,
                text,
                said,
            });
        }
    }
    words
}

impl Word {
    /// Whether another leaves it without effect: it restricts what this one permits, or has a
    /// stricter value of its key.
    fn is_undone_by(&self, other: &Word) -> bool {
        other
            .said
            .iter()
            .any(|known| self.permits(known) || self.said.iter().any(|own| is_stricter(known, own)))
    }

    /// Whether this word (`index`, `follow`, `archive`, `max-snippet: -1`, `all`) permits what a
    /// directive restricts.
    fn permits(&self, directive: &Directive) -> bool {
        let restriction = match self.text.as_str() {
            "index" => Flag::NoIndex,
            "follow" => Flag::NoFollow,
            "archive" => Flag::NoArchive,
            "max-snippet: -1" => Flag::NoSnippet,
            "all" => return restricts(directive),
            _ => return false,
        };
        *directive == Directive::Flag(restriction)
    }
}

/// Whether a directive restricts what `all` permits: indexing and serving of pages. Training is
/// another matter, and a directive that no crawler follows any more restricts nothing.
fn restricts(directive: &Directive) -> bool {
    match directive {
        Directive::Flag(flag) => !matches!(
            flag,
            Flag::IndexIfEmbedded
                | Flag::NoOdp
                | Flag::NoYdir
                | Flag::NoAi
                | Flag::NoImageAi
                | Flag::NoMl
        ),
        Directive::MaxSnippet(limit) | Directive::MaxVideoPreview(limit) => limit.is_some(),
        Directive::MaxImagePreview(size) => *size != ImagePreview::Large,
        Directive::UnavailableAfter(_) => true,
        Directive::All | Directive::Custom(_) | Directive::Unknown(..) => false,
    }
}

/// Whether `one` is the stricter of two values of one key, and the one that counts.
fn is_stricter(one: &Directive, other: &Directive) -> bool {
    let mut both = Directives::default();
    both.insert(one.clone());
    both.insert(other.clone());
    one.name() == other.name() && one != other && both.iter().eq([one])
}

/// Reports words of one scope that have no effect beside another.
fn beside_each_other(words: &[Word], diagnostics: &mut Diagnostics) {
    for word in words {
        let Some(other) = words.iter().find(|other| word.is_undone_by(other)) else {
            continue;
        };
        let text = &word.text;
        lints::CONTRADICTORY_TAG.report(
            diagnostics,
            word.span,
            format!("`{text}` has no effect beside `{}`", other.text),
            format!("remove `{text}`, and what crawlers go by stays the same"),
        );
    }
}

#[cfg(test)]
mod tests;
