//! Tests of the registry of crawlers and of the user agents that it identifies: each crawler is
//! found by its own examples, and no visitor is taken for a crawler.

use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

fn registry() -> &'static Registry {
    Registry::builtin()
}

fn identified_name(user_agent: &str) -> String {
    match registry().identify(user_agent.as_bytes()) {
        Claim::Known(index) => registry().get(index).id.clone(),
        other => format!("{other:?}"),
    }
}

#[test]
fn every_record_has_an_id_and_a_source() {
    assert_eq!(registry().crawlers().len(), 375);
    let mut ids = HashSet::new();
    for crawler in registry().crawlers() {
        assert!(ids.insert(&crawler.id), "{} stands twice", crawler.id);
        assert!(
            crawler
                .id
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
            "{}",
            crawler.id
        );
        assert!(
            ["[D]", "[S]", "[U]"]
                .iter()
                .any(|code| crawler.source.contains(code)),
            "{}: {}",
            crawler.id,
            crawler.source
        );
        assert!(!crawler.name.is_empty() && !crawler.operator.is_empty());
        // A token stands in robots.txt as it is: no remark may be part of it.
        let token = |token: &String| {
            token
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b" -_./!+".contains(&byte))
        };
        assert!(
            crawler.tokens.iter().all(token),
            "{}: {:?}",
            crawler.id,
            crawler.tokens
        );
    }
    let googlebot = registry().get(registry().find("googlebot").expect("listed"));
    assert_eq!(
        googlebot.robots_cache,
        Some(std::time::Duration::from_secs(86_400))
    );
    assert_eq!(
        (googlebot.crawl_delay, googlebot.binds),
        (Some(false), RobotsObedience::Star)
    );
}

#[test]
fn lines_of_x_robots_tag_may_address_every_token() {
    let tokens = || {
        registry()
            .crawlers()
            .iter()
            .flat_map(|crawler| &crawler.tokens)
            .filter(|token| !token.contains(' '))
    };
    for token in tokens() {
        assert!(
            crate::indexing::is_bot_name(token),
            "{token} is missing in src/indexing/names.rs"
        );
    }
    for name in crate::indexing::known_bot_names() {
        assert!(
            tokens().any(|token| token.eq_ignore_ascii_case(name)),
            "{name} is no token of the registry"
        );
    }
}

