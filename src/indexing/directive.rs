//! [`Directive`]: one directive of X-Robots-Tag. [`Directives`]: a set of them, in which the most
//! restrictive value of each kind wins.

use crate::time::Timestamp;
use std::fmt;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// A directive about a page's entry in an index. The variants stand in the order of emission.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Directive {
    /// No restriction.
    All,
    /// A known directive without a value: `noindex`, `nofollow`, `noarchive`, `noai`, ...
    Flag(Flag),
    /// Another word, in lower case: what a site and a crawler agreed on.
    Custom(Box<str>),
    /// Characters of a snippet; `None` is -1, without limit.
    MaxSnippet(Option<u32>),
    /// `none`, `standard` or `large`, in this order of restriction.
    MaxImagePreview(ImagePreview),
    /// Seconds of a video preview; `None` is -1.
    MaxVideoPreview(Option<u32>),
    /// A `key: value` that is not known; kept as it was.
    Unknown(Box<str>, Box<str>),
    /// Not to be shown after this moment.
    UnavailableAfter(Timestamp),
}

/// The sizes of `max-image-preview`, the most restrictive first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum ImagePreview {
    /// No image.
    None,
    /// A small one.
    Standard,
    /// Up to the width of the window.
    Large,
}

/// The known directives without a value, in the order of emission. `all`, `none`, `index` and
/// `follow` are words of the language that stand for others and are not among them.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum Flag {
    /// Not to be found.
    NoIndex,
    /// Its links are not to be followed.
    NoFollow,
    /// No copy is to be shown; at Bing and Amazon also: not to train models with.
    NoArchive,
    /// Bing: in answers of its assistant only by title, address and snippet.
    NoCache,
    /// No extract is to be shown.
    NoSnippet,
    /// To be found as a part of pages that embed it, its noindex notwithstanding.
    IndexIfEmbedded,
    /// No translation is to be offered.
    NoTranslate,
    /// Its images are not to be found.
    NoImageIndex,
    /// No search box among its results.
    NoSitelinksSearchbox,
    /// No description from the Open Directory, which is no more.
    NoOdp,
    /// No description from Yahoo's directory, which is no more.
    NoYdir,
    /// No preview is to be shown.
    NoPreview,
    /// Not to train models with.
    NoAi,
    /// Its images are not to train models with.
    NoImageAi,
    /// Not to train models with, in another spelling.
    NoMl,
}

impl Flag {
    /// All flags.
    pub(crate) const ALL: &[Flag] = Flag::VARIANTS;

    /// As it is written.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The flag of a name, without regard to case.
    pub(crate) fn named(name: &str) -> Option<Flag> {
        name.parse().ok()
    }
}

/// Keys that take a value; they are never the name of a bot.
pub(super) const KEYS: [&str; 4] = [
    "max-snippet",
    "max-image-preview",
    "max-video-preview",
    "unavailable_after",
];

/// Pairs of which the second softens the first: a page with noindex is found where it is embedded,
/// and Bing obeys nocache alone where it is told noarchive, too (blogs.bing.com, September 2023).
/// Two sources that say one of each have not agreed on that.
pub(super) const EMBEDDED: (Flag, Flag) = (Flag::NoIndex, Flag::IndexIfEmbedded);
pub(super) const CACHED: (Flag, Flag) = (Flag::NoArchive, Flag::NoCache);
const SOFTENED: [(Flag, Flag); 2] = [EMBEDDED, CACHED];

/// Words that say that nothing is restricted.
const NO_RESTRICTION: [&str; 4] = ["all", "index", "follow", "archive"];

/// The error for a text of a policy that is not a directive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct DirectiveError {
    /// What is wrong, for a person.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

/// Whether a word is a directive or the key of one, and therefore no name of a crawler.
pub fn is_directive_name(word: &str) -> bool {
    Directive::word(word).is_some() || is_key(word)
}

/// Whether a word is a key of [`KEYS`].
pub(super) fn is_key(word: &str) -> bool {
    KEYS.iter().any(|key| key.eq_ignore_ascii_case(word))
}

