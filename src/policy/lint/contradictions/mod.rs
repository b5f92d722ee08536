//! The lint of X-Robots-Tag directives in the section `indexing` that have no effect, because
//! another directive of the same rule is stricter: for crawlers the strictest directive of a page
//! counts.

use super::catalogue as lints;
use crate::indexing::{Directive, Directives, Flag, ImagePreview, TagScope};
use crate::policy::model::IndexingRule;
use crate::yaml::{Diagnostics, SourceSpan};

/// Checks the directives of a rule, for each crawler.
pub fn lint(rule: &IndexingRule, diagnostics: &mut Diagnostics) {
    for (scope, _) in rule.tags.iter() {
        lint_overridden(&written_directives(rule, scope), diagnostics);
    }
}

/// One directive as it was written.
struct WrittenDirective {
    span: SourceSpan,
    /// Its text in lower case, or its key with its value.
    text: String,
    /// What it means: one directive, or several for a word such as `none`.
    directives: Directives,
}

/// The directives of a rule for a scope, as written. A part of a date with commas is no directive,
/// and is left out.
fn written_directives(rule: &IndexingRule, scope: &TagScope) -> Vec<WrittenDirective> {
    let mut words = Vec::new();
    for written in rule.texts_for(scope) {
        for part in written.split(',') {
            let Ok(directives) = Directives::parse(part) else {
                continue;
            };
            let text = match directives.iter().next() {
                Some(only) if part.contains(':') => only.to_string(),
                _ => part.trim().to_ascii_lowercase(),
            };
            words.push(WrittenDirective {
                span: written.span,
                text,
                directives,
            });
        }
    }
    words
}

impl WrittenDirective {
    /// Whether another one leaves it without effect, because it restricts what this one permits or
    /// has a stricter value of its key.
    fn is_overridden_by(&self, other: &WrittenDirective) -> bool {
        other.directives.iter().any(|known| {
            self.permits(known) || self.directives.iter().any(|own| is_stricter(known, own))
        })
    }

    /// Whether this (`index`, `follow`, `archive`, `max-snippet: -1`, `all`) permits what a
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

/// Whether a directive restricts what `all` permits: indexing and showing of pages. Directives
/// about training, and those that no crawler follows any more, do not.
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

/// Whether `one` is the stricter of two different values of the same key.
fn is_stricter(one: &Directive, other: &Directive) -> bool {
    let mut both = Directives::default();
    both.insert(one.clone());
    both.insert(other.clone());
    one.name() == other.name() && one != other && both.iter().eq([one])
}

/// Reports the directives of one scope that another one overrides.
fn lint_overridden(words: &[WrittenDirective], diagnostics: &mut Diagnostics) {
    for word in words {
        let Some(other) = words.iter().find(|other| word.is_overridden_by(other)) else {
            continue;
        };
        let text = &word.text;
        lints::CONTRADICTORY_TAG.report(
            diagnostics,
            word.span,
            format!("\"{text}\" has no effect beside \"{}\"", other.text),
            format!("remove \"{text}\": nothing changes for crawlers"),
        );
    }
}

#[cfg(test)]
mod tests;
