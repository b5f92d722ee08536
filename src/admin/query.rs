//! [`QueryParameters`]: the URL query of a request to the admin listener's JSON API or dashboard.
//! Unknown parameters and values are errors. If crawlgate ignored them, the client would get the
//! answer to another question. [`QueryError`] lists all mistakes of a query at once.

use std::borrow::Cow;
use std::fmt;

use QueryMistake::*;

/// Parameters by name, each once.
#[derive(Debug)]
pub struct QueryParameters<'q>(Vec<(Cow<'q, str>, Cow<'q, str>)>);

/// A mistake in a query.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum QueryMistake {
    #[error("unknown parameter \"{}\": use {takes}", printable_excerpt(.name))]
    UnknownParameter { name: String, takes: String },
    #[error("\"{0}\" has no value")]
    NoValue(String),
    #[error("\"{0}\" is given twice")]
    GivenTwice(String),
    #[error("\"{name}\" is \"{}\"; use one of {expected}", printable_excerpt(.value))]
    UnknownValue {
        name: &'static str,
        value: String,
        expected: String,
    },
    #[error("\"{name}\" is \"{}\", which is not a known {name}", printable_excerpt(.value))]
    UnknownName { name: &'static str, value: String },
}

/// All mistakes in a query, one in each line.
#[derive(Debug, thiserror::Error)]
pub struct QueryError(pub Vec<QueryMistake>);

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|mistake| writeln!(f, "{mistake}"))
    }
}

impl From<QueryMistake> for QueryError {
    fn from(mistake: QueryMistake) -> QueryError {
        QueryError(vec![mistake])
    }
}

impl<'q> QueryParameters<'q> {
    /// Parses a query with the `known` parameters. A parameter that is unknown, has no value or
    /// appears twice is a mistake.
    ///
    /// # Errors
    /// All mistakes in the query.
    pub fn parse(query: &'q str, known: &[&str]) -> Result<QueryParameters<'q>, QueryError> {
        let mut read = QueryParameters(Vec::new());
        let mut mistakes = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if !known.contains(&&*name) {
                let takes = if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                };
                mistakes.push(UnknownParameter {
                    name: name.into_owned(),
                    takes,
                });
            } else if value.is_empty() {
                mistakes.push(NoValue(name.into_owned()));
            } else if read.get(&name).is_some() {
                mistakes.push(GivenTwice(name.into_owned()));
            } else {
                read.0.push((name, value));
            }
        }
        if mistakes.is_empty() {
            Ok(read)
        } else {
            Err(QueryError(mistakes))
        }
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| &**value)
    }

    /// Whether the parameter has this value or is missing.
    pub fn is_absent_or_equals(&self, name: &str, value: &str) -> bool {
        self.get(name).is_none_or(|wanted| wanted == value)
    }

    /// The one of `expected` that a parameter names; `None` without the parameter.
    ///
    /// # Errors
    /// The value names none of them.
    pub fn get_one_of<T: fmt::Display>(
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
        Err(UnknownValue {
            name,
            value: value.to_owned(),
            expected: names.join(", "),
        }
        .into())
    }
}

/// The beginning of a client's text, without control characters.
fn printable_excerpt(text: &str) -> String {
    crate::printable::printable(text.chars().take(40).collect::<String>().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_query_is_decoded() {
        let query = QueryParameters::parse(
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
            query.is_absent_or_equals("site", "my shop!")
                && !query.is_absent_or_equals("site", "shop")
                && query.is_absent_or_equals("crawler", "any")
        );
        assert!(QueryParameters::parse("", &[]).is_ok());
    }

    #[test]
    fn query_error_has_every_mistake() {
        let wrong = QueryParameters::parse(
            "sites=a&limit&site=a&site=b\u{1b}&%00\u{61c}=x",
            &["site", "limit"],
        )
        .expect_err("mistakes");
        let unknown = |name: &str| QueryMistake::UnknownParameter {
            name: name.into(),
            takes: "site, limit".into(),
        };
        let expected = [
            unknown("sites"),
            QueryMistake::NoValue("limit".into()),
            QueryMistake::GivenTwice("site".into()),
            unknown("\0\u{61c}"),
        ];
        assert_eq!(wrong.0, expected);
        let text = wrong.to_string();
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(!text.contains(['\u{1b}', '\0', '\u{61c}']), "{text:?}");
    }
}