impl Directive {
    /// The directives of a word without a value, without regard to case: `none` is noindex and
    /// nofollow; `all`, `index`, `follow` and `archive` are all `Directive::All`. `None` when the
    /// word is not known.
    pub(super) fn word(word: &str) -> Option<Vec<Directive>> {
        let word = word.to_ascii_lowercase();
        if word == "none" {
            return Some(vec![
                Directive::Flag(Flag::NoIndex),
                Directive::Flag(Flag::NoFollow),
            ]);
        }
        if NO_RESTRICTION.contains(&word.as_str()) {
            return Some(vec![Directive::All]);
        }
        Flag::named(&word).map(|flag| vec![Directive::Flag(flag)])
    }

    /// A key of [`KEYS`] with its value. `None` for another key, and for a value that the key does
    /// not take.
    pub(super) fn valued(key: &str, value: &str) -> Option<Directive> {
        let value = value.trim_matches([' ', '\t']);
        match key.to_ascii_lowercase().as_str() {
            "max-snippet" => limit(value).map(Directive::MaxSnippet),
            "max-video-preview" => limit(value).map(Directive::MaxVideoPreview),
            "max-image-preview" => value.parse().ok().map(Directive::MaxImagePreview),
            "unavailable_after" => super::date::moment(value).map(Directive::UnavailableAfter),
            _ => None,
        }
    }

    /// Its name: the word, or the key of a value.
    pub fn name(&self) -> &str {
        match self {
            Directive::All => "all",
            Directive::Flag(flag) => flag.name(),
            Directive::Custom(word) => word,
            Directive::MaxSnippet(_) => "max-snippet",
            Directive::MaxImagePreview(_) => "max-image-preview",
            Directive::MaxVideoPreview(_) => "max-video-preview",
            Directive::UnavailableAfter(_) => "unavailable_after",
            Directive::Unknown(key, text) => {
                if key.is_empty() {
                    text
                } else {
                    key
                }
            }
        }
    }

    /// Whether it is a date that could not be read. It has to stand last: a recipient would take
    /// what follows for a piece of the date.
    fn is_unread_date(&self) -> bool {
        matches!(self, Directive::Unknown(key, _) if &**key == "unavailable_after")
    }
}

impl fmt::Display for Directive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Directive::MaxSnippet(None) | Directive::MaxVideoPreview(None) => f.write_str(": -1"),
            Directive::MaxSnippet(Some(limit)) | Directive::MaxVideoPreview(Some(limit)) => {
                write!(f, ": {limit}")
            }
            Directive::MaxImagePreview(size) => write!(f, ": {}", <&str>::from(size)),
            Directive::UnavailableAfter(moment) => write!(f, ": {moment}"),
            Directive::Unknown(key, value) if !key.is_empty() => write!(f, ": {value}"),
            Directive::All | Directive::Flag(_) | Directive::Custom(_) | Directive::Unknown(..) => {
                Ok(())
            }
        }
    }
}

/// The limit that a number states; the inner `None` is `-1`, no limit. `None` for other text.
fn limit(value: &str) -> Option<Option<u32>> {
    if value == "-1" {
        Some(None)
    } else {
        value.parse().ok().map(Some)
    }
}

/// A set of directives; of one kind the most restrictive value is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    members: Vec<Directive>,
}