#[test]
fn example_user_agents_find_their_own_record() {
    let mut wrong = Vec::new();
    for crawler in registry()
        .crawlers()
        .iter()
        .filter(|crawler| !crawler.markers.is_empty())
    {
        let Some(example) = &crawler.user_agent else {
            continue;
        };
        for form in [
            example.clone(),
            example.to_lowercase(),
            example.to_uppercase(),
        ] {
            let found = identified_name(&form);
            if found != crawler.id {
                wrong.push(format!("{form}: {found}, not {}", crawler.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn visitors_are_not_taken_for_crawlers() {
    assert_eq!(visitor_user_agents().count(), 118);
    for person in visitor_user_agents() {
        assert_eq!(
            registry().identify(person.as_bytes()),
            Claim::Visitor,
            "{person}"
        );
    }
}

#[test]
fn similar_name_is_another_program() {
    for crawler in registry().crawlers() {
        for other in &crawler.must_not_match {
            assert_ne!(identified_name(other), crawler.id, "{other}");
            assert_ne!(
                identified_name(&format!("Mozilla/5.0 ({other}/1.0)")),
                crawler.id,
                "{other}"
            );
        }
    }
    assert_eq!(
        identified_name("Mozilla/5.0 (compatible; Fake-Googlebot/2.1)"),
        "UnknownBot"
    );
    assert_eq!(identified_name("Googlebot-Image/1.0"), "googlebot-image");
    assert_ne!(
        identified_name("FreshRSS/1.2 (like Googlebot/2.1)"),
        "googlebot"
    );
}

#[test]
fn crawler_beats_library_and_longer_marker_beats_shorter() {
    assert_eq!(
        identified_name(
            "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 adidxbot/2.0 (+http://www.bing.com/bingbot.htm)"
        ),
        "adidxbot"
    );
    assert_eq!(
        identified_name(
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html) https://deepcrawl.com/bot"
        ),
        "deepcrawl"
    );
    assert_eq!(
        identified_name(
            "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot) curl/8.0"
        ),
        "gptbot"
    );
}

#[test]
fn apple_messages_preview_is_visitor() {
    let safari = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 Safari/601.2.4";
    let preview = format!("{safari} facebookexternalhit/1.1 Facebot Twitterbot/1.0");
    for form in [
        preview.clone(),
        preview.to_lowercase(),
        preview.to_uppercase(),
    ] {
        assert_eq!(identified_name(&form), "Visitor", "{form}");
    }
    // An owner who names Facebot means a crawler, not those who send a link to a friend.
    let tokens = SiteMarkers::new(vec!["Facebot".into()]);
    assert_eq!(
        registry().identify_on_site(preview.as_bytes(), &tokens),
        Claim::Visitor
    );
    assert_eq!(
        registry().identify_on_site(b"Facebot/1.0", &tokens),
        Claim::PolicyToken(0)
    );
    assert_eq!(
        identified_name(
            "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)"
        ),
        "facebookexternalhit"
    );
    assert_eq!(identified_name("Twitterbot/1.0"), "twitterbot");
    for crawler in [
        "facebookexternalhit/1.1 Facebot Twitterbot/1.0",
        "Mozilla/5.0 (compatible; facebookexternalhit/1.1 Twitterbot/1.0) Safari/537.36",
    ] {
        assert_eq!(
            identified_name(crawler),
            "facebookexternalhit",
            "only behind Safari it is a person's device: {crawler}"
        );
    }
}

#[test]
fn unlisted_self_declared_bot_is_unknown_bot() {
    for bot in [
        "Mozilla/5.0 (compatible; ExampleBot/1.0; +https://example.org/bot)",
        "Mozilla/5.0 (compatible; RhinoBot; +http://example.org/bot.html)",
        "Mozilla/5.0 (compatible; ExampleBot +https://example.org)",
        "Mozilla/5.0 (compatible) ExampleBot (+https://example.org/crawler)",
        "Mozilla/5.0 (compatible; my-spider; me@example.org)",
        "Mozilla/5.0 (compatible; ExampleFetcher/1.0; +http://example.org/about)",
        "Mozilla/5.0 (X11; Linux x86_64; ExampleBot/1.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/79.0.3945.88 Safari/537.36",
        "Mozilla/5.0 (Linux; Android 6.0; ExampleBot/1.0; +http://example.org/bot) AppleWebKit/537.36 (KHTML, like Gecko) Safari/537.36",
        "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/99.0 Mobile Safari/537.36 (compatible; ExampleBot/2.1; +http://example.org/)",
        "ExampleBot (https://example.org/bot)",
        "ExampleSpider/beta (me@example.org)",
        "examplebot/v2",
        "examplecrawler/0.1",
        "MyFetcher/1.0 (+https://example.org/fetcher)",
    ] {
        assert_eq!(identified_name(bot), "UnknownBot", "{bot}");
    }
}

#[test]
fn unrecognised_programs_are_bots_or_tools() {
    for retired in [
        "SAMSUNG-SGH-E250/1.0 (compatible; Googlebot-Mobile/2.1; +http://www.google.com/bot.html)",
        "Googlebot-Mobile",
    ] {
        assert_eq!(identified_name(retired), "googlebot", "{retired}");
    }
    assert_eq!(
        identified_name("msnbot-NewsBlogs/2.0b (+http://search.msn.com/msnbot.htm)"),
        "msnbot"
    );
    let bots = [
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36 acme-scraper",
        "Example Bot (http://www.example.com/bot)",
        "SMTBot (similartech.com/smtbot)",
        "Aboundex/0.3 (http://www.aboundex.com/crawler/)",
        "crawler4j (https://github.com/yasserg/crawler4j/)",
        "fuelbot",
        "phpcrawl",
        "B2B Bot",
        "Clickagy Intelligence Bot v2",
        "Mozilla/5.0 (compatible; Ezooms/1.0; ezooms.bot@gmail.com)",
        "Mozilla/5.0 (compatible; adscanner/)",
        "Mozilla/5.0 (compatible; evc-batch/2.0)",
        "Yanga WorldSearch Bot v1.1/beta (http://www.yanga.co.uk/)",
        "Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.1; Trident/6.0) SiteCheck-sitecrawl by Siteimprove.com",
        "OurCompany Test Spider",
        "Bot (see https://example.org/)",
        "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:15.0) Xing Bot",
        "Mozilla/5.0 (Windows NT 6.1; WOW64) adbeat.com/policy AppleWebKit/537.36 (KHTML, like Gecko) Chrome/48.0.2564.116 Safari/537.36",
    ];
    let tools = [
        "example.com",
        "httpunit/1.x",
        "Mozilla/5.0 (Java) outbrain",
        "WatchMouse/8.4.0.3",
        "W3C_I18n-Checker/1.0",
        "Ruby, link_thumbnailer",
        "Mozilla/5.0",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36 CookieHubScan/3.0",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36 Playwright/1.40.0",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/63.0 Safari/537.36 Ghost Inspector",
        "Mozilla/5.0 (Windows NT 6.1; WOW64; rv:38.0; Neustar WPM) Gecko/20100101 Firefox/38.0",
    ];
    for bot in bots {
        assert_eq!(identified_name(bot), "UnknownBot", "{bot}");
    }
    for tool in tools.into_iter().chain(["", " "]) {
        assert_eq!(identified_name(tool), "Tool", "{tool}");
    }
}

#[test]
fn visitors_with_bot_words_stay_visitors() {
    let browser =
        "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/88.0.4324.152 Mobile Safari/537.36";
    let mut people: Vec<String> = [
        "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        "Mozilla/5.0 (compatible; Dillo 3.0)",
        "Dillo/3.0.5",
        "NetSurf/3.11 (Linux)",
        "Viber/21.8.0.2 CFNetwork/1474 Darwin/23.0.0",
        "Overcast/3.0 (+http://overcast.fm/; iOS podcast app)",
        "PodcastAddict/v5 (+https://podcastaddict.com/; Android podcast app)",
        "AntennaPod/3.2.0",
        "Castro 2023.12",
        "Pocket Casts",
        "Mozilla/5.0 (Mobile; CUBOT; rv:48.0) Gecko/48.0 Firefox/48.0 KAIOS/2.5 me@example.org",
        "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 5.1; Embedded Web Browser from: http://example.org/)",
        "Dalvik/2.1.0 (Linux; U; Android 6.0; POWER BOT Build/MRA58K)",
        "MyApp/1.0 (Linux; Android 8.1.0; CUBOT) support@example.org",
        "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 (like ExampleBot/2.1)",
        "MyApp/12 CFNetwork/1408.0.4 Darwin/22.5.0",
        "PodcastAddict/v2 - Dalvik/2.1.0 (Linux; U; Android 6.0; FEVER Build/MRA58K)",
        "Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 5.1; Trident/4.0; Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1) ; .NET CLR 2.0.50727)",
        "Mozilla/5.0 (Linux; Android 9; X20 PRO Build/P00610; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/101.0.4951.61 Mobile Safari/537.36 Instagram 237.0.0.7.102 Android (28/9; CUBOT; X20 PRO)",
        "Mozilla/5.0 (Linux; Android 4.2.1; Nexus 5) AppleWebKit/535.19 (KHTML, like Gecko; googleweblight) Chrome/38.0.1025.166 Mobile Safari/535.19",
        "Nokia200/2.0 (11.64) Profile/MIDP-2.1 Configuration/CLDC-1.1",
        "iPhone16Pro",
        "Liferea/1.6.4 (Linux; en_US.UTF-8; http://liferea.sf.net/)",
    ]
    .map(str::to_owned)
    .into();
    for model in [
        "POWER BOT",
        "CUBOT",
        "CUBOT/1.0",
        "M bot",
        "Spider",
        "Spider 8",
        "C Bot Tab 100",
        "robot",
        "moto (2022); IDbot",
    ] {
        for system in [
            "Linux; Android 13",
            "Linux; U; Android 8.1.0; en-us",
            "Linux; Andr0id 9",
        ] {
            // Apps of people add versions with an @, addresses and pages behind.
            for rest in [
                "",
                " (Ecosia android@87.0.4280.101)",
                " ExampleApp/1.0 (support@example.org)",
                " https://app.example/",
            ] {
                people.push(format!("Mozilla/5.0 ({system}; {model}) {browser}{rest}"));
                people.push(format!(
                    "Mozilla/5.0 ({system}; {model}; Build/O11019) {browser}{rest}"
                ));
            }
        }
    }
    for person in people {
        assert_eq!(identified_name(&person), "Visitor", "{person}");
    }
}

#[test]
fn programs_added_to_browser_string_are_found() {
    let browser = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/133.0.0.0 Safari/537.36";
    for (bot, comment, behind) in [
        (
            "UnknownBot",
            "X11; Linux x86_64",
            " Example/2.0 (example.io)",
        ),
        (
            "UnknownBot",
            "example.co; Macintosh; Intel Mac OS X 10_15_7",
            "",
        ),
        (
            "UnknownBot",
            "Windows NT 10.0; Win64; x64",
            " www.example.com (account 7)",
        ),
        (
            "UnknownBot",
            "Macintosh; Intel Mac OS X 10_15_7",
            " abuse.example.fr",
        ),
        ("Tool", "Windows NT 6.1; WOW64", " Example.Translate"),
    ] {
        let text = format!("Mozilla/5.0 ({comment}) {browser}{behind}");
        assert_eq!(identified_name(&text), bot, "{text}");
    }
    for (bot, text) in [
        (
            "UnknownBot",
            "Mozilla/5.0 (compatible; MSIE 8.0; Windows NT 6.3; www.example.com)",
        ),
        (
            "UnknownBot",
            "Mozilla/5.0 (iPhone; CPU iPhone OS 12_0 like Mac OS X) example.com/policy AppleWebKit/605.1.15 (KHTML, like Gecko) Safari/605.1",
        ),
        (
            "Tool",
            "Example%20Downloader/1569 CFNetwork/720.3.13 Darwin/14.3.0 (x86_64)",
        ),
    ] {
        assert_eq!(identified_name(text), bot, "{text}");
    }
}

#[test]
fn browsers_with_odd_additions_are_visitors() {
    for text in [
        "Mozilla/5.0 (Windows NT 6.1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/32.0 Safari/537.36,gzip(gfe) (via docs.google.com/viewer)",
        "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 5.1; Trident/4.0) (SWRInfo: 3129:dac.example.com)",
        "Mozilla/5.0 (masking-agent; rv:23.0) Gecko/20100101 Firefox/23.0",
        "User-Agent: Mozilla/5.0 (Windows NT 6.1; WOW64) AppleWebKit/537.31 (KHTML, like Gecko) Chrome/26.0.1410.64 Safari/537.31",
        "Mozilla/5.0 (PlayStation 4 PRO) AppleWebKit/531.3 (KHTML, like Gecko, HEVC, HDR, UHD) SCEE/1.0 Nuanti/2.0",
        "Mozilla/5.0 (Macintosh; U; PPC Mac OS X; en) AppleWebKit/418.9 (KHTML, like Gecko, Safari) Safari/419.3 Cheshire/1.0.ALPHA",
        "Mozilla/5.0 (compatible; Prospector/1.0; via site) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0 Safari/537.36",
        "Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.1; WOW64; Trident/6.0) BMID/E67A27C8DB",
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.10; rv:37.0) Servo/1.0 Firefox/37.0",
        "Microsoft Office Word/2.20 (Mac OS/10.15; Desktop; en-US; AppStore; Apple/Mac14,2)",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/110.0 Safari/537.36 OPR/96.0 (Edition developer)",
    ] {
        assert_eq!(identified_name(text), "Visitor", "{text}");
    }
}

/// Names of systems, engines and apps are whole words, and no part of an address.
#[test]
fn parts_of_words_do_not_make_a_visitor() {
    for (bot, text) in [
        ("UnknownBot", "MyFetcher/1.0; https://www.joesbrewery.com"),
        ("UnknownBot", "MauiBot"),
        ("UnknownBot", "SwapSpider"),
        ("UnknownBot", "PodcastBot"),
        ("UnknownBot", "AndroidCrawler"),
        ("UnknownBot", "ExampleFetcher/1.0 (+android-apps.example)"),
        ("Tool", "tripadvisor"),
        ("Tool", "citizens/2.0"),
        ("Tool", "WeLikeLinks"),
        ("Tool", "Wappalyzer"),
        ("Tool", "Operations/1.0"),
        ("UnknownBot", "Checker/1.0 (info@firefox-fans.example)"),
    ] {
        assert_eq!(identified_name(text), bot, "{text}");
    }
    for person in [
        "iPhone16Pro",
        "Windows98; Win98",
        "Example/1.0 (Mobile%20Safari/604.1)",
        "NokiaN95/1.0",
    ] {
        assert_eq!(identified_name(person), "Visitor", "{person}");
    }
}

#[test]
fn words_in_addresses_are_recognised() {
    let far = format!("http://{}/firefox", "x".repeat(300));
    for (text, expected) in [
        ("see http://a.example/firefox", true),
        ("see (www.firefox.example)", true),
        ("a.firefox.com/x", true),
        ("a.example.com/firefox", true),
        ("x firefox@a.example", true),
        ("x+a@firefox.example", true),
        ("a.firefox.io", true),
        ("a.firefox.coms", false),
        ("a.firefox.example", false),
        ("x@firefox.e", false),
        ("@firefox.example", false),
        ("a.com;firefox", false),
        ("a.com?firefox", true),
        ("a.com:firefox", true),
        ("Firefox/1.0 http://a.example/", false),
        ("http://a.example/ Firefox/1.0", false),
        ("x (Firefox/1.0.com)", false),
        ("com.firefox.browser/1.0", false),
        ("firefox@1.0.4", false),
        (".firefox.com", false),
        (&far, false),
    ] {
        let place = text
            .to_ascii_lowercase()
            .find("firefox")
            .expect("it is there");
        assert_eq!(
            address::is_in_address(text.as_bytes(), place),
            expected,
            "{text}"
        );
    }
}

#[test]
fn bot_words_outweigh_system_words() {
    let firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:64.0) Gecko/20100101 Firefox/64.0";
    let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/91.0 Safari/537.36";
    let mut bots: Vec<String> = [
        "WIRE/0.22 (Linux; x86_64; Bot,Robot,Spider,Crawler,a@b)",
        "FooClient (Linux x86_64) / FooNewsbot / Contact information at http://foo.example",
        "DoCoMo/2.0 SH902i (compatible; Y!J-SRD/1.0; http://help.example/)",
        "ExampleCodes crawler - looking for iOS app mentions",
        "Mozilla/5.0 (Windows NT 6.1; WOW64; rv:17.0; Examplespider-ads) Gecko/17.0 Firefox/17.0",
        "Feeder/1.0 (iPhone; +feeder.example)",
    ]
    .map(str::to_owned)
    .into();
    bots.push(format!("RankBotEU/1.0 {chrome}"));
    bots.push(format!("{chrome} Example-robots/2.0"));
    bots.push(format!("{chrome} (+probely.example/sos)"));
    bots.push(format!("{chrome} +feeder.example"));
    bots.push(format!("{chrome} ExampleBotXYZ/1.0"));
    bots.push(format!("{chrome} examplecrawler4j/1.0"));
    bots.push(format!("{firefox} XYZ-Crawler-31031547"));
    for bot in bots {
        assert_eq!(identified_name(&bot), "UnknownBot", "{bot}");
    }
}

#[test]
fn rare_browsers_and_devices_are_visitors() {
    let old = "Mozilla/5.0 (Windows; U; Windows NT 6.0; en-US; rv:1.9.2.8) Gecko/20100722";
    let mut people: Vec<String> = [
        "com.huawei.hmos.browser (2in1;OpenHarmony-5.0.1)",
        "Safari%20Technology%20Preview/19614.1.26 CFNetwork/1568.100.1 Darwin/24.0.0",
        "Mozilla/5.0 (compatible; MSIE 9.0; Windows NT 6.1) Opera 12.15",
        "HTC_One_S/2.38.111.10",
        "Mozilla/4.5 (compatible; OmniWeb/4.0.5; MacPowerPC)",
        "Mozilla/5.0 (compatible; OpenTV 1.0)",
        "Mozilla/5.0 (X11; U; Linux; en-US) AppleWebKit/534.34 (KHTML, like Gecko)  QtWeb Internet Browser/3.8.5 http://www.QtWeb.net",
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Superhuman/37.0.12 Chrome/87.0 Electron/11.5.0 Safari/537.36",
        "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; Supplied by Tesco.net; FunWebProducts)",
        "Mozilla/5.0 (Windows NT 6.1; Trident/7.0; example.com; rv:11.0) like Gecko",
        "UCWEB/2.0 (MIDP-2.0; U; Adr 4.4.2; www.example.com; SM-1) U2/1.0.0 UCBrowser/9.8.0.534 U2/1.0.0 Mobile",
        "Mozilla/5.0 (iPad; U; firefox/12; en-us; compatible; AppleWebKit/528.18(KHTML,like Gecko) Version/4.0 Mobile/7A341 Safari/528.16",
        "Mozilla/4.0 (compatible; Mozilla/5.0 (X11; Linux; es-ES) AppleWebKit/523.15 (KHTML, like Gecko) Arora/0.4; Windows)",
        "Amazon;AFTLE;0;;tpapi;3.202.356",
        "Mozilla/5.0 (compatible; Konqueror/4.1; Linux) AppleWebKit/534.34 (KHTML, like Gecko) Safari/534.34",
        "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; EmbeddedWB 14.52 from: http://www.example.com/)",
        "TikTok 26.2.0 rv:262018 (iPhone; iOS 14.4.2; en_US) Cronet",
        "Superhuman/1.0",
        "CoolerFM/1.0 iPhone/15 +https://player.example",
        "Podcast Overhaul/4.1.1 iOS/16.1.1 +https://player.example/",
        "Turtlecast/0.7.7; (Android 13); +https://player.example",
        "newsbeuter/2.4 (Linux 3.2.0-23-generic; i686; http://www.newsbeuter.org/) libcurl/7.22.0",
        "NewsBlur iPad App v3.6",
        "NewsBlur/4.0.1 CFNetwork/672.1.13 Darwin/14.0.0",
    ]
    .map(str::to_owned)
    .into();
    people.push(format!(
        "{old} Firefox/3.6.8,gzip(gfe) (via translate.google.com)"
    ));
    people.push(format!(
        "{old} Ant.com Toolbar 2.0.1 Firefox/3.6.8 ( .NET CLR 3.5.30729)"
    ));
    people.push(format!("{old} Firefox/3.6.8, Ant.com"));
    for person in people {
        assert_eq!(identified_name(&person), "Visitor", "{person}");
    }
}

#[test]
fn page_beside_phone_needs_bot_word() {
    for (text, expected) in [
        ("iPhone +http://example.com/examplebot/1.0", "UnknownBot"),
        (
            "Fetcher/1.0 (iPhone; iOS 18.0; ExampleBot/1.0)",
            "UnknownBot",
        ),
        ("Fetcher/1.0 (Macintosh) +http://example.com/", "UnknownBot"),
        ("Mozilla/4.0 (compatible;)", "Tool"),
        ("Mozilla/4.0 (compatible; )", "Tool"),
        ("Mozilla/4.0 (compatible; +a[at]example.com)", "UnknownBot"),
        ("Mozilla/4.0 (Compatible; Fetcher)", "UnknownBot"),
    ] {
        assert_eq!(identified_name(text), expected, "{text}");
    }
}

#[test]
fn contact_beside_desktop_system_means_bot() {
    for (text, expected) in [
        ("AcmeCollector/2 (Linux)", "Tool"),
        (
            "AcmeCollector/2 (Linux; http://acme.example/)",
            "UnknownBot",
        ),
        (
            "AcmeCollector/2 (Windows; https://acme.example/)",
            "UnknownBot",
        ),
        (
            "AcmeCollector (Windows NT 10.0; contact: ops@acme.example)",
            "UnknownBot",
        ),
        (
            "AcmeCollector/2 (X11; Linux x86_64) ops@acme.example",
            "UnknownBot",
        ),
        ("AcmeCollector/2 (Linux; +ops@acme.example)", "UnknownBot"),
        ("AcmeCollector/2 (Linux; +acme.example)", "UnknownBot"),
        (
            "AcmeCollector/2 (Macintosh; https://acme.example/)",
            "UnknownBot",
        ),
        (
            "Acme Harvester (Ubuntu; https://acme.example/)",
            "UnknownBot",
        ),
        // Without a contact, on phones, and in readers of feeds.
        ("AcmeCollector/2 (Linux; x86_64)", "Visitor"),
        (
            "Acme/2 (Linux; Android 13) https://acme.example/",
            "Visitor",
        ),
        (
            "Acme/2 CFNetwork/1474 Darwin/23.0.0 (Macintosh; https://acme.example/)",
            "Visitor",
        ),
        (
            "NetNewsWire (macOS; RSS Reader; https://reader.example/)",
            "Visitor",
        ),
        (
            "FeedDemon/4.5 (http://reader.example/; Microsoft Windows XP)",
            "Visitor",
        ),
    ] {
        assert_eq!(identified_name(text), expected, "{text}");
    }
}

#[test]
fn bot_name_with_version_is_not_phone_model() {
    let rest = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/99.0 Mobile Safari/537.36";
    for (device, expected) in [
        ("Android 10; AcmeBot/1.0", "UnknownBot"),
        ("Android 10; AcmeBot", "Visitor"),
        ("Android 10; M bot 51", "Visitor"),
        ("Android 10; POWER BOT Build/MRA58K", "Visitor"),
        ("Android 10; CUBOT/1.0", "Visitor"),
        ("Android 10; CUBOT/1.0; +http://a.example/", "UnknownBot"),
    ] {
        assert_eq!(
            identified_name(&format!("Mozilla/5.0 (Linux; {device}) {rest}")),
            expected,
            "{device}"
        );
    }
}

#[test]
fn customer_suffixes_are_recognised() {
    for (text, expected) in [
        ("amazon-kendra-customer-id-123456789012", "amazon-kendra"),
        ("bedrockbot-0a1b2c3d", "bedrockbot"),
        ("xbedrockbot-0a1b2c3d", "UnknownBot"),
    ] {
        assert_eq!(identified_name(text), expected, "{text}");
    }
}

#[test]
fn last_three_letters_admit_every_ending() {
    for ending in program_kind::BOT_ENDINGS {
        let name = [&b"X"[..], &ending.to_ascii_uppercase()].concat();
        assert!(
            program_kind::has_tool_or_bot_ending(ending)
                && program_kind::has_tool_or_bot_ending(&name),
            "{ending:?}"
        );
        assert!(
            !program_kind::has_tool_ending(ending)
                && !program_kind::has_tool_or_bot_ending(&ending[1..]),
            "{ending:?}"
        );
    }
    for (text, expected) in [
        ("LinkCHECK", true),
        ("downloader", true),
        ("checks", false),
        ("ck", false),
        ("", false),
        // Bytes beside the letters.
        ("linkche{k", false),
        ("linkch[ck", false),
        ("linkc`eck", false),
        ("link{eck", false),
        ("linkchec{", false),
        ("linkchec@", false),
    ] {
        let found = program_kind::has_tool_ending(text.as_bytes());
        assert_eq!(found, expected, "{text}");
        assert_eq!(
            found,
            program_kind::has_tool_or_bot_ending(text.as_bytes()),
            "{text}"
        );
    }
}

#[test]
fn bot_name_before_sign_counts_in_plain_browser() {
    for sign in ["-", "_"] {
        let text = format!(
            "Mozilla/5.0 (X11; Linux i686; rv:17.0; Examplespider{sign}ads) Gecko/17.0 Firefox/17.0"
        );
        assert_eq!(identified_name(&text), "UnknownBot", "{text}");
    }
    assert_eq!(
        identified_name(
            "Mozilla/5.0 (X11; Linux i686; rv:17.0; Example-spiderling) Gecko/17.0 Firefox/17.0"
        ),
        "Visitor"
    );
}

#[test]
fn marker_within_browser_prefix_is_found() {
    let browser = "Mozilla/5.0 (X11; Linux x86_64; rv:99.0) Gecko/20100101 Firefox/99.0";
    for (mark, is_found) in [
        ("^Mozilla/5.0 (X11; Linux x86_64", true),
        ("Mozilla", true),
        ("5.0 (x11", true),
        ("/5.0", true),
        (" (X11", true),
        ("X11; Linux", true),
        ("Mozilla/5.0 (x12", false),
        ("ozilla", false),
    ] {
        let own = format!(
            "- {{ id: x, name: X, operator: X, purpose: other, binds: star, source: x, marks: [\"{mark}\"] }}\n"
        );
        let registry = registry()
            .with_records(&crate::yaml::SourceFile {
                name: "own.yaml".into(),
                text: own.into(),
            })
            .expect("read");
        assert_eq!(
            registry.identify(browser.as_bytes()) != Claim::Visitor,
            is_found,
            "{mark}"
        );
    }
}

#[test]
fn fediverse_software_is_preview() {
    for (text, id) in [
        ("Misskey/2024.11.0 (https://misskey.example/)", "misskey"),
        ("SummalyBot/5.2.0", "summalybot"),
        ("Iceshrimp/2023.12.7 (https://social.example)", "iceshrimp"),
        (
            "Pleroma 2.9.1; https://pleroma.example <admin@pleroma.example>",
            "pleroma",
        ),
        (
            "Akkoma 3.15.2-0-gabc; https://akkoma.example <admin@akkoma.example>",
            "akkoma",
        ),
        (
            "Friendica/2024.12 DatabaseVersion/1576 Request/ContentTypeChecker/1 +https://friendica.example",
            "friendica",
        ),
        ("Lemmy/0.19.11; +https://lemmy.example", "lemmy"),
        ("PeerTube/7.1.0 (+https://peertube.example)", "peertube"),
        (
            "PixelFedBot/1.0.0 (Pixelfed/0.12.5; +https://pixelfed.example)",
            "pixelfed",
        ),
        (
            "gotosocial/0.19.0+git-1234567 (+https://social.example)",
            "gotosocial",
        ),
        ("Hubzilla/8.4; +https://hub.example", "hubzilla"),
        (
            "python-requests/2.31.0 (BookWyrm/0.6.6; +https://books.example/)",
            "bookwyrm",
        ),
        (
            "A site of events events.example - Mobilizon 5.1.2",
            "mobilizon",
        ),
        (
            "WordPress/6.7.1; https://blog.example; ActivityPub",
            "wordpress-activitypub",
        ),
        ("Mbin/1.9.1 (+https://mbin.example/agent)", "mbin"),
        ("kbinBot/0.1", "mbin"),
        (
            "Fedify/1.9.0 (Deno/2.5.4; +https://social.example/)",
            "fedify",
        ),
        (
            "Ghost/6.0 (Fedify/1.9.0; Node.js/v22.18.0; +https://blog.example/)",
            "fedify",
        ),
        (
            "Citoid (Wikimedia tool; learn more at https://www.mediawiki.org/wiki/Citoid)",
            "citoid",
        ),
        (
            "Mastodon/4.3.0 (http.rb/5.2.0; +https://social.example/)",
            "mastodon",
        ),
    ] {
        assert_eq!(identified_name(text), id, "{text}");
        let found = registry()
            .find(id)
            .map(|index| registry().get(index).purpose);
        assert_eq!(found, Some(Purpose::Preview), "{id}");
    }
    for text in [
        "Pixelfed/12 CFNetwork/1408.0.4 Darwin/22.5.0",
        "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) ActivityPub",
    ] {
        assert_ne!(identified_name(text), "pixelfed", "{text}");
        assert_ne!(identified_name(text), "wordpress-activitypub", "{text}");
    }
    assert_eq!(
        identified_name("WordPress/6.7.1; https://blog.example"),
        "wordpress"
    );
}

#[test]
fn second_names_have_own_records() {
    for (text, id) in [
        (
            "Mozilla/5.0 (compatible; YandexAdditional/1.0; +http://yandex.com/bots)",
            "yandexadditional",
        ),
        (
            "Mozilla/5.0 (compatible; YandexAdditionalBot/1.0; +http://yandex.com/bots)",
            "yandexadditionalbot",
        ),
        ("iaskspider/2.0", "iaskspider"),
        ("Google-NotebookLM", "google-notebooklm"),
        ("Google-CloudVertexBot", "google-cloudvertexbot"),
        ("CloudVertexBot/1.0", "cloudvertexbot"),
        (
            "Mozilla/5.0 (compatible; AIWebIndex-Agent/2.0)",
            "aiwebindex-agent",
        ),
        (
            "Mozilla/5.0 (Unknown; Linux x86_64) AppleWebKit/538.1 (KHTML, like Gecko) PhantomJS/2.1.1 Safari/538.1 bl.uk_lddc_renderbot/2.0.0 (+ http://www.bl.uk/aboutus/legaldeposit)",
            "bl-uk",
        ),
        (
            "code-review-sourcing/1.0 (+xai-research)",
            "xai-code-review",
        ),
    ] {
        assert_eq!(identified_name(text), id, "{text}");
    }
}

#[test]
fn policy_token_in_user_agent_is_not_its_crawler() {
    let without_markers: Vec<_> = registry()
        .crawlers()
        .iter()
        .filter(|crawler| crawler.markers.is_empty())
        .collect();
    assert!(
        without_markers
            .iter()
            .any(|crawler| crawler.id == "google-extended")
    );
    for crawler in without_markers {
        for token in &crawler.tokens {
            assert_ne!(identified_name(token), crawler.id);
            assert_ne!(
                identified_name(&format!("Mozilla/5.0 (compatible; {token}/1.0)")),
                crawler.id
            );
        }
    }
    assert_eq!(identified_name("Google-Extended/1.0"), "Tool");
    assert_eq!(
        identified_name("Mozilla/5.0 (compatible; Applebot-Extended/1.0)"),
        "UnknownBot"
    );
}

#[test]
fn every_record_is_found_by_its_id_and_name() {
    for (index, crawler) in registry().crawlers().iter().enumerate() {
        for name in [
            crawler.id.clone(),
            crawler.id.to_uppercase(),
            crawler.name.to_lowercase(),
        ] {
            assert_eq!(
                registry().find(&name).map(|found| usize::from(found.0)),
                Some(index),
                "{name}"
            );
        }
    }
    assert_eq!(
        registry().find("slurp"),
        registry().find("yahoo-slurp"),
        "by its token"
    );
    assert_eq!(registry().find("no such crawler"), None);
}

#[test]
fn documented_caching_times_are_read_and_others_are_unknown() {
    let hours = |id: &str| {
        let crawler = registry().get(registry().find(id).expect("listed"));
        crawler.robots_cache.map(|time| time.as_secs() / 3_600)
    };
    assert_eq!(hours("gptbot"), Some(24), "about 24 h");
    assert_eq!(hours("amazonbot"), Some(24), "24 h, with a remark");
    assert_eq!(hours("duckassistbot"), Some(72));
    assert_eq!(hours("ahrefsbot"), Some(7 * 24), "up to a week");
    assert_eq!(hours("seznambot"), None, "days to weeks");
    assert_eq!(hours("perplexity-user"), None, "not applicable");
}

/// Whatever a client sends, the beginning of a word is compared with a bounded number of markers.
#[test]
fn few_markers_share_a_slot() {
    let most = identify::RegistryMarkers::new(registry().crawlers()).max_markers_per_slot();
    assert!(most <= 32, "{most}");
}

/// A naive search finds the same markers as the index, which looks only where words begin.
#[test]
fn marker_index_agrees_with_naive_search() {
    let markers = registry()
        .crawlers()
        .iter()
        .flat_map(|crawler| &crawler.markers);
    let texts: Vec<&str> = markers
        .map(|marker| marker.trim_start_matches(['=', '^']))
        .collect();
    let index = marker_index::MarkerIndex::new(texts.iter().map(|text| text.as_bytes()));
    let mut seed = 1_u64;
    let mut draw = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for _ in 0..2_000 {
        let mut text = String::new();
        for _ in 0..draw(8) {
            text.push_str(["", " ", "/", "-", "x", "; ", "_", "("][draw(8)]);
            let marker = texts[draw(texts.len())];
            text.push_str(&if draw(2) == 0 {
                marker.to_ascii_uppercase()
            } else {
                marker[..draw(marker.len() + 1)].to_owned()
            });
        }
        let bytes = text.as_bytes();
        let mut expected = std::collections::BTreeSet::new();
        for (place, marker) in texts.iter().enumerate() {
            for start in 0..bytes.len().saturating_sub(marker.len() - 1) {
                let begins = !marker.as_bytes()[0].is_ascii_alphanumeric()
                    || start == 0
                    || !byte_search::is_token_byte(bytes[start - 1]);
                if begins
                    && bytes[start..start + marker.len()].eq_ignore_ascii_case(marker.as_bytes())
                {
                    expected.insert((place, start, start + marker.len()));
                }
            }
        }
        let mut found = std::collections::BTreeSet::new();
        index.scan(
            bytes,
            0,
            |place, start, end| assert!(found.insert((usize::from(place), start, end))),
            |_| (),
        );
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn tokens_of_a_policy_join_identification() {
    let tokens = SiteMarkers::new(vec![
        "IntranetBot".into(),
        "ab".into(),
        "GPTBot-Extra".into(),
        "curlish".into(),
    ]);
    let identify = |user_agent: &str| registry().identify_on_site(user_agent.as_bytes(), &tokens);
    assert_eq!(
        identify("Mozilla/5.0 (compatible; intranetbot/2.0)"),
        Claim::PolicyToken(0)
    );
    assert_eq!(
        identify("MyIntranetBot/2.0 x"),
        identify("MyIntranetBot/2.0"),
        "a part of a word is no token"
    );
    assert_ne!(identify("MyIntranetBot/2.0"), Claim::PolicyToken(0));
    assert_eq!(
        identify("ab"),
        Claim::Tool,
        "two letters stand in too many strings"
    );
    assert_eq!(identify("GPTBot-Extra/1.0"), Claim::PolicyToken(2));
    assert_eq!(identify("GPTBot/1.0"), registry().identify(b"GPTBot/1.0"));
    assert_eq!(
        identify("curl/8.0 curlish"),
        Claim::PolicyToken(3),
        "a token of the owner's beats a library"
    );
    assert_eq!(
        identify("Mozilla/5.0 (X11) like IntranetBot"),
        Claim::Visitor
    );
    assert_eq!(
        identify("IntranetBot-Images/2.0"),
        registry().identify(b"IntranetBot-Images/2.0")
    );
    // So many that the compact automaton is taken.
    let many = SiteMarkers::new(
        (0..500)
            .map(|number| format!("Intranet{number}Bot"))
            .collect(),
    );
    assert_eq!(
        registry().identify_on_site(b"x intranet77bot/1.0", &many),
        Claim::PolicyToken(77)
    );
    assert_eq!(
        registry().identify_on_site(b"Mozilla/5.0 (X11) Firefox/140.0", &many),
        Claim::Visitor
    );
}

#[test]
fn only_the_beginning_of_a_long_field_is_read() {
    let garbage = format!("{} GPTBot/1.0", "x ".repeat(4_096));
    assert_eq!(registry().identify(garbage.as_bytes()), Claim::Tool);
}

proptest! {
    #[test]
    fn any_bytes_are_identified_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), near in "[a-z/;()+.: ]{0,40}(bot|spider|GPTBot|http://)[a-z/;()+.: ]{0,20}") {
        let tokens = SiteMarkers::new(vec!["spider".into()]);
        registry().identify(&bytes);
        // The same around words that make the string worth a closer look.
        for hint in ["bot/1.0", "(Linux; spider;", "a@bot", " +http://", "Safari/ facebookexternalhit Twitterbot"] {
            let (before, after) = bytes.split_at(bytes.len() / 2);
            registry().identify_on_site(&[before, hint.as_bytes(), after].concat(), &tokens);
        }
        registry().identify_on_site(near.as_bytes(), &tokens);
    }
}

#[test]
fn too_short_marker_is_rejected() {
    let own = "- { id: x, name: X, operator: X, purpose: other, binds: star, source: x, marks: [\"^ab\"] }\n";
    let source = crate::yaml::SourceFile {
        name: "own.yaml".into(),
        text: own.into(),
    };
    let found = registry().with_records(&source).expect_err("refused");
    assert_eq!(
        found.items.iter().map(|item| item.id).collect::<Vec<_>>(),
        ["short-mark"],
        "{found:?}"
    );
}

#[test]
fn wrong_record_is_one_error() {
    let whole = "- { id: x, name: X, operator: X, purpose: other, binds: star, source: x, tokens: [X], note: x }\n";
    for (right, wrong, id) in [
        ("id: x, ", "", "missing-field"),
        ("purpose: other, ", "", "missing-field"),
        ("binds: star, ", "", "missing-field"),
        (", source: x", "", "missing-field"),
        ("purpose: other", "purpose: others", "bad-value"),
        ("name: X", "name: [X]", "wrong-type"),
        (whole, "X\n", "wrong-type"),
    ] {
        let source = crate::yaml::SourceFile {
            name: "own.yaml".into(),
            text: whole.replace(right, wrong).into(),
        };
        let found = registry().with_records(&source).expect_err("refused");
        let ids: Vec<_> = found.items.iter().map(|item| item.id).collect();
        assert_eq!(ids, [id], "{right}: {found:?}");
    }
}

#[test]
fn self_given_name_is_found() {
    for (user_agent, name) in [
        ("SomeBot/1.0", Some("SomeBot")),
        (
            "Mozilla/5.0 (compatible; SomeBot/1; +http://a.example/other-bot)",
            Some("SomeBot"),
        ),
        (
            "Mozilla/5.0 (Linux) AppleWebKit/537.36 (KHTML, like Gecko; a-spider/2.0; +http://a.example)",
            Some("a-spider"),
        ),
        ("Fetcher/2 (+http://a.example/bot)", Some("Fetcher")),
        (
            "Mozilla/5.0 (compatible; PriceScraper/1.0; +http://a.example)",
            Some("PriceScraper"),
        ),
        (
            "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1) info@a.example",
            None,
        ),
        ("Mozilla/5.0 (+http://a.example)", None),
        ("", None),
        (
            "PriceHunter/2.0 (bot; +http://x.example)",
            Some("PriceHunter"),
        ),
        (
            "PriceHunter/2.0 (a Robot and a Spider; +http://x.example)",
            Some("PriceHunter"),
        ),
        (
            "Mozilla/5.0 (compatible; PriceHunter/2.0; bot; +http://x.example)",
            Some("PriceHunter"),
        ),
        (
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/130.0 Safari/537.36 PriceHunter/2.0 (bot; +http://x.example)",
            Some("PriceHunter"),
        ),
        ("Mozilla/5.0 (crawler; +http://x.example)", Some("crawler")),
    ] {
        assert_eq!(self_given_name(user_agent.as_bytes()), name, "{user_agent}");
    }
    assert_eq!(self_given_name(&[b'x'; 1_000]).map(str::len), Some(64));
}

#[test]
fn partial_or_generic_name_is_no_product() {
    for (user_agent, name) in [
        (
            "PriceHunter/2.0 (bot; +http://x.example)",
            Some("PriceHunter"),
        ),
        ("PriceHunter (+http://x.example)", Some("PriceHunter")),
        ("The Web Reader 1.0 (bot; +http://x.example)", None),
        ("bot/1.0 (+http://x.example)", None),
        (
            "Mozilla/5.0 (compatible; Price Hunter/1.0; +http://x.example)",
            None,
        ),
    ] {
        assert_eq!(product_name(user_agent.as_bytes()), name, "{user_agent}");
    }
}

/// Every word of every string of people, as a token of a policy.
#[test]
fn tokens_of_visitor_words_match_no_visitor() {
    let mut tokens: Vec<String> = visitor_words().into_iter().collect();
    tokens.extend(["crawler", "scraper", "M bot", "POWER BOT", "iPhone OS"].map(str::to_owned));
    assert!(tokens.len() > 200, "{tokens:?}");
    let all = SiteMarkers::new(tokens.clone());
    for person in visitor_user_agents() {
        for form in [
            person.to_owned(),
            person.to_lowercase(),
            person.to_uppercase(),
        ] {
            assert_eq!(
                registry().identify_on_site(form.as_bytes(), &all),
                Claim::Visitor,
                "{form}"
            );
        }
    }
    for token in &tokens {
        let alone = SiteMarkers::new(vec![token.clone()]);
        let taken = visitor_user_agents().find(|person| {
            registry().identify_on_site(person.as_bytes(), &alone) != Claim::Visitor
        });
        assert_eq!(taken, None, "{token}");
    }
}

/// Bots imitate the strings of people, whose words are no names of theirs.
#[test]
fn tokens_of_visitor_words_match_only_their_bot() {
    let tokens = SiteMarkers::new(
        ["Linux", "AppleWebKit", "Atlas", "bot"]
            .map(str::to_owned)
            .into(),
    );
    let identify = |user_agent: &str| registry().identify_on_site(user_agent.as_bytes(), &tokens);
    assert_eq!(
        identify("Atlas/1.0 (+https://atlas.example/about)"),
        Claim::PolicyToken(2)
    );
    for bot in [
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko; compatible; FoozleBot/1.0; +https://a.example)",
        "PriceHunter/2.0 (bot; +http://x.example)",
        "bot/1.0",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/130.0 Safari/537.36",
    ] {
        assert_eq!(identify(bot), registry().identify(bot.as_bytes()), "{bot}");
    }
}

#[test]
fn only_owner_markers_match_visitors() {
    let instagram = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 Instagram 300.0";
    let token = vec!["Instagram".to_owned()];
    let marked = SiteMarkers::with_markers(
        token.clone(),
        vec![("Instagram".into(), Claim::PolicyToken(0))],
    );
    assert_eq!(
        registry().identify_on_site(instagram.as_bytes(), &marked),
        Claim::PolicyToken(0)
    );
    assert_eq!(
        registry().identify_on_site(instagram.as_bytes(), &SiteMarkers::new(token)),
        Claim::Visitor
    );
    let other = SiteMarkers::with_markers(
        vec!["Instagram".into()],
        vec![("PhotoReader".into(), Claim::PolicyToken(0))],
    );
    assert_eq!(
        registry().identify_on_site(b"Instagram/1.0 (+http://x.example)", &other),
        Claim::UnknownBot
    );
}

/// Strings that differ from a bot's, or from a person's, in one place.
#[test]
fn bot_forms_have_exact_bounds() {
    const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36";
    const PHONE: &str = "Mozilla/5.0 (Linux; Android 10; SM-A105F) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Mobile Safari/537.36";
    for (browser, more, is_bot) in [
        (BROWSER, "(me@b.example)", true),
        (BROWSER, "+probely.com/sos", true),
        (BROWSER, "1.2+build.win", false),
        (BROWSER, "@b.example", false),
        (BROWSER, "adbeat.com/policy", true),
        (BROWSER, "ab.com/policy", false),
        (BROWSER, "1password.com/policy", false),
        (BROWSER, "qtweb.net", false),
        (BROWSER, "Abbott", false),
        (PHONE, "RankBot", true),
        (PHONE, "release.com/def", true),
        (PHONE, "release.abc/def", false),
    ] {
        let user_agent = format!("{browser} {more}");
        assert_eq!(
            identified_name(&user_agent) == "UnknownBot",
            is_bot,
            "{user_agent}"
        );
    }
    for (user_agent, is_bot) in [
        (
            "Opera/9.80 (Windows NT 6.1; adbeat.com/policy) Presto/2.12.388 Version/12.18",
            true,
        ),
        (
            "Mozilla/5.0 (compatible; Foo/1.0) Gecko/20100101 Firefox/115.0",
            false,
        ),
        (
            "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 5.1; Mozilla/4.0 (compatible; SV1))",
            false,
        ),
        (
            "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 5.1; Mozilla/5.0 (compatible; SV1))",
            false,
        ),
        (
            "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 5.1; X (compatible; SV1))",
            true,
        ),
        ("Mozilla/5.0 (Linux; Android 10) adbeat.com/policy", true),
        (
            "Mozilla/5.0 (X11; Linux x86_64; me@b.example) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36",
            true,
        ),
        ("acme/1.0 like googlebot", false),
        ("acme/1.0 www.acme.example", true),
    ] {
        assert_eq!(
            identified_name(user_agent) == "UnknownBot",
            is_bot,
            "{user_agent}"
        );
    }
}

#[test]
fn product_name_is_whole_and_bounded() {
    assert_eq!(product_name(b"FooBot checker"), Some("FooBot"));
    assert_eq!(product_name(b"Mozilla/5.0 Acme/vague Qux/v2"), Some("Qux"));
    let longest = "A".repeat(64);
    let name = |name: &str| product_name(format!("{name}/1.0").as_bytes()).map(str::len);
    assert_eq!(name(&longest), Some(64));
    assert_eq!(name(&format!("{longest}a")), None);
}
