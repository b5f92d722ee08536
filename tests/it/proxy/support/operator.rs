//! What an operator does to a running crawlgate: commands, edits, a look at the metrics.

use super::{Gate, Response, eventually};
use std::fs;
use std::process::{Command, Output};

/// A person.
pub const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
/// A crawler that trains models.
pub const GPTBOT: &str = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)";
/// A search engine's crawler.
pub const BINGBOT: &str = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)";
/// The host that tests ask for where it does not matter.
pub const HOST: &str = "site.test";

impl Gate {
    /// A page as a person gets it.
    pub fn fetch(&self, target: &str) -> Response {
        self.fetch_as(BROWSER, target)
    }

    /// A page as a user agent gets it.
    pub fn fetch_as(&self, user_agent: &str, target: &str) -> Response {
        self.get(HOST, target, &format!("User-Agent: {user_agent}\r\n"))
    }

    /// Puts a policy in the place of the former one, whole: as a deployment does it.
    pub fn write_policy(&self, name: &str, text: &str) {
        let new = self.path("new-policy");
        fs::write(&new, text).expect("a policy file");
        fs::rename(new, self.setup.policies().join(format!("{name}.yaml")))
            .expect("a policy file in its place");
    }

    /// Runs `crawlgate` with these arguments and this instance's control socket.
    pub fn command(&self, arguments: &[&str]) -> Output {
        run(&[
            arguments,
            &["--control", &self.control().display().to_string()],
        ]
        .concat())
    }

    /// The metrics, as Prometheus reads them.
    pub fn metrics(&self) -> String {
        self.admin_page("/metrics")
    }

    /// What the admin listener shows.
    pub fn admin_page(&self, target: &str) -> String {
        let mut connection = super::Connection::open(self.admin);
        connection.send(&format!(
            "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        ));
        connection.response("GET").text().to_owned()
    }

    /// Waits until the series with these labels, and perhaps more of them, have this sum: requests
    /// are counted when they end, just after their answer.
    pub fn wait_for_metric(&self, series: &str, value: f64) {
        eventually(&format!("{series} {value}"), || {
            (sum_of(&self.metrics(), series) == Some(value)).then_some(())
        });
    }
}

/// The sum of the series of a name that have these labels, and perhaps more of them.
pub fn sum_of(metrics: &str, series: &str) -> Option<f64> {
    let parts = |line: &str| -> (String, Vec<String>) {
        let (name, labels) = line
            .trim_end()
            .trim_end_matches('}')
            .split_once('{')
            .unwrap_or((line.trim_end(), ""));
        (
            name.to_owned(),
            labels
                .split("\",")
                .map(|label| label.trim_end_matches('"').to_owned())
                .collect(),
        )
    };
    let (name, labels) = parts(series);
    let found = metrics
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (line, count) = line.rsplit_once(' ')?;
            let (other, theirs) = parts(line);
            let is_meant = other == name
                && labels
                    .iter()
                    .all(|label| label.is_empty() || theirs.contains(label));
            is_meant.then(|| count.parse::<f64>().ok())?
        });
    found.fold(None, |sum, count| Some(sum.unwrap_or(0.0) + count))
}

/// Runs `crawlgate` with these arguments.
pub fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crawlgate"))
        .args(arguments)
        .output()
        .expect("the crawlgate binary")
}