impl Directives {
    /// Reads a policy's `noindex, noarchive` or one directive with its value, `max-snippet: 50`,
    /// strictly: a bad value is an error, and so is an empty part or a word that is nearly a known
    /// one. Any other word is kept as a custom directive.
    ///
    /// # Errors
    /// Says which part is wrong and what to write instead.
    pub fn parse(text: &str) -> Result<Directives, DirectiveError> {
        let mut directives = Directives::default();
        let parts: Vec<&str> = text.split(',').collect();
        let mut index = 0;
        while index < parts.len() {
            let part = parts[index].trim();
            index += 1;
            let Some((key, value)) = part.split_once(':') else {
                match Directive::word(part) {
                    Some(known) => known
                        .into_iter()
                        .for_each(|directive| directives.insert(directive)),
                    None => directives.insert(custom(part)?),
                }
                continue;
            };
            let key = key.trim();
            if !is_key(key) {
                return Err(unknown_key(key));
            }
            if key.eq_ignore_ascii_case("unavailable_after")
                && let Some((moment, used)) = super::member::dated(value, &parts[index..])
            {
                index += used;
                directives.insert(Directive::UnavailableAfter(moment));
                continue;
            }
            directives.insert(Directive::valued(key, value).ok_or_else(|| bad_value(key, value))?);
        }
        Ok(directives)
    }

    /// Adds a directive. Of two limits, sizes or dates the more restrictive stays (the smaller, the
    /// earlier); flags, custom and unknown directives are kept beside each other, each once. `all`
    /// stays only where it is alone.
    pub fn insert(&mut self, directive: Directive) {
        let place = self
            .members
            .iter_mut()
            .find(|member| match (&**member, &directive) {
                (Directive::Flag(one), Directive::Flag(other)) => one == other,
                (Directive::Custom(one), Directive::Custom(other)) => one == other,
                (Directive::Unknown(one, value), Directive::Unknown(other, theirs)) => {
                    one.eq_ignore_ascii_case(other) && value == theirs
                }
                (one, other) => {
                    std::mem::discriminant(one) == std::mem::discriminant(other)
                        && !matches!(
                            one,
                            Directive::Flag(_) | Directive::Custom(_) | Directive::Unknown(..)
                        )
                }
            });
        match place {
            None => {
                // `all` restricts nothing: it is said only when nothing else is.
                if directive == Directive::All && !self.members.is_empty() {
                    return;
                }
                self.members.retain(|member| *member != Directive::All);
                self.members.push(directive);
                let late = Directive::is_unread_date;
                self.members
                    .sort_by(|one, other| (late(one), one).cmp(&(late(other), other)));
            }
            Some(member) => match (&mut *member, directive) {
                (Directive::MaxSnippet(have), Directive::MaxSnippet(new))
                | (Directive::MaxVideoPreview(have), Directive::MaxVideoPreview(new)) => {
                    *have = match (*have, new) {
                        (Some(one), Some(other)) => Some(one.min(other)),
                        (one, other) => one.or(other),
                    };
                }
                (Directive::MaxImagePreview(have), Directive::MaxImagePreview(new)) => {
                    *have = (*have).min(new)
                }
                (Directive::UnavailableAfter(have), Directive::UnavailableAfter(new)) => {
                    *have = (*have).min(new)
                }
                _ => {}
            },
        }
    }

    /// Adds all of `other`.
    pub(crate) fn extend(&mut self, other: &Directives) {
        other
            .members
            .iter()
            .for_each(|directive| self.insert(directive.clone()));
    }

    /// The directives without indexifembedded and nocache, which soften noindex and noarchive.
    pub(crate) fn unsoftened(mut self) -> Directives {
        SOFTENED
            .into_iter()
            .for_each(|(_, softer)| self.remove(softer));
        self
    }

    /// The directives that `others` lacks.
    pub(crate) fn beyond(&self, others: &Directives) -> Directives {
        Directives {
            members: self
                .members
                .iter()
                .filter(|member| !others.members.contains(member))
                .cloned()
                .collect(),
        }
    }

    /// Whether it says the first of a pair without the second, which softens it.
    pub(super) fn is_unsoftened(&self, pair: (Flag, Flag)) -> bool {
        self.says(pair.0) && !self.says(pair.1)
    }

    /// Whether a flag is among them.
    pub fn says(&self, flag: Flag) -> bool {
        self.members.contains(&Directive::Flag(flag))
    }

    pub(super) fn remove(&mut self, flag: Flag) {
        self.members
            .retain(|member| *member != Directive::Flag(flag));
    }

