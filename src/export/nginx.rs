//! [`parts()`] makes the configuration by which nginx itself enforces a policy, without crawlgate:
//! `map`s for the `http` block (`templates/nginx-http.conf`), and conditions and locations for the
//! `server` block (`templates/nginx-server.conf`).

use super::regex::{media, path_regex};
use super::rules::Rules;
use super::{CHALLENGE, text};
use askama::Template;

/// So many variables fit into nginx's table beside those of its own modules. For more, the table
/// has to be larger.
const MANY_VARIABLES: usize = 12;

#[derive(Template)]
#[template(path = "nginx-http.conf")]
struct HttpPart<'r> {
    rules: &'r Rules,
    /// Whether a value has a dollar sign, which by itself would begin the name of a variable.
    has_dollar: bool,
    /// The size of the table of variables, where nginx would warn that its own is too small.
    table_size: Option<usize>,
}

#[derive(Template)]
#[template(path = "nginx-server.conf")]
struct ServerPart<'r> {
    rules: &'r Rules,
    directory: &'r str,
}

/// The parts of a configuration: for `http`, and for `server`.
pub fn parts(rules: &Rules, directory: &str) -> (String, String) {
    let answers = rules.answers.iter().chain(&rules.pause);
    let values = rules.signals.iter().flat_map(|signal| &signal.values);
    let mut literals = answers.map(|answer| &answer.body).chain(values);
    let mut http = HttpPart {
        rules,
        has_dollar: literals.any(|literal| literal.contains('$')),
        table_size: None,
    };
    let variables = text(&http).matches("\nmap ").count();
    if variables > MANY_VARIABLES {
        http.table_size = Some((1024 + 64 * variables).next_power_of_two());
    }
    (text(&http), text(&ServerPart { rules, directory }))
}

/// The text of a string without variables.
fn literal(text: &str) -> String {
    escaped(text).replace('$', "${crawlgate_dollar}")
}

/// The text of a string.
fn escaped(text: &str) -> String {
    super::escaped(text).replace('\n', "\\n")
}
