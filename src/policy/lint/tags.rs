//! Lints of `indexing`: directives that contradict each other, that nobody honours, that came too late; rules that
//! nothing can match.

use super::reach::{self, Among, Wanted};
use super::{agents, catalogue as lints, outdone};
use crate::crawlers::Registry;
use crate::indexing::engines::{self, Reads, Support};
use crate::indexing::{Directive, Directives, Flag, Scope, Tags, is_bots_name};
use crate::policy::compiled::Site;
use crate::policy::model::{Conditions, IndexingRule, StatusCondition, WrittenDirectives};
use crate::time::Timestamp;
use crate::yaml::{Diagnostics, Located, nearest};

pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    let mut budget = reach::STEPS_OF_A_POLICY;
    for rule in &site.policy.indexing {
        never_matches(rule, &mut budget, diagnostics);
        unknown_names(rule, registry, diagnostics);
        for (scope, said) in rule.tags.iter() {
            each_scope(rule, scope, said, site.at, diagnostics);
        }
        if engines::is_softened_at_bing(&rule.tags) {
            diagnostics.push(
                lints::CONTRADICTORY_TAG
                    .at(rule.span, "Bing goes by nocache alone where it is told noarchive, too")
                    .help("nocache is the milder of the two: write the one that is meant (blogs.bing.com, September 2023)"),
            );
        }
    }
    outdone::lint(&site.policy.indexing, diagnostics);
}

/// Names that nobody goes by and that are nearly those of crawlers.
fn unknown_names(rule: &IndexingRule, registry: &Registry, diagnostics: &mut Diagnostics) {
    for (scope, _) in rule.tags.iter() {
        let Scope::Bot(name) = scope else { continue };
        if engines::bot(name).is_some() {
            continue;
        }
        let written = rule.written.iter().find(|written| written.scope == *scope);
        let place = written.map_or(rule.span, |written| written.text.span);
        let directives = || Flag::ALL.iter().map(|flag| flag.name());
        if name.eq_ignore_ascii_case("robots") {
            diagnostics.push(
                lints::UNKNOWN_TOKEN
                    .at(place, "no crawler is called `robots`, and so nobody goes by this")
                    .help("in a meta tag that is everybody: write `\"*\"` here, or `tag` for `tags`"),
            );
        } else if !is_bots_name(name)
            && let Some(near) = nearest(name, directives())
        {
            diagnostics.push(
                lints::UNKNOWN_TOKEN
                    .at(place, format!("no known crawler is called `{name}`"))
                    .help(format!("did you mean the directive `{near}`? What everybody is told stands in `tag`")),
            );
        } else if let Some(near) = agents::nearly(name, registry) {
            diagnostics.push(
                lints::UNKNOWN_TOKEN
                    .at(place, format!("no known crawler is called `{name}`"))
                    .help(format!("did you mean `{near}`?")),
            );
        }
    }
}

/// What was written to somebody, directive by directive, with the piece that it stands in.
fn pieces<'r>(rule: &'r IndexingRule, scope: &Scope) -> Vec<(&'r WrittenDirectives, Directives)> {
    let of_scope = rule.written.iter().filter(|written| written.scope == *scope);
    of_scope
        .flat_map(|written| {
            // A date may hold a comma, and then it is the only directive of its piece.
            let whole = written.text.value.to_ascii_lowercase().contains("unavailable_after");
            let parts: Vec<&str> = match whole {
                true => vec![written.text.value.as_str()],
                false => written.text.value.split(',').collect(),
            };
            parts.into_iter().filter_map(move |part| Some((written, Directives::parse(part).ok()?))).collect::<Vec<_>>()
        })
        .collect()
}

fn each_scope(rule: &IndexingRule, scope: &Scope, said: &Directives, now: Timestamp, diagnostics: &mut Diagnostics) {
    let pieces = pieces(rule, scope);
    let place = |directive: &Directive| {
        let holds = |directives: &Directives| directives.iter().any(|known| known.name() == directive.name());
        let found = pieces.iter().find(|(_, directives)| holds(directives));
        found.map_or(rule.span, |(written, _)| written.text.span)
    };
    let has = |flag: Flag| said.iter().any(|directive| *directive == Directive::Flag(flag));
    let whole = match scope {
        Scope::All => said.clone(),
        Scope::Bot(name) => rule.tags.effective(name),
    };
    if has(Flag::IndexIfEmbedded) && !whole.forbids_indexing() {
        diagnostics.push(
            lints::INDEXIFEMBEDDED_ALONE
                .at(place(&Directive::Flag(Flag::IndexIfEmbedded)), "indexifembedded does nothing without noindex")
                .help("it lets a page that says noindex be found where others embed it: write `[noindex, indexifembedded]`"),
        );
    }
    against_each_other(said, &pieces, diagnostics);
    if let (Scope::Bot(name), true) = (scope, rule.tags.iter().any(|(scope, _)| *scope == Scope::All)) {
        let mut without = Tags::default();
        rule.tags
            .iter()
            .filter(|(other, _)| *other != scope)
            .for_each(|(scope, said)| without.add(scope.clone(), said));
        if without.effective(name) == rule.tags.effective(name)
            && let Some((written, _)) = pieces.first()
        {
            diagnostics.push(
                lints::REDUNDANT_TAG
                    .at(written.text.span, format!("everybody is told this already, and `{name}` with them")),
            );
        }
    }
    for directive in said.iter() {
        each_directive(scope, directive, place(directive), now, diagnostics);
    }
    if let Scope::Bot(name) = scope
        && let Some(bot) = engines::bot(name)
        && bot.reads != Reads::Header
        && let Some((written, _)) = pieces.first()
    {
        let (only, help) = match bot.reads {
            Reads::Meta => ("meta tags in HTML", "the page itself has to say it"),
            _ => ("robots.txt", "write a group for it under `robots`"),
        };
        diagnostics.push(
            lints::HEADER_UNREAD
                .at(written.text.span, format!("of `{name}` {} documents {only} only, not this header", bot.operator))
                .help(format!("{help} ({}, {})", bot.source, bot.as_of)),
        );
    }
}

