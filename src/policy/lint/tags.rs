//! Lints of `indexing`: directives that contradict each other, that nobody honours, that came too late; rules that nothing
//! can match.

use super::{agents, catalogue as lints};
use crate::crawlers::Registry;
use crate::indexing::engines::{self, Reads, Support};
use crate::indexing::{Directive, Directives, Flag, Scope, Tags};
use crate::policy::compiled::Site;
use crate::policy::model::{Conditions, IndexingRule, StatusCondition, WrittenDirectives};
use crate::time::Timestamp;
use crate::yaml::{Diagnostics, Located};

pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    for rule in &site.policy.indexing {
        never_matches(rule, diagnostics);
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
    outdone(&site.policy.indexing, diagnostics);
}

/// Rules looked at for what others outdo, so that the time this takes does not grow with the square of their number.
const LOOKED_AT: usize = 256;

/// Rules that loosen what another one says wherever they match: every rule that matches contributes and the strictest
/// wins, so they have no effect.
fn outdone(rules: &[IndexingRule], diagnostics: &mut Diagnostics) {
    let loosens = |directive: &Directive| {
        use Directive::{All, MaxImagePreview, MaxSnippet, MaxVideoPreview, UnavailableAfter};
        matches!(directive, All | MaxSnippet(_) | MaxImagePreview(_) | MaxVideoPreview(_) | UnavailableAfter(_))
    };
    let may_loosen = |rule: &&IndexingRule| rule.tags.iter().any(|(_, said)| said.iter().any(loosens));
    for rule in rules.iter().filter(may_loosen).take(LOOKED_AT) {
        let holds = |wider: &&IndexingRule| {
            wider.span != rule.span && wider.unless.is_none() && covers(&wider.when, &rule.when)
        };
        let outdoes = |scope: &Scope, directive: &Directive, wider: &IndexingRule| {
            let of = |scope: &Scope| wider.tags.iter().find(|(other, _)| *other == scope).map(|(_, said)| said.clone());
            let mut said = of(scope).unwrap_or_default();
            said.extend(&of(&Scope::All).unwrap_or_default());
            let restricts = |known: &Directive| match directive {
                Directive::All => *known != Directive::All,
                _ => known.name() == directive.name() && known != directive,
            };
            let mut both = said.clone();
            both.insert(directive.clone());
            said.iter().any(restricts) && both == said
        };
        for (scope, said) in rule.tags.iter() {
            let found = said.iter().filter(|directive| loosens(directive)).find_map(|directive| {
                rules
                    .iter()
                    .filter(holds)
                    .find(|wider| outdoes(scope, directive, wider))
                    .map(|wider| (directive, wider))
            });
            let Some((directive, wider)) = found else { continue };
            let written = rule.written.iter().find(|written| written.scope == *scope);
            let place = written.map_or(rule.span, |written| written.text.span);
            diagnostics.push(
                lints::CONTRADICTORY_TAG
                    .at(
                        place,
                        format!(
                            "`{directive}` has no effect: another rule holds wherever this one does, and says more"
                        ),
                    )
                    .related(wider.span, "every rule that matches contributes, and the strictest wins")
                    .help("take these paths out of the other rule with `not`, or remove this one"),
            );
        }
    }
}

/// Names that nobody goes by and that are nearly those of crawlers.
fn unknown_names(rule: &IndexingRule, registry: &Registry, diagnostics: &mut Diagnostics) {
    for (scope, _) in rule.tags.iter() {
        let Scope::Bot(name) = scope else { continue };
        if engines::bot(name).is_some() {
            continue;
        }
        if let Some(near) = agents::nearly(name, registry) {
            let written = rule.written.iter().find(|written| written.scope == *scope);
            diagnostics.push(
                lints::UNKNOWN_TOKEN
                    .at(
                        written.map_or(rule.span, |written| written.text.span),
                        format!("no known crawler is called `{name}`"),
                    )
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
        } else if !before.is_empty() && both == before {
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

fn never_matches(rule: &IndexingRule, diagnostics: &mut Diagnostics) {
    if rule.unless.as_ref().is_some_and(|unless| covers(unless, &rule.when)) {
        diagnostics.push(
            lints::RULE_NEVER_MATCHES
                .at(rule.span, "this rule matches nothing: its `not` holds wherever its conditions do")
                .help("make `not` narrower than the rule"),
        );
    }
    if let Some(path) = rule.when.paths.iter().find(|path| path.value.contains('#')) {
        diagnostics.push(
            lints::RULE_NEVER_MATCHES
                .at(path.span, "what follows `#` never reaches a server: this path matches nothing")
                .help("write it as `%23` if it is a part of the path"),
        );
    }
    if let Some(regex) = &rule.when.path_regex {
        let first = regex.value.strip_prefix('^').and_then(|rest| rest.chars().next());
        if first.is_some_and(|first| first.is_ascii_alphanumeric()) {
            diagnostics.push(
                lints::RULE_NEVER_MATCHES
                    .at(regex.span, "this expression matches nothing: a path begins with `/`")
                    .help(format!("write `^/{}`", regex.value.trim_start_matches('^'))),
            );
        }
    }
}

/// Whether one set of conditions holds wherever the other does, as far as that can be told from their text.
fn covers(wider: &Conditions, narrower: &Conditions) -> bool {
    paths_cover(&wider.paths, &narrower.paths)
        && wider
            .path_regex
            .as_ref()
            .is_none_or(|regex| narrower.path_regex.as_ref().is_some_and(|other| other.value == regex.value))
        && list_covers(&wider.types, &narrower.types, |wider, narrower| {
            wider == narrower || wider.strip_suffix('*').is_some_and(|kind| narrower.starts_with(kind))
        })
        && list_covers(&wider.status, &narrower.status, |wider, narrower| match (wider, narrower) {
            (StatusCondition::Class(class), StatusCondition::Code(code)) => u16::from(*class) == code / 100,
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