    /// The members in the order they are written.
    pub fn iter(&self) -> impl Iterator<Item = &Directive> {
        self.members.iter()
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The moment from which they keep a page out of the index: the earliest of all for noindex,
    /// else that of `unavailable_after`.
    pub(crate) fn forbids_indexing_from(&self) -> Option<Timestamp> {
        if self.forbids_indexing() {
            return Some(Timestamp(i64::MIN));
        }
        self.members.iter().find_map(|member| match member {
            Directive::UnavailableAfter(moment) => Some(*moment),
            _ => None,
        })
    }

    /// Whether they keep a page out of the index at a moment. The moment of `unavailable_after`
    /// itself is still allowed.
    pub(crate) fn forbids_indexing_at(&self, now: Timestamp) -> bool {
        self.forbids_indexing()
            || self
                .forbids_indexing_from()
                .is_some_and(|moment| moment < now)
    }

    /// Whether they keep a page out of the index. `unavailable_after` depends on the time and is
    /// not counted.
    pub(crate) fn forbids_indexing(&self) -> bool {
        self.says(Flag::NoIndex)
    }
}

impl fmt::Display for Directives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, member) in self.members.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{member}")?;
        }
        Ok(())
    }
}

/// A word of a policy that is not a known directive, as a custom directive in lower case. An error
/// for an empty word, for one that is nearly a known word, and for what is no token.
fn custom(word: &str) -> Result<Directive, DirectiveError> {
    if word.is_empty() {
        let help = Some("write `noindex`, `nofollow`, `noarchive`, ...".into());
        return Err(DirectiveError {
            message: "a directive is missing here".into(),
            help,
        });
    }
    let flags = Flag::ALL.iter().map(|flag| flag.name());
    let known: Vec<&str> = flags.chain(KEYS).chain(["none", "all"]).collect();
    let lower = word.to_ascii_lowercase();
    let near = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&lower, name), *name))
        .min();
    let help = match near.filter(|(distance, name)| *distance <= 2 && distance * 2 < name.len()) {
        Some((_, name)) if KEYS.contains(&name) => {
            format!("did you mean `{name}`? It takes a value: `{name}: ...`")
        }
        Some((_, name)) => format!("did you mean `{name}`?"),
        None if super::member::is_token(word) => return Ok(Directive::Custom(lower.into())),
        None => format!("the directives are: {}", known.join(", ")),
    };
    Err(DirectiveError {
        message: format!("`{word}` is not a directive of X-Robots-Tag"),
        help: Some(help),
    })
}

/// The error for a key that takes no value: it is misspelt, or the name of a crawler, which a
/// policy writes under `tags`.
fn unknown_key(key: &str) -> DirectiveError {
    let near = KEYS
        .iter()
        .map(|name| {
            (
                strsim::damerau_levenshtein(&key.to_ascii_lowercase(), name),
                *name,
            )
        })
        .min();
    let help = match near {
        Some((distance, name)) if distance <= 3 => format!("did you mean `{name}`?"),
        _ => format!(
            "to say it to one crawler, write `tags: {{ {}: [...] }}`",
            key.to_ascii_lowercase()
        ),
    };
    DirectiveError {
        message: format!("`{key}:` is not a directive that takes a value"),
        help: Some(help),
    }
}

/// The error for a value that a key does not take.
fn bad_value(key: &str, value: &str) -> DirectiveError {
    let help = match key.to_ascii_lowercase().as_str() {
        "max-image-preview" => "it is `none`, `standard` or `large`",
        "unavailable_after" => {
            "write a date that can be one moment only, as in ISO 8601 (`2026-12-31T23:59:59Z`, `2026-12-31`, `20261231`, \
             `2026-365`, `2026-W53-4`), RFC 822 or RFC 850"
        }
        _ => "it is a whole number, or -1 for no limit",
    };
    DirectiveError {
        message: format!("`{}` is not a value of `{key}`", value.trim()),
        help: Some(help.into()),
    }
}