/// Pieces that say the same twice, or that cannot both be meant.
fn against_each_other(said: &Directives, pieces: &[(&WrittenDirectives, Directives)], diagnostics: &mut Diagnostics) {
    let restricts = said.iter().any(|directive| *directive != Directive::All);
    let mut before = Directives::default();
    for (written, piece) in pieces {
        let all = piece.iter().any(|directive| *directive == Directive::All);
        let key = piece
            .iter()
            .find_map(|directive| before.iter().find(|known| known.name() == directive.name() && *known != directive));
        let mut both = before.clone();
        both.extend(piece);
        if all && restricts {
            diagnostics.push(
                lints::CONTRADICTORY_TAG
                    .at(
                        written.text.span,
                        format!("`{}` allows what others here restrict, and has no effect", written.text.value),
                    )
                    .help("remove it: of two values the more restrictive one wins"),
            );
        } else if let Some(known) = key {
            diagnostics.push(
                lints::CONTRADICTORY_TAG
                    .at(written.text.span, format!("`{known}` is said here, too; the more restrictive of the two wins"))
                    .help("remove the other"),
            );
        } else if !before.is_empty() && both == before && !all {
            // `index, follow` is two words for what restricts nothing, and means both.
            diagnostics.push(lints::REDUNDANT_TAG.at(written.text.span, "this is said twice"));
        }
        before = both;
    }
    let snippet = said.iter().find(|directive| matches!(directive, Directive::MaxSnippet(_)));
    if let Some(snippet) = snippet.filter(|_| said.iter().any(|known| *known == Directive::Flag(Flag::NoSnippet)))
        && let Some((written, _)) = pieces.iter().find(|(_, piece)| piece.iter().any(|directive| directive == snippet))
    {
        diagnostics
            .push(lints::REDUNDANT_TAG.at(written.text.span, format!("`{snippet}` changes nothing beside nosnippet")));
    }
}

fn each_directive(
    scope: &Scope,
    directive: &Directive,
    place: crate::yaml::Span,
    now: Timestamp,
    diagnostics: &mut Diagnostics,
) {
    match directive {
        Directive::Custom(word) => {
            diagnostics.push(
                lints::CUSTOM_DIRECTIVE
                    .at(place, format!("`{word}` is sent as it is; no search engine documents it"))
                    .help("a crawler that does not know it passes over it"),
            );
            return;
        }
        Directive::UnavailableAfter(moment) if *moment <= now => {
            diagnostics.push(
                lints::UNAVAILABLE_AFTER_PAST
                    .at(place, format!("{moment} has passed: these pages are not to be found any more"))
                    .help("write noindex, which every search engine knows, or a later date"),
            );
        }
        _ => {}
    }
    let finding = match scope {
        Scope::All if engines::is_retired_by_all(directive) => {
            Some((format!("nobody goes by {} any more", directive.name()), "remove it".to_owned()))
        }
        Scope::Bot(name) => engines::bot(name).filter(|bot| bot.reads == Reads::Header).and_then(|bot| {
            let said = match bot.support(directive) {
                Support::Retired => format!("{} no longer uses {}", bot.operator, directive.name()),
                Support::Unlisted => {
                    format!("{} does not name {} among what it honours", bot.operator, directive.name())
                }
                Support::Honoured | Support::Unknown => return None,
            };
            Some((said, format!("see {} ({})", bot.source, bot.as_of)))
        }),
        Scope::All => None,
    };
    if let Some((message, help)) = finding {
        diagnostics.push(lints::UNUSED_DIRECTIVE.at(place, message).help(help));
    }
}

