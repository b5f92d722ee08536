//! Adds a crawler to the registry, and shows which user agents are recognised as it.
//! `EngineBuilder::registry` gives an engine such a registry. The registry must live until the
//! program ends: use `Box::leak` or a `LazyLock`. Without code, a policy can describe the crawler
//! under `crawlers`.
//!
//! ```sh
//! cargo run --no-default-features --example own_crawler
//! ```

use crawlgate::crawlers::{Claim, Registry};
use crawlgate::yaml::SourceFile;

/// The fields are those of `src/crawlers/registry.yaml`, which explains them. A record with the id
/// of a known crawler replaces that crawler's record.
const RECORDS: &str = "\
- id: intranetbot
  name: IntranetBot
  operator: Us
  purpose: search
  tokens: [IntranetBot]
  marks: [IntranetBot]
  must_not_match: [NotTheIntranetBot]
  ua: \"IntranetBot/3.1 (+https://intranet.example/bot)\"
  binds: star
  crawl_delay: \"yes\"
  source: our own, 2026-11
";

fn main() {
    let source = SourceFile {
        name: "our-crawlers.yaml".into(),
        text: RECORDS.into(),
    };
    let registry = match Registry::builtin().with_records(&source) {
        Ok(registry) => registry,
        Err(findings) => {
            findings
                .items
                .iter()
                .for_each(|finding| eprintln!("{}", finding.render(&source, false)));
            std::process::exit(1);
        }
    };
    for user_agent in [
        "IntranetBot/3.1",
        "NotTheIntranetBot/1.0",
        "GPTBot/1.2",
        "Mozilla/5.0 (X11; rv:145.0) Firefox/145.0",
    ] {
        let who = match registry.identify(user_agent.as_bytes()) {
            Claim::Known(index) => registry.get(index).id.as_str(),
            Claim::UnknownBot | Claim::PolicyToken(_) => "an unknown bot",
            Claim::Tool => "an unknown tool",
            Claim::Visitor => "a visitor",
        };
        println!("{user_agent}: {who}");
    }
}
