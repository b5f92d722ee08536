use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

fn registry() -> &'static Registry {
    Registry::builtin()
}

fn who(user_agent: &str) -> String {
    match registry().identify(user_agent.as_bytes()) {
        Claim::Known(index) => registry().get(index).id.clone(),
        other => format!("{other:?}"),
    }
}

#[test]
fn every_record_says_who_it_is_and_from_where_that_is_known() {
    assert_eq!(registry().crawlers().len(), 265);
    let mut ids = HashSet::new();
    for crawler in registry().crawlers() {
        assert!(ids.insert(&crawler.id), "{} stands twice", crawler.id);
        assert!(
            crawler.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
            "{}",
            crawler.id
        );
        assert!(
            ["[D]", "[S]", "[U]"].iter().any(|code| crawler.source.contains(code)),
            "{}: {}",
            crawler.id,
            crawler.source
        );
        assert!(!crawler.name.is_empty() && !crawler.operator.is_empty());
        // A token stands in robots.txt as it is: no remark may be part of it.
        let token = |token: &String| token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" -_./!+".contains(&byte));
        assert!(crawler.tokens.iter().all(token), "{}: {:?}", crawler.id, crawler.tokens);
    }
    let googlebot = registry().get(registry().find("googlebot").expect("listed"));
    assert_eq!(googlebot.robots_cache, Some(std::time::Duration::from_secs(86_400)));
    assert_eq!((googlebot.crawl_delay, googlebot.binds), (Some(false), Binds::Star));
}

#[test]
fn every_example_is_its_own_record() {
    let mut wrong = Vec::new();
    for crawler in registry().crawlers().iter().filter(|crawler| !crawler.marks.is_empty()) {
        let Some(example) = &crawler.user_agent else { continue };
        for form in [example.clone(), example.to_lowercase(), example.to_uppercase()] {
            let found = who(&form);
            if found != crawler.id {
                wrong.push(format!("{form}: {found}, not {}", crawler.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_person_is_taken_for_a_crawler() {
    let people: Vec<&str> = include_str!("humans.txt").lines().collect();
    assert_eq!(people.len(), 69);
    for person in people {
        assert_eq!(registry().identify(person.as_bytes()), Claim::Nobody, "{person}");
    }
    assert_eq!(who(""), "Nobody");
}

#[test]
fn a_name_that_only_looks_alike_is_somebody_else() {
    for crawler in registry().crawlers() {
        for other in &crawler.must_not_match {
            assert_ne!(who(other), crawler.id, "{other}");
            assert_ne!(who(&format!("Mozilla/5.0 ({other}/1.0)")), crawler.id, "{other}");
        }
    }
    assert_ne!(who("OurCompany Test Spider"), "Other");
    assert_eq!(who("Mozilla/5.0 (compatible; Fake-Googlebot/2.1)"), "Other");
    assert_eq!(who("Googlebot-Image/1.0"), "googlebot-image");
    assert_ne!(who("FreshRSS/1.2 (like Googlebot/2.1)"), "googlebot");
}

#[test]
fn a_named_crawler_beats_a_library_and_the_longer_mark_the_shorter() {
    assert_eq!(
        who("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 adidxbot/2.0 (+http://www.bing.com/bingbot.htm)"),
        "adidxbot"
    );
    assert_eq!(
        who("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html) https://deepcrawl.com/bot"),
        "deepcrawl"
    );
    assert_eq!(who("Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot) curl/8.0"), "gptbot");
}

#[test]
fn a_preview_from_apple_messages_is_a_person_and_its_parts_are_crawlers() {
    let safari = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 Safari/601.2.4";
    assert_eq!(who(&format!("{safari} facebookexternalhit/1.1 Facebot Twitterbot/1.0")), "Nobody");
    assert_eq!(who("facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)"), "facebookexternalhit");
    assert_eq!(who("Twitterbot/1.0"), "twitterbot");
}

#[test]
fn an_unlisted_bot_that_says_so_is_other() {
    for bot in [
        "Mozilla/5.0 (compatible; ExampleBot/1.0; +https://example.org/bot)",
        "examplecrawler/0.1",
        "Mozilla/5.0 (compatible; my-spider; me@example.org)",
        "MyFetcher/1.0 (+https://example.org/fetcher)",
    ] {
        assert_eq!(who(bot), "Other", "{bot}");
    }
    for person in [
        "Mozilla/5.0 (Linux; Android 13; robot) Chrome/1 Safari/1",
        "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    ] {
        assert_eq!(who(person), "Nobody", "{person}");
    }
}

#[test]
fn tokens_of_a_policy_join_identification() {
    let tokens = TokenMarks::new(vec!["IntranetBot".into(), "ab".into(), "GPTBot-Extra".into(), "curlish".into()]);
    let who = |user_agent: &str| registry().identify_with(user_agent.as_bytes(), &tokens);
    assert_eq!(who("Mozilla/5.0 (compatible; intranetbot/2.0)"), Claim::Token(0));
    assert_eq!(who("MyIntranetBot/2.0 x"), who("MyIntranetBot/2.0"), "a part of a word is no token");
    assert_ne!(who("MyIntranetBot/2.0"), Claim::Token(0));
    assert_eq!(who("ab"), Claim::Nobody, "two letters stand in too many strings");
    assert_eq!(who("GPTBot-Extra/1.0"), Claim::Token(2));
    assert_eq!(who("GPTBot/1.0"), registry().identify(b"GPTBot/1.0"));
    assert_eq!(who("curl/8.0 curlish"), Claim::Token(3), "a token of the owner's beats a library");
}

#[test]
fn only_the_beginning_of_a_long_field_is_read() {
    let garbage = format!("{} GPTBot/1.0", "x ".repeat(4_096));
    assert_eq!(registry().identify(garbage.as_bytes()), Claim::Nobody);
}

proptest! {
    #[test]
    fn any_bytes_are_somebody(bytes in proptest::collection::vec(any::<u8>(), 0..300), near in "[a-z/;()+.: ]{0,40}(bot|spider|GPTBot|http://)[a-z/;()+.: ]{0,20}") {
        let tokens = TokenMarks::new(vec!["spider".into()]);
        registry().identify(&bytes);
        registry().identify_with(near.as_bytes(), &tokens);
    }
}
