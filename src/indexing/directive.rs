//! [`Directive`]: one directive of X-Robots-Tag, such as `noindex`. [`Directives`]: a set of
//! directives, which keeps only the most restrictive value of each kind.

use crate::time::Timestamp;
use Flag::*;
use std::fmt;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// A directive about a page's entry in an index. The variants stand in the order of
/// emission, but dates are emitted last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Directive {
    /// No restriction.
    All,
    /// A known directive without a value: `noindex`, `nofollow`, `noarchive`, `noai`, ...
    Flag(Flag),
    /// Any other word, in lower case. A site and a crawler may current agreed on it.
    Custom(Box<str>),
    /// Characters of a snippet; `None` is -1, without limit.
    MaxSnippet(Option<u32>),
    /// `none`, `standard` or `large`, in this order of restriction.
    MaxImagePreview(ImagePreview),
    /// Seconds of a video preview; `None` is -1.
    MaxVideoPreview(Option<u32>),
    /// Not to be shown after this moment.
    UnavailableAfter(Timestamp),
    /// An unknown `key: value`, kept as it was. The key is empty for other text.
    Unknown(Box<str>, Box<str>),
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
/// `follow` are abbreviations of others and not among them.
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

named!(Flag);

impl Flag {
    /// All flags.
    pub(crate) const ALL: &[Flag] = Flag::VARIANTS;
}

/// Keys that take a value. They are never the name of a bot.
pub(super) const VALUE_KEYS: [&str; 4] = [
    "max-snippet",
    "max-image-preview",
    "max-video-preview",
    "unavailable_after",
];

/// Pairs of which the second softens the first. A page with `noindex` is indexed where it is embedded
/// if `indexifembedded` is set.
pub(super) const INDEX_SOFTENER: (Flag, Flag) = (NoIndex, IndexIfEmbedded);
/// Bing ignores `noarchive` if `nocache` is set, too (blogs.bing.com, September 2023).
pub(super) const ARCHIVE_SOFTENER: (Flag, Flag) = (NoArchive, NoCache);
const SOFTENERS: [(Flag, Flag); 2] = [INDEX_SOFTENER, ARCHIVE_SOFTENER];

/// Words for "no restriction".
const UNRESTRICTED_WORDS: [&str; 4] = ["all", "index", "follow", "archive"];

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
    Directive::from_word(word).is_some() || is_value_key(word)
}

/// Whether a word is a key of [`VALUE_KEYS`].
pub(super) fn is_value_key(word: &str) -> bool {
    VALUE_KEYS.iter().any(|key| key.eq_ignore_ascii_case(word))
}

impl Directive {
    /// Parses a directive without a value, without regard to case. `none` is two directives; `index`,
    /// `follow` and `archive` are `Directive::All`. `None` for an unknown word.
    pub(super) fn from_word(word: &str) -> Option<Vec<Directive>> {
        let word = word.to_ascii_lowercase();
        if word == "none" {
            return Some(vec![Directive::Flag(NoIndex), Directive::Flag(NoFollow)]);
        }
        if UNRESTRICTED_WORDS.contains(&word.as_str()) {
            return Some(vec![Directive::All]);
        }
        let flag = word.parse().ok()?;
        Some(vec![Directive::Flag(flag)])
    }

    /// Parses a key of [`VALUE_KEYS`] with its value. `None` for another key or a wrong value.
    pub(super) fn from_key_value(key: &str, value: &str) -> Option<Directive> {
        let value = value.trim_matches([' ', '\t']);
        match key.to_ascii_lowercase().as_str() {
            "max-snippet" => parse_limit(value).map(Directive::MaxSnippet),
            "max-video-preview" => parse_limit(value).map(Directive::MaxVideoPreview),
            "max-image-preview" => value.parse().ok().map(Directive::MaxImagePreview),
            "unavailable_after" => super::date::parse_date(value).map(Directive::UnavailableAfter),
            _ => None,
        }
    }

    /// Its name: the word, or the key of a value.
    pub fn name(&self) -> &str {
        use Directive::*;

        match self {
            All => "all",
            Flag(flag) => flag.name(),
            Custom(word) => word,
            MaxSnippet(_) => "max-snippet",
            MaxImagePreview(_) => "max-image-preview",
            MaxVideoPreview(_) => "max-video-preview",
            UnavailableAfter(_) => "unavailable_after",
            Unknown(key, text) => {
                if key.is_empty() {
                    text
                } else {
                    key
                }
            }
        }
    }

