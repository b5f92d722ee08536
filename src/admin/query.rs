//! [`Query`]: the parameters of a request to the read API or the dashboard. [`QueryError`]: the
//! mistakes in them. An unknown parameter or value is refused, because the answer to another
//! question would mislead.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

/// Parameters by name, each once.
#[derive(Debug)]
pub struct Query<'q>(Vec<(Cow<'q, str>, Cow<'q, str>)>);

/// A mistake in a query.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Mistake {
    #[error("unknown parameter `{}`: this endpoint takes {takes}", shown(.name))]
    UnknownParameter { name: String, takes: String },
    #[error("`{0}` has no value")]
    NoValue(String),
    #[error("`{0}` is given twice")]
    GivenTwice(String),
    #[error("`{name}` is `{}`; expected a number from {} to {}", shown(.value), .bounds.start(), .bounds.end())]
    OutOfBounds {
        name: &'static str,
        value: String,
        bounds: RangeInclusive<usize>,
    },
    #[error("`{name}` is `{}`; expected one of {expected}", shown(.value))]
    UnknownValue {
        name: &'static str,
        value: String,
        expected: String,
    },
    #[error("`{name}` is `{}`, which is not a known {name}{}", shown(.value), hint(.meant.as_deref()))]
    UnknownName {
        name: &'static str,
        value: String,
        meant: Option<String>,
    },
}

/// All mistakes in a query, one in each line.
#[derive(Debug, thiserror::Error)]
pub struct QueryError(pub Vec<Mistake>);

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|mistake| writeln!(f, "{mistake}"))
    }
}

impl From<Mistake> for QueryError {
    fn from(mistake: Mistake) -> QueryError {
        QueryError(vec![mistake])
    }
}

impl QueryError {
    /// An error if there are mistakes.
    ///
    /// # Errors
    /// There is a mistake.
    pub fn unless_none(mistakes: Vec<Mistake>) -> Result<(), QueryError> {
        if mistakes.is_empty() {
            Ok(())
        } else {
            Err(QueryError(mistakes))
        }
    }
}

impl<'q> Query<'q> {
    /// Reads the query of a request, which may have the parameters in `known`. A parameter that is
    /// unknown, has no value or is given twice is a mistake.
    ///
    /// # Errors
    /// All mistakes in the query.
    pub fn read(query: &'q str, known: &[&str]) -> Result<Query<'q>, QueryError> {
        let mut read = Query(Vec::new());
        let mut mistakes = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if !known.contains(&&*name) {
                let takes = if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                };
                mistakes.push(Mistake::UnknownParameter {
                    name: name.into_owned(),
                    takes,
                });
            } else if value.is_empty() {
                mistakes.push(Mistake::NoValue(name.into_owned()));
            } else if read.get(&name).is_some() {
                mistakes.push(Mistake::GivenTwice(name.into_owned()));
            } else {
                read.0.push((name, value));
            }
        }
        QueryError::unless_none(mistakes).map(|()| read)
    }

    /// The value of a parameter; `None` if the query does not have it.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| &**value)
    }

    /// Whether the query selects this value: it does not have the parameter, or has it with this
    /// value.
    pub fn selects(&self, name: &str, value: &str) -> bool {
        self.get(name).is_none_or(|wanted| wanted == value)
    }

    /// Which of these a parameter names; `None` if the query does not have it.
    ///
    /// # Errors
    /// The value names none of them.
    pub fn one_of<T: fmt::Display>(
        &self,
        name: &'static str,
        expected: impl IntoIterator<Item = T>,
    ) -> Result<Option<T>, QueryError> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let mut names = Vec::new();
        for known in expected {
            let known_name = known.to_string();
            if known_name == value {
                return Ok(Some(known));
            }
            names.push(known_name);
        }
        Err(Mistake::UnknownValue {
            name,
            value: value.to_owned(),
            expected: names.join(", "),
        }
        .into())
    }

    /// The number that a parameter gives; `None` if the query does not have it.
    ///
    /// # Errors
    /// The value is no number within these bounds.
    pub fn number(
        &self,
        name: &'static str,
        bounds: RangeInclusive<usize>,
    ) -> Result<Option<usize>, QueryError> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match value.parse().ok().filter(|number| bounds.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(Mistake::OutOfBounds {
                name,
                value: value.to_owned(),
                bounds,
            }
            .into()),
        }
    }
}

/// At most 40 characters of what a client sent, without control characters, which a terminal would
/// obey.
fn shown(text: &str) -> String {
    crate::printable::printable(text.chars().take(40).collect::<String>().as_bytes())
}

fn hint(meant: Option<&str>) -> String {
    meant
        .map(|meant| format!("; did you mean `{meant}`?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_query_gives_its_names_and_values() {
        let query = Query::read(
            "&site=my+shop%21&kind=%c3%a4&limit=100%&",
            &["site", "kind", "limit"],
        )
        .expect("read");
        assert_eq!(
            (query.get("site"), query.get("kind")),
            (Some("my shop!"), Some("ä"))
        );
        assert_eq!(
            (query.get("limit"), query.get("crawler")),
            (Some("100%"), None)
        );
        assert!(
            query.selects("site", "my shop!")
                && !query.selects("site", "shop")
                && query.selects("crawler", "any")
        );
        assert!(Query::read("", &[]).is_ok());
    }

    #[test]
    fn a_query_with_mistakes_names_all_of_them() {
        let wrong = Query::read(
            "sites=a&limit&site=a&site=b\u{1b}&%00\u{61c}=x",
            &["site", "limit"],
        )
        .expect_err("mistakes");
        let unknown = |name: &str| Mistake::UnknownParameter {
            name: name.into(),
            takes: "site, limit".into(),
        };
        let expected = [
            unknown("sites"),
            Mistake::NoValue("limit".into()),
            Mistake::GivenTwice("site".into()),
            unknown("\0\u{61c}"),
        ];
        assert_eq!(wrong.0, expected);
        let text = wrong.to_string();
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(!text.contains(['\u{1b}', '\0', '\u{61c}']), "{text:?}");
    }

    #[test]
    fn a_number_outside_of_its_bounds_is_refused() {
        for limit in ["-1", "abc", "", "1e3", "501", "99999999999999999999999"] {
            let text = format!("limit={limit}");
            let refused =
                Query::read(&text, &["limit"]).and_then(|query| query.number("limit", 1..=500));
            assert!(refused.is_err(), "{limit}");
        }
    }
}
