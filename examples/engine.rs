//! The engine by itself: a policy in, decisions out. No socket, no clock, no file.
//!
//! ```sh
//! cargo run --no-default-features --example engine
//! ```

use crawlgate::crawlers::Registry;
use crawlgate::policy::{SiteEntry, Snapshot};
use crawlgate::time::Timestamp;
use crawlgate::verdict::{CachedVersions, Facts, Identity, Scratch, decide, load};
use crawlgate::yaml::Source;

const POLICY: &str = "\
hosts: [shop.example]
purposes: { training: disallow }
robots:
  origin: replace
  groups:
    - { agents: \"*\", disallow: /cart/ }
indexing:
  - { types: application/pdf, tag: noindex }
enforcement: { mode: enforce }
";

fn main() {
    let registry = Registry::builtin();
    let source = Source { name: "shop.yaml".into(), text: POLICY.into() };
    let (site, findings) = load("shop", &source, registry);
    for finding in &findings.items {
        eprintln!("{}", finding.render(&source, false));
    }
    let Some(site) = site else { std::process::exit(1) };
    print!("{}", String::from_utf8_lossy(&site.robots_txt.body));

    let now = Timestamp(1_765_000_000);
    let snapshot = Snapshot::new(vec![SiteEntry::new(site, now)], 1);
    // Kept between requests, so that judging allocates nothing.
    let mut scratch = Scratch::default();
    for (user_agent, target) in
        [("GPTBot/1.2", "/"), ("Mozilla/5.0 (compatible; bingbot/2.0)", "/cart/7"), ("curl/8.5", "/a.pdf")]
    {
        let facts = Facts {
            host: b"shop.example",
            target: target.as_bytes(),
            method: b"GET",
            user_agent: user_agent.as_bytes(),
            client: None,
            identity: Identity::Unverified,
            now,
        };
        let decision =
            decide(&snapshot, registry, &facts, &CachedVersions::default(), &mut scratch).expect("a site has the host");
        let plan = &snapshot.sites()[0].site.tags;
        let tags = plan.tags(&decision.path_rules, 200, Some(b"application/pdf"));
        let lines = tags.map(|tags| tags.lines.join(" | ")).unwrap_or_default();
        println!("{user_agent} {target}: {}, {}; as a PDF: {lines}", decision.verdict.name(), decision.action.name());
    }
}
