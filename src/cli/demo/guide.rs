//! The text that the command `demo` prints after the start: commands to try, with the ports that
//! the demo listens on. The template is `guide.txt`.

use crate::cli::shell_words::shell_quote;
use crate::server::BoundAddresses;
use askama::Template;
use std::path::Path;

/// The commands to paste, with the first URL of the demo. Without an admin listener there are no
/// metrics, status and access log.
#[derive(Template)]
#[template(path = "guide.txt")]
pub struct Guide<'a> {
    pub bound: &'a BoundAddresses,
    pub policies: &'a Path,
    pub control: &'a Path,
    pub access_log: &'a Path,
    pub program: String,
}

impl Guide<'_> {
    fn url(&self) -> String {
        self.bound.urls().next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    #[test]
    fn commands_have_the_address_of_the_demo() {
        let bound = BoundAddresses {
            listen: vec![(false, SocketAddr::from(([127, 0, 0, 1], 1)))],
            decisions: Vec::new(),
            admin: None,
        };
        let place = Path::new("/tmp/place");
        let guide = Guide {
            bound: &bound,
            policies: place,
            control: place,
            access_log: place,
            program: "crawlgate".into(),
        };
        let text = guide.to_string();
        for command in [
            "curl -i -A GPTBot http://127.0.0.1:1/",
            "--host 127.0.0.1:1 ",
        ] {
            assert!(text.contains(command), "{text}");
        }
    }
}