    /// Takes the value of `other` if that is of the same kind and more restrictive. Returns whether
    /// they are of the same kind.
    fn restrict_by(&mut self, other: &Directive) -> bool {
        use Directive::*;

        match (&mut *self, other) {
            (MaxSnippet(current), MaxSnippet(new))
            | (MaxVideoPreview(current), MaxVideoPreview(new)) => {
                *current = [*current, *new].into_iter().flatten().min();
            }
            (MaxImagePreview(current), MaxImagePreview(new)) => {
                *current = (*current).min(*new);
            }
            (UnavailableAfter(current), UnavailableAfter(new)) => {
                *current = (*current).min(*new);
            }
            (Unknown(key, text), Unknown(other, new)) => {
                return key.eq_ignore_ascii_case(other) && text == new;
            }
            (one, other) => return one == other,
        }
        true
    }
}

impl fmt::Display for Directive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Directive::*;

        f.write_str(self.name())?;
        match self {
            MaxSnippet(None) | MaxVideoPreview(None) => f.write_str(": -1"),
            MaxSnippet(Some(limit)) | MaxVideoPreview(Some(limit)) => {
                write!(f, ": {limit}")
            }
            MaxImagePreview(size) => write!(f, ": {}", <&str>::from(size)),
            UnavailableAfter(moment) => write!(f, ": {moment}"),
            Unknown(key, value) if !key.is_empty() => write!(f, ": {value}"),
            All | Flag(_) | Custom(_) | Unknown(..) => Ok(()),
        }
    }
}

/// Parses a limit; the inner `None` is `-1`, no limit.
fn parse_limit(value: &str) -> Option<Option<u32>> {
    if value == "-1" {
        Some(None)
    } else {
        value.parse().ok().map(Some)
    }
}

/// A set of directives. Of each kind only the most restrictive value is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    members: Vec<Directive>,
}

impl Directives {
    /// Parses the directives of a policy strictly: `noindex, noarchive`, `max-snippet: 50`. A word
    /// that is not similar to a known one becomes a custom directive.
    ///
    /// # Errors
    /// A wrong value, an empty part, or a word that is nearly a known one.
    pub fn parse(text: &str) -> Result<Directives, DirectiveError> {
        let mut directives = Directives::default();
        let parts: Vec<&str> = text.split(',').collect();
        let mut index = 0;
        while index < parts.len() {
            let part = parts[index].trim();
            index += 1;
            let Some((key, value)) = part.split_once(':') else {
                match Directive::from_word(part) {
                    Some(known) => known
                        .into_iter()
                        .for_each(|directive| directives.insert(directive)),
                    None => directives.insert(parse_custom(part)?),
                }
                continue;
            };
            let key = key.trim();
            if !is_value_key(key) {
                return Err(unknown_key_error(key));
            }
            let mut directive = Directive::from_key_value(key, value);
            // A date may contain a comma.
            if directive.is_none()
                && let Some(rest) = parts.get(index)
            {
                directive = Directive::from_key_value(key, &format!("{value}, {}", rest.trim()));
                index += 1;
            }
            directives.insert(directive.ok_or_else(|| bad_value_error(key, value))?);
        }
        Ok(directives)
    }

    /// Adds a directive. Of two limits, sizes or dates the more restrictive stays (the smaller, the
    /// earlier); flags, custom and unknown directives are kept beside each other, each once. `all`
    /// stays only where it is alone.
    pub fn insert(&mut self, directive: Directive) {
        let mut members = self.members.iter_mut();
        if members.any(|member| member.restrict_by(&directive)) {
            return;
        }
        // `all` restricts nothing, so it stays only if it is alone.
        if directive == Directive::All && !self.members.is_empty() {
            return;
        }
        self.members.retain(|member| *member != Directive::All);
        self.members.push(directive);
        self.members.sort();
        // A recipient would take what follows an unreadable date for a part of the date.
        self.members
            .sort_by_key(|member| member.name() == "unavailable_after");
    }

    /// Adds all of `other`.
    pub(crate) fn extend(&mut self, other: &Directives) {
        other
            .members
            .iter()
            .for_each(|directive| self.insert(directive.clone()));
    }

