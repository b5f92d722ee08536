//! `Engine::decide` allocates nothing once its buffers have grown. The allocator that counts is
//! this test's own.

use crawlgate::{Engine, Kind, Request};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // During the end of a thread the cell is gone, and nobody counts any more.
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: every call is handed to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are the ones that are asked for here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const POLICY: &str = r#"
hosts: [shop.example, "*.shop.example"]
purposes: { training: disallow }
robots:
  origin: replace
  groups:
    - { agents: ["*"], disallow: [/private/, "/*?session=", "/a*b*c$"], allow: [/private/help, /private/d/index.html] }
    - { agents: [HouseBot, Firefox, Linux], disallow: [/garden/] }
  license: [{ url: https://shop.example/p.xml, paths: /p*.jpg }, https://shop.example/license.xml]
  content_usage: [{ train-ai: no }, { paths: [/open/, "/*.pdf$"], train-ai: yes }]
tdm: [{ paths: "/*/press", reservation: no }, { reservation: yes }]
indexing:
  - { paths: [/], tag: noarchive }
  - { paths: ["/*"], tag: nosnippet }
  - { path_regex: "^/priv", tag: noindex }
enforcement: { mode: enforce, traps: [/trap/], unlicensed: 401 }
"#;

#[test]
fn judging_allocates_nothing() {
    let engine = Engine::load(POLICY).expect("a policy").engine;
    let garbage = "x;(bot http://".repeat(600);
    let long = format!("/private/{}", "a%C3%A4/".repeat(500));
    let cases: [(&str, &str, &str, Kind); 16] = [
        ("shop.example", "bingbot", "/trap/x", Kind::Trapped),
        (
            "shop.example",
            "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
            "/",
            Kind::NotACrawler,
        ),
        (
            "WWW.Shop.Example:8080",
            "GPTBot/1.2",
            "/private/x",
            Kind::Unproven,
        ),
        (
            "shop.example",
            "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
            "/x/../private/y",
            Kind::Ambiguous,
        ),
        (
            "shop.example",
            "Mozilla/5.0 (compatible; bingbot/2.0)",
            "/%70rivate/%c3%a4",
            Kind::Unproven,
        ),
        ("shop.example", "HouseBot/1.0", "/garden/", Kind::Unproven),
        ("shop.example", &garbage, "/", Kind::Allowed),
        // Names of people's browsers, which the string may call itself.
        (
            "shop.example",
            "Mozilla/5.0 (bot; +http://x.example) Linux/5 Firefox/1.0",
            "/garden/",
            Kind::Allowed,
        ),
        ("shop.example", "bingbot", &long, Kind::Unproven),
        (
            "shop.example",
            "bingbot",
            "/x%2F..%2fprivate%2fy",
            Kind::Ambiguous,
        ),
        (
            "shop.example",
            "bingbot",
            "/x;a/..;b/private;c/y",
            Kind::Ambiguous,
        ),
        (
            "shop.example",
            "bingbot",
            "/private/help/..;/x;y",
            Kind::Ambiguous,
        ),
        (
            "shop.example",
            "Googlebot/2.1",
            "/private/d/",
            Kind::Allowed,
        ),
        (
            "shop.example",
            "Googlebot/2.1",
            "/%70rivate/x",
            Kind::Ambiguous,
        ),
        (
            "shop.example",
            "Googlebot/2.1",
            "/private/x",
            Kind::Unproven,
        ),
        ("elsewhere.example", "bingbot", "/", Kind::NotACrawler),
    ];
    for round in 0..2 {
        for (host, user_agent, target, kind) in cases {
            let request = Request::get(host, target).user_agent(user_agent);
            // A trap springs where nobody can have a copy without it.
            let request = if kind == Kind::Trapped {
                request.observed()
            } else {
                request
            };
            let before = ALLOCATIONS.get();
            let decided = engine.decide(request);
            let allocated = ALLOCATIONS.get() - before;
            let shown = &user_agent[..user_agent.len().min(40)];
            assert_eq!(decided.kind, kind, "{shown} asks for {target}");
            // The first round makes the buffers grow, and regular expressions make theirs.
            assert!(
                round == 0 || allocated == 0,
                "{allocated} allocations for {shown}, {target}"
            );
        }
    }
}