fn never_matches(rule: &IndexingRule, budget: &mut usize, diagnostics: &mut Diagnostics) {
    if let Some(path) = rule.when.paths.iter().find(|path| path.value.contains('#')) {
        diagnostics.push(
            lints::RULE_NEVER_MATCHES
                .at(path.span, "what follows `#` in a URL never reaches a server: only paths with `%23` match this")
                .help("write `%23` if it is a part of the path, or leave out what begins with `#`"),
        );
    }
    let paths = reach::patterns(&rule.when);
    let path_regex = rule.when.path_regex.as_ref();
    let when = Wanted { paths: &paths, path_regex: path_regex.map(|regex| regex.value.as_str()), unless: None };
    let matches = reach::any(when, Among::All, budget);
    if let (Some(regex), Some(text)) = (path_regex, when.path_regex)
        && let Some((message, help)) = of_expression(text, when, matches, budget)
    {
        diagnostics.push(lints::RULE_NEVER_MATCHES.at(regex.span, message).help(help));
    }
    let Some(unless) = rule.unless.as_ref().filter(|_| matches != Some(false)) else { return };
    let excludes = lists_cover(unless, &rule.when) && {
        let excluded = reach::patterns(unless);
        let expression = unless.path_regex.as_ref().map(|regex| regex.value.as_str());
        let left = reach::any(Wanted { unless: Some((&excluded, expression)), ..when }, Among::All, budget);
        // What was not found out their text may tell.
        left.map_or_else(|| covers(unless, &rule.when), |left| !left)
    };
    if excludes {
        diagnostics.push(
            lints::RULE_NEVER_MATCHES
                .at(rule.span, "this rule matches nothing: its `not` holds wherever its conditions do")
                .help("make `not` narrower than the rule"),
        );
    }
}

/// What is wrong with an expression that holds for no path, or only for such as nobody means, and what to do. `matches`
/// is whether the rule does.
fn of_expression(regex: &str, when: Wanted<'_>, matches: Option<bool>, budget: &mut usize) -> Option<(String, String)> {
    let alone = Wanted { path_regex: Some(regex), ..Wanted::default() };
    let mut is_none = |among| reach::any(alone, among, budget) == Some(false);
    if matches == Some(false) && is_none(Among::All) {
        if is_none(Among::AnyText) {
            return Some((
                "this expression matches nothing: what stands around its `^` or `$` cannot be there".into(),
                "write `\\$` or `\\^` for the signs themselves".into(),
            ));
        }
        let help = format!("write `^/{}`", regex.trim_start_matches('^'));
        return Some(("this expression matches nothing: a path begins with `/`".into(), help));
    }
    if is_none(Among::WithoutQuestionMark) {
        return Some((
            "the query is no part of the path: this matches only where the path itself has a `?`, as `%3F`".into(),
            "use `paths`, whose `*` reaches the query: `/*?id=`".into(),
        ));
    }
    if is_none(Among::WithoutDoubleEscape) {
        return Some((
            "the path is read with its escapes decoded: this matches only where an escape is escaped once more, like \
             `%2541` for `%41`"
                .into(),
            "write the character itself: `é` for `%C3%A9`, `A` for `%41`".into(),
        ));
    }
    (matches == Some(false) && !when.paths.is_empty())
        .then(|| ("no path of `paths` is one that this expression matches".into(), "write two rules".into()))
}

/// The text that every path has at its start for which an expression holds.
pub(super) fn literal_start(regex: &str) -> Option<&str> {
    let rest = regex.strip_prefix('^').filter(|rest| !rest.contains('|'))?;
    let end = rest.find(|sign: char| !sign.is_ascii_alphanumeric() && !"/-_~%".contains(sign)).unwrap_or(rest.len());
    // What is repeated or optional may not be there.
    let end = if rest[end..].starts_with(['?', '*', '{']) { end.checked_sub(1)? } else { end };
    (end > 1).then(|| &rest[..end])
}

/// Whether one set of conditions holds wherever the other does, as far as that can be told from their text.
pub(super) fn covers(wider: &Conditions, narrower: &Conditions) -> bool {
    paths_cover(&wider.paths, &narrower.paths)
        && wider
            .path_regex
            .as_ref()
            .is_none_or(|regex| narrower.path_regex.as_ref().is_some_and(|other| other.value == regex.value))
        && lists_cover(wider, narrower)
}

/// The same of status and type alone.
fn lists_cover(wider: &Conditions, narrower: &Conditions) -> bool {
    list_covers(&wider.types, &narrower.types, |wider, narrower| {
        wider == narrower || wider.strip_suffix('*').is_some_and(|kind| narrower.starts_with(kind))
    }) && list_covers(&wider.status, &narrower.status, |wider, narrower| match (wider, narrower) {
        (StatusCondition::Class(class), StatusCondition::Code(code)) => u16::from(*class) == code / 100,
        // A part of a page is tagged as the page.
        (StatusCondition::Code(200), StatusCondition::Code(206)) => true,
        _ => wider == narrower,
    })
}

fn paths_cover(wider: &[Located<String>], narrower: &[Located<String>]) -> bool {
    list_covers(wider, narrower, |wider, narrower| {
        let literal = wider.strip_suffix('*').unwrap_or(wider);
        wider == narrower || !literal.contains(['*', '$']) && narrower.starts_with(literal)
    })
}

/// An empty list does not restrict.
fn list_covers<T>(wider: &[Located<T>], narrower: &[Located<T>], holds: impl Fn(&T, &T) -> bool) -> bool {
    wider.is_empty()
        || !narrower.is_empty()
            && narrower.iter().all(|narrow| wider.iter().any(|wide| holds(&wide.value, &narrow.value)))
}
