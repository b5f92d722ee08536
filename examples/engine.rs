//! The engine by itself: a policy in, decisions out. No socket, no clock, no file.
//!
//! ```sh
//! cargo run --no-default-features --example engine
//! ```

use crawlgate::{Engine, PolicyError, Request};

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

fn main() -> Result<(), PolicyError> {
    let loaded = Engine::builder().name("shop.yaml").load(POLICY)?;
    for warning in &loaded.warnings.items {
        eprintln!("{}", warning.render(&loaded.source, false));
    }
    let engine = loaded.engine;
    print!("{}", String::from_utf8_lossy(engine.robots_txt()));
    for (user_agent, target) in [
        ("GPTBot/1.2", "/"),
        ("Mozilla/5.0 (compatible; bingbot/2.0)", "/cart/7"),
        ("curl/8.5", "/a.pdf"),
    ] {
        let decided = engine.decide(Request::get("shop.example", target).user_agent(user_agent));
        let verdict = decided.verdict.name();
        let action = decided.action.kind.name();
        let tags = decided
            .x_robots_tag(200, Some("application/pdf"))
            .join(" | ");
        println!("{user_agent} {target}: {verdict}, {action}; as a PDF: {tags}");
    }
    Ok(())
}