    /// The directives without `indexifembedded` and `nocache`, which soften others.
    pub(crate) fn without_softeners(mut self) -> Directives {
        SOFTENERS
            .into_iter()
            .for_each(|(_, softer)| self.remove(softer));
        self
    }

    /// The directives that are not in `others`.
    pub(crate) fn difference(&self, others: &Directives) -> Directives {
        Directives {
            members: self
                .members
                .iter()
                .filter(|member| !others.members.contains(member))
                .cloned()
                .collect(),
        }
    }

    /// Whether it has the first of a pair without the second, which softens it.
    pub(super) fn lacks_softener(&self, pair: (Flag, Flag)) -> bool {
        self.contains(pair.0) && !self.contains(pair.1)
    }

    /// Whether a flag is among them.
    pub fn contains(&self, flag: Flag) -> bool {
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

    /// Whether there are no directives.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The time from which they forbid to index a page: the earliest possible for `noindex`, else
    /// that of `unavailable_after`.
    pub(crate) fn forbids_indexing_from(&self) -> Option<Timestamp> {
        if self.forbids_indexing() {
            return Some(Timestamp(i64::MIN));
        }
        self.members.iter().find_map(|member| match member {
            Directive::UnavailableAfter(moment) => Some(*moment),
            _ => None,
        })
    }

    /// Whether they forbid to index a page at `now`. The second of `unavailable_after` itself is
    /// still allowed.
    pub(crate) fn forbids_indexing_at(&self, now: Timestamp) -> bool {
        self.forbids_indexing()
            || self
                .forbids_indexing_from()
                .is_some_and(|moment| moment < now)
    }

    /// Whether they forbid to index a page at any time. `unavailable_after` does not count.
    pub(crate) fn forbids_indexing(&self) -> bool {
        self.contains(NoIndex)
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
/// for a word that is nearly a known one, and for what is no token.
fn parse_custom(word: &str) -> Result<Directive, DirectiveError> {
    let flags = Flag::ALL.iter().map(|flag| flag.name());
    let known: Vec<&str> = flags.chain(VALUE_KEYS).chain(["none", "all"]).collect();
    let lower = word.to_ascii_lowercase();
    let near = nearest_name(&lower, &known);
    let help = match near.filter(|(distance, name)| *distance <= 2 && distance * 2 < name.len()) {
        Some((_, name)) if VALUE_KEYS.contains(&name) => {
            format!("did you mean \"{name}\"? It takes a value: \"{name}: ...\"")
        }
        Some((_, name)) => format!("did you mean \"{name}\"?"),
        None if super::member::is_token(word) => return Ok(Directive::Custom(lower.into())),
        None => format!("the known directives are: {}", known.join(", ")),
    };
    Err(DirectiveError {
        message: format!("\"{word}\" is not a directive of X-Robots-Tag"),
        help: Some(help),
    })
}

/// The most similar of some names, after the number of letters in which it differs.
fn nearest_name<'n>(word: &str, names: &[&'n str]) -> Option<(usize, &'n str)> {
    let names = names.iter();
    names
        .map(|name| (strsim::damerau_levenshtein(word, name), *name))
        .min()
}

/// The error for an unknown key: a misspelt one, or the name of a crawler, which belongs under
/// `tags` in a policy.
fn unknown_key_error(key: &str) -> DirectiveError {
    let lower = key.to_ascii_lowercase();
    let help = match nearest_name(&lower, &VALUE_KEYS) {
        Some((distance, name)) if distance <= 3 => format!("did you mean \"{name}\"?"),
        _ => format!("for one crawler, write \"tags: {{ {lower}: [...] }}\""),
    };
    DirectiveError {
        message: format!("\"{key}:\" is not a directive with a value"),
        help: Some(help),
    }
}

/// The error for a value that a key does not take.
fn bad_value_error(key: &str, value: &str) -> DirectiveError {
    let help = match key.to_ascii_lowercase().as_str() {
        "max-image-preview" => "write \"none\", \"standard\" or \"large\"",
        "unavailable_after" => {
            "write a date with only one meaning: ISO 8601 (\"2026-12-31T23:59:59Z\", \
             \"2026-12-31\", \"20261231\"), RFC 822 or RFC 850"
        }
        _ => "write a whole number, or -1 for no limit",
    };
    DirectiveError {
        message: format!("\"{}\" is not a value of \"{key}\"", value.trim()),
        help: Some(help.into()),
    }
}
