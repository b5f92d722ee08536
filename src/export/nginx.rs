//! [`http_and_server_config`] writes the configuration with which nginx enforces a policy without
//! crawlgate: `map`s for the `http` block (`templates/nginx-http.conf`), and conditions and
//! locations for the `server` block (`templates/nginx-server.conf`).

use super::CHALLENGE_PATH;
use super::regex::{media_type_regex, path_regex};
use super::rules::ExportedPolicy;

use askama::Template;

/// How many variables fit into nginx's table beside those of its own modules.
const MAX_DEFAULT_VARIABLES: usize = 12;

#[derive(Template)]
#[template(path = "nginx-http.conf")]
struct HttpConfig<'r> {
    rules: &'r ExportedPolicy,
    /// Whether a value has a dollar sign, which needs escaping.
    has_dollar: bool,
    /// The size of the table of variables, if the default is too small.
    table_size: Option<usize>,
}

#[derive(Template)]
#[template(path = "nginx-server.conf")]
struct ServerConfig<'r> {
    rules: &'r ExportedPolicy,
    directory: &'r str,
}

/// The parts for the `http` and the `server` block.
pub fn http_and_server_config(rules: &ExportedPolicy, directory: &str) -> (String, String) {
    let answers = rules.answers.iter().chain(&rules.pause);
    let values = rules.signals.iter().flat_map(|signal| &signal.values);
    let mut literals = answers.map(|answer| &answer.body).chain(values);
    let mut http = HttpConfig {
        rules,
        has_dollar: literals.any(|literal| literal.contains('$')),
        table_size: None,
    };
    let variables = http.to_string().matches("\nmap ").count();
    if variables > MAX_DEFAULT_VARIABLES {
        http.table_size = Some((1024 + 64 * variables).next_power_of_two());
    }
    let server = ServerConfig { rules, directory };
    (http.to_string(), server.to_string())
}

/// Escapes a string, also variables in it.
fn string_literal(text: &str) -> String {
    escape_string(text).replace('$', "${crawlgate_dollar}")
}

/// Escapes a string, except variables.
fn escape_string(text: &str) -> String {
    super::escape_quoted(text).replace('\n', "\\n")
}
