//! [`is_visit`] tells whether a visitor's request counts as a visit: the response was a page or a
//! file, and not a part of a page such as an image or a script.

use crate::heads::{likely_content_type, path_of};

/// Whether a request of a visitor counts as a visit, by its method, the status of its response and
/// its target: a GET that got a page or a file (2xx or 304). Images, scripts, styles and fonts do
/// not count, because pages load them by themselves, and robots.txt is no page. The extension of
/// the path tells what it is.
pub fn is_visit(method: &[u8], status: u16, target: &[u8]) -> bool {
    let is_page = !is_part_of_page(target) && path_of(target) != b"/robots.txt";
    method == b"GET" && matches!(status, 200..=299 | 304) && is_page
}

/// Whether the extension of the path is that of an image, a script, a style or a font.
pub fn is_part_of_page(target: &[u8]) -> bool {
    let media = likely_content_type(target);
    let mut kinds = ["image/", "font/"].iter();
    kinds.any(|kind| media.starts_with(kind)) || matches!(media, "text/css" | "text/javascript")
}

#[cfg(test)]
mod tests {
    use super::is_visit;
    use crate::crawlers::Registry;
    use crate::referrals::ReferringServices;

    #[test]
    fn visit_is_a_page_that_was_sent() {
        for (method, status, target, expected) in [
            ("GET", 200, "/", true),
            ("GET", 206, "/report.pdf", true),
            ("GET", 304, "/news?a=b.css", true),
            ("GET", 200, "/robots.txt?a", false),
            ("GET", 301, "/", false),
            ("GET", 404, "/", false),
            ("GET", 0, "/", false),
            ("HEAD", 200, "/", false),
            ("POST", 200, "/", false),
            ("GET", 200, "/logo.PNG?v=2", false),
            ("GET", 200, "/favicon.ico", false),
            ("GET", 200, "/a.css", false),
            ("GET", 200, "/a.mjs", false),
            ("GET", 200, "/a.woff2", false),
        ] {
            let visit = is_visit(method.as_bytes(), status, target.as_bytes());
            assert_eq!(visit, expected, "{method} {status} {target}");
        }
    }

    #[test]
    fn operators_of_services_are_those_of_crawlers() {
        let registry = Registry::builtin();
        for (service, crawler) in [
            ("chatgpt", "gptbot"),
            ("claude", "claudebot"),
            ("gemini", "googlebot"),
            ("copilot", "bingbot"),
            ("perplexity", "perplexitybot"),
            ("baidu", "baiduspider"),
            ("yandex", "yandexbot"),
            ("petal", "petalbot"),
            ("yep", "ahrefsbot"),
            ("mail-ru", "mail.ru_bot"),
        ] {
            let index = registry.find(crawler).expect(crawler);
            let service = ReferringServices::builtin().get(service).expect(service);
            assert_eq!(service.operator, registry.get(index).operator, "{crawler}");
        }
        let services = ReferringServices::builtin().all().iter();
        let with_crawlers = services.filter(|service| {
            let mut crawlers = registry.crawlers().iter();
            crawlers.any(|crawler| crawler.operator == service.operator)
        });
        assert!(with_crawlers.count() >= 35);
    }
}
