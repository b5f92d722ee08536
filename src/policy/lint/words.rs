//! Lints of directives in `indexing` rules that have no effect, because another directive restricts more: the
//! strictest directive for a page wins. The other directive stands in the same rule, or in a rule that applies
//! wherever this one does.

use super::catalogue as lints;
use crate::indexing::{Directive, Directives, Flag, ImagePreview, Scope};
use crate::policy::model::{Conditions, IndexingRule, patterns};
use crate::yaml::{Diagnostics, Located, Span};

/// Comparisons of patterns in all rules of a policy: the time this takes does not grow with the square of their number.
const COMPARISONS: usize = 250_000;

pub fn lint(rules: &[IndexingRule], diagnostics: &mut Diagnostics) {
    let mut comparisons = COMPARISONS;
    for rule in rules {
        for (scope, _) in rule.tags.iter() {
            let words = words(rule, scope);
            beside_each_other(&words, diagnostics);
            if let (Scope::Bot(bot), Some(to_all)) = (scope, rule.tags.of(&Scope::All)) {
                beside_all(bot, &words, to_all, diagnostics);
            }
            beside_other_rules(rule, scope, &words, rules, &mut comparisons, diagnostics);
        }
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

/// The words of a rule for a scope, in their order. Pieces of a date that holds commas are left out.
fn words(rule: &IndexingRule, scope: &Scope) -> Vec<Word> {
    let written = rule.written.iter().filter(|written| written.scope == *scope).map(|written| &written.text);
    let parts = written.flat_map(|text| text.value.split(',').map(|part| (text.span, part)));
    let word = |(span, part): (Span, &str)| {
        let said = Directives::parse(part).ok()?;
        let text = match said.iter().next() {
            Some(only) if part.contains(':') => only.to_string(),
            _ => part.trim().to_ascii_lowercase(),
        };
        Some(Word { span, text, said })
    };
    parts.filter_map(word).collect()
}

impl Word {
    /// The directive that leaves it without effect: what it permits, or a stricter value of its key.
    fn undone_by<'d>(&self, said: &'d Directives) -> Option<&'d Directive> {
        said.iter().find(|known| self.permits(known) || self.said.iter().any(|own| is_stricter(known, own)))
    }

    /// Whether the word permits what a directive restricts.
    fn permits(&self, directive: &Directive) -> bool {
        let is = |flag: Flag| *directive == Directive::Flag(flag);
        match self.text.as_str() {
            "index" => is(Flag::NoIndex),
            "follow" => is(Flag::NoFollow),
            "archive" => is(Flag::NoArchive),
            "max-snippet: -1" => is(Flag::NoSnippet),
            "all" => restricts(directive),
            _ => false,
        }
    }
}

/// Whether a directive restricts what `all` permits: indexing and serving of pages. Training is another matter, and a
/// directive that no crawler follows any more restricts nothing.
fn restricts(directive: &Directive) -> bool {
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

/// Whether `one` is the stricter of two values of one key, and the one that counts.
fn is_stricter(one: &Directive, other: &Directive) -> bool {
    let strictest_is_one = || {
        let mut both = Directives::default();
        both.insert(one.clone());
        both.insert(other.clone());
        both.iter().eq([one])
    };
    // First what costs little: each word is compared with those of all other rules.
    one.name() == other.name() && one != other && strictest_is_one()
}

/// Reports words of one scope that have no effect beside another.
fn beside_each_other(words: &[Word], diagnostics: &mut Diagnostics) {
    for word in words {
        let Some(other) = words.iter().find(|other| word.undone_by(&other.said).is_some()) else { continue };
        let (text, other) = (&word.text, &other.text);
        lints::CONTRADICTORY_TAG.report(
            diagnostics,
            word.span,
            format!("`{text}` has no effect beside `{other}`"),
            format!("remove `{text}`, and what crawlers go by stays the same; without `{other}` these pages would be less restricted"),
        );
    }
}

/// Reports a word for one bot that would loosen a directive for all bots (Google unites the two).
fn beside_all(bot: &str, words: &[Word], to_all: &Directives, diagnostics: &mut Diagnostics) {
    let Some((word, by)) = words.iter().find_map(|word| Some((word, word.undone_by(to_all)?))) else { return };
    let text = &word.text;
    lints::CONTRADICTORY_TAG.report(
        diagnostics,
        word.span,
        format!("`{text}` has no effect on a crawler that, like Google's, goes by what everybody is told, too: `{by}`"),
        format!(
            "to restrict these pages less for `{bot}` tell the others by their names, not `\"*\"`; if that is not meant, \
             remove `{text}`"
        ),
    );
}

/// Reports the first word for a scope that another rule leaves without effect.
fn beside_other_rules(
    rule: &IndexingRule,
    scope: &Scope,
    words: &[Word],
    rules: &[IndexingRule],
    comparisons: &mut usize,
    diagnostics: &mut Diagnostics,
) {
    let found = words.iter().find_map(|word| {
        rules.iter().filter(|wider| !std::ptr::eq(*wider, rule) && wider.unless.is_none()).find_map(|wider| {
            let undone_in = |scope: &Scope| wider.tags.of(scope).is_some_and(|said| word.undone_by(said).is_some());
            let by_all = undone_in(&Scope::All);
            ((by_all || undone_in(scope)) && covers(&wider.when, &rule.when, comparisons))
                .then_some((word, wider, by_all))
        })
    });
    let Some((word, wider, by_all)) = found else { return };
    let less = match scope {
        Scope::Bot(bot) if by_all => {
            format!("for `{bot}` alone, name the others in the other rule, in place of `\"*\"`")
        }
        _ => "change the other rule, or take them out of it with `not` and say the rest of it again for them".into(),
    };
    diagnostics.push(
        lints::CONTRADICTORY_TAG
            .at(
                word.span,
                format!("`{}` has no effect: another rule holds wherever this one does, and says more", word.text),
            )
            .related(wider.span, "every rule that matches contributes, and the strictest wins")
            .help(format!("remove it, and what crawlers go by stays the same; to restrict these pages less {less}")),
    );
}

/// Whether conditions hold wherever others do, as far as that shows by comparing their lists. Takes every comparison
/// from `left`; the answer is no when that is used up.
fn covers(wider: &Conditions, narrower: &Conditions, left: &mut usize) -> bool {
    *left = left.saturating_sub((1 + wider.paths.len()) * (1 + narrower.paths.len()));
    let has_path = || {
        let (ours, theirs) = (patterns(&wider.paths), patterns(&narrower.paths));
        !theirs.is_empty() && theirs.iter().all(|their| ours.iter().any(|our| our.covers(their)))
    };
    *left > 0
        && (wider.paths.is_empty() || has_path())
        && is_wider(wider.path_regex.as_slice(), narrower.path_regex.as_slice())
        && is_wider(&wider.types, &narrower.types)
        && is_wider(&wider.status, &narrower.status)
}

/// Whether a list is empty, or the same as another.
fn is_wider<T: PartialEq>(wider: &[Located<T>], narrower: &[Located<T>]) -> bool {
    let values = |list| <[Located<T>]>::iter(list).map(|item| &item.value);
    wider.is_empty() || values(wider).eq(values(narrower))
}

#[cfg(test)]
mod tests;
