//! Who is called a violator, and who is not: timelines of what a crawler was given and what it did, each told to the real
//! binary by a clock that the test controls.

#![cfg(feature = "proxy")]

mod support;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Read;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{BINGBOT, BROWSER, Gate, Origin, Setup, eventually, read};

const GOOGLEBOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
const GOOGLE_IMAGES: &str = "Googlebot-Image/1.0";
/// Keeps a robots.txt for 72 hours, by its operator's page.
const THREE_DAYS: &str = "DuckAssistBot/1.2; (+http://duckduckgo.com/duckassistbot.html)";
/// Comes all the time and keeps to the rules: the host is in use.
const BYSTANDER: &str = "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)";
/// Does not follow `*` by its operator's own word, and no group names it.
const NOT_BOUND: &str = "AdsBot-Google (+http://www.google.com/adsbot.html)";

const APEX: &str = "shop.example";
const WWW: &str = "www.shop.example";
const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;

/// What robots.txt says to everybody.
#[derive(Clone, Copy)]
enum Rules {
    /// `/never/` is closed.
    Open,
    /// `/a/` as well.
    WithoutA,
    /// `/a/` and `/b/` as well.
    WithoutAAndB,
    /// As many versions as one likes, each of which closes one more path, none of them `/a/`.
    Numbered(usize),
    /// As `Open`, and so long that it takes several writes.
    Long,
}

/// What happens.
enum Event {
    /// The owner changes the policy.
    Policy(Rules),
    /// Hours pass, and the host is in use.
    Pass(i64),
    /// Hours pass, and nobody comes.
    Silence(i64),
    /// The clock is set.
    SetClock(i64),
    /// crawlgate has noticed that the clock was set.
    Noticed,
    /// A crawler fetches robots.txt whole.
    Fetch(&'static str, &'static str),
    /// It asks whether its copy is good, and hears that it is.
    Confirm(&'static str, &'static str),
    /// It asks with the date of the copy that it has, and this is the answer.
    Revalidate(&'static str, &'static str, u16),
    /// It asks with HEAD.
    Head(&'static str, &'static str),
    /// It hangs up in the middle of it.
    HangUp(&'static str, &'static str),
    /// robots.txt answers 503.
    Pause,
    Resume,
    /// A crawler asks for a page, and this is what its request is called.
    Ask(&'static str, &'static str, &'static str, &'static str),
    /// crawlgate is ended by a signal; so many seconds later it is there again.
    Restart(&'static str, i64),
    /// The same, and the owner changes the policy in between.
    RestartWith(&'static str, i64, Rules),
    /// The state directory is lost on the way.
    LoseState,
}
use Event::*;
use Rules::*;

/// Kinds, as the access log has them; a violation with its mark.
const ALLOWED: &str = "allowed";
const STALE: &str = "stale_copy";
const VIOLATION: &str = "violation";
const NEVER: &str = "violation, never_fetched";
const UNPROVEN: &str = "unproven";

struct Timeline {
    name: &'static str,
    /// More lines of `enforcement`.
    enforcement: &'static str,
    events: Vec<Event>,
}

fn timelines() -> Vec<Timeline> {
    let day = || Pass(25);
    let timeline = |name, events| Timeline { name, enforcement: "", events };
    vec![
        timeline(
            "changed under its feet",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/a/", ALLOWED),
                Policy(WithoutA),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Ask(BINGBOT, APEX, "/never/", VIOLATION),
                Pass(23),
                Ask(BINGBOT, APEX, "/a/", STALE),
            ],
        ),
        timeline(
            "fetched the new one while holding the old",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WithoutA),
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Policy(WithoutAAndB),
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Ask(BINGBOT, APEX, "/b/", STALE),
                Pass(23),
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Pass(2),
                Ask(BINGBOT, APEX, "/a/", VIOLATION),
                Ask(BINGBOT, APEX, "/b/", VIOLATION),
            ],
        ),
        timeline(
            "held past grace",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WithoutA),
                Pass(23),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Pass(2),
                Ask(BINGBOT, APEX, "/a/", NEVER),
            ],
        ),
        timeline(
            "never fetched on a watched host",
            vec![
                day(),
                Ask(BINGBOT, APEX, "/never/", NEVER),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/never/", VIOLATION),
                Ask(BYSTANDER, APEX, "/never/", NEVER),
            ],
        ),
        timeline(
            "on a host just started",
            vec![
                Ask(BINGBOT, APEX, "/never/", UNPROVEN),
                // It may go by what another server gave it yesterday, whatever it fetched since.
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/never/", UNPROVEN),
                Policy(WithoutA),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Pass(23),
                Ask(BYSTANDER, APEX, "/never/", UNPROVEN),
                Pass(2),
                Ask(BYSTANDER, APEX, "/never/", NEVER),
            ],
        ),
        timeline(
            "a host that nobody asked for, announced before the world knew",
            vec![
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Silence(60),
                Ask(BINGBOT, APEX, "/never/", UNPROVEN),
                day(),
                Ask(BINGBOT, APEX, "/never/", NEVER),
            ],
        ),
        timeline(
            "72-hour cachers",
            vec![
                Pass(60),
                Ask(THREE_DAYS, APEX, "/never/", UNPROVEN),
                Pass(13),
                Ask(THREE_DAYS, APEX, "/never/", NEVER),
                Fetch(THREE_DAYS, APEX),
                Fetch(BINGBOT, APEX),
                Policy(WithoutA),
                Pass(71),
                Ask(THREE_DAYS, APEX, "/a/", STALE),
                Ask(BINGBOT, APEX, "/a/", NEVER),
                Pass(2),
                Ask(THREE_DAYS, APEX, "/a/", NEVER),
            ],
        ),
        timeline(
            "shared caches",
            vec![
                day(),
                Fetch(GOOGLE_IMAGES, APEX),
                Policy(WithoutA),
                Ask(GOOGLEBOT, APEX, "/a/", STALE),
                Ask(GOOGLEBOT, APEX, "/never/", VIOLATION),
                Ask(BINGBOT, APEX, "/a/", NEVER),
            ],
        ),
        timeline(
            "304",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Pass(20),
                Confirm(BINGBOT, APEX),
                Policy(WithoutA),
                Pass(23),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Pass(2),
                Ask(BINGBOT, APEX, "/a/", NEVER),
            ],
        ),
        timeline(
            "304 to a date",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Revalidate(BINGBOT, APEX, 304),
                Policy(WithoutA),
                Revalidate(BINGBOT, APEX, 200),
                Revalidate(BINGBOT, APEX, 304),
            ],
        ),
        timeline(
            "no 304 to a date that the clock has yet to come to",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                SetClock(-3 * HOUR),
                Noticed,
                Policy(WithoutA),
                // Its copy is the newer one by its date, and is not what is in force.
                Revalidate(BINGBOT, APEX, 200),
            ],
        ),
        timeline(
            "HEAD gives nobody a copy",
            vec![day(), Head(BINGBOT, APEX), Policy(WithoutA), Ask(BINGBOT, APEX, "/a/", NEVER)],
        ),
        timeline(
            "nor does an answer that was broken off",
            vec![
                Policy(Long),
                day(),
                HangUp(BINGBOT, APEX),
                Policy(WithoutA),
                Ask(BINGBOT, APEX, "/a/", NEVER),
                Policy(Long),
                Fetch(BINGBOT, APEX),
                Policy(WithoutA),
                Ask(BINGBOT, APEX, "/a/", STALE),
            ],
        ),
        timeline(
            "apex and www are two hosts",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WithoutA),
                Ask(BINGBOT, WWW, "/a/", NEVER),
                Ask(BINGBOT, APEX, "/a/", STALE),
            ],
        ),
        Timeline {
            name: "behind a cache nobody knows who fetched what",
            enforcement: "behind_cache: 2h",
            events: vec![
                Pass(25),
                Ask(BINGBOT, APEX, "/never/", UNPROVEN),
                Pass(2),
                Ask(BINGBOT, APEX, "/never/", VIOLATION),
                Policy(WithoutA),
                Pass(25),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Pass(2),
                Ask(BINGBOT, APEX, "/a/", VIOLATION),
            ],
        },
        timeline(
            "forged visits",
            vec![
                // Somebody else with its name: on a new host, and while it holds an older copy.
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/never/", UNPROVEN),
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WithoutA),
                Fetch(BINGBOT, APEX),
                Fetch(BINGBOT, APEX),
                Confirm(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/a/", STALE),
            ],
        ),
        timeline(
            "a restart",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WithoutA),
                Restart("TERM", 20),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Ask(BYSTANDER, APEX, "/a/", NEVER),
                RestartWith("TERM", 20, WithoutAAndB),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Fetch(BINGBOT, APEX),
                Ask(BYSTANDER, APEX, "/b/", NEVER),
            ],
        ),
        timeline(
            "a restart that took long: somebody else may have served",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WithoutA),
                Restart("TERM", 5 * MINUTE),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Ask(BYSTANDER, APEX, "/never/", UNPROVEN),
                Pass(23),
                Ask(BYSTANDER, APEX, "/never/", UNPROVEN),
                Pass(2),
                Ask(BYSTANDER, APEX, "/never/", NEVER),
            ],
        ),
        timeline(
            "kill -9",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WithoutA),
                Pass(1),
                Restart("KILL", 5),
                Ask(BINGBOT, APEX, "/a/", STALE),
                // What was served in the last second is not known: it may have been to this one.
                Ask(BYSTANDER, APEX, "/a/", VIOLATION),
                Policy(WithoutAAndB),
                Ask(BYSTANDER, APEX, "/b/", STALE),
                Ask(BYSTANDER, APEX, "/never/", VIOLATION),
            ],
        ),
        timeline(
            "kill -9 while the policy changes",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                RestartWith("KILL", 5, WithoutA),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Ask(BYSTANDER, APEX, "/a/", STALE),
            ],
        ),
        timeline(
            "lost state",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WithoutA),
                Fetch(BINGBOT, APEX),
                LoseState,
                // It may go by its first copy, of which nobody knows any more.
                Ask(BINGBOT, APEX, "/a/", UNPROVEN),
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/a/", UNPROVEN),
                day(),
                Ask(BINGBOT, APEX, "/a/", NEVER),
            ],
        ),
        timeline(
            "the clock is set back",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                SetClock(-3 * HOUR),
                Ask(BYSTANDER, APEX, "/never/", UNPROVEN),
                Policy(WithoutA),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Noticed,
                Pass(23),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Ask(BYSTANDER, APEX, "/never/", UNPROVEN),
                Pass(2),
                Ask(BYSTANDER, APEX, "/never/", NEVER),
            ],
        ),
        timeline(
            "the clock is set forward",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WithoutA),
                SetClock(30 * HOUR),
                // Its copy is a minute old, whatever the clock says.
                Ask(BINGBOT, APEX, "/a/", UNPROVEN),
                SetClock(-30 * HOUR),
                Ask(BINGBOT, APEX, "/a/", STALE),
            ],
        ),
        timeline(
            "65 versions in a day",
            (0..66)
                .flat_map(|number| [Policy(Numbered(number)), Fetch(BINGBOT, APEX)])
                .collect::<Vec<_>>()
                .into_iter()
                .fold(vec![day()], |mut events, event| {
                    events.push(event);
                    events
                })
                .into_iter()
                .chain([
                    Policy(WithoutAAndB),
                    // What it was served first is not known any more, and may have allowed anything.
                    Ask(BINGBOT, APEX, "/never/", STALE),
                    Ask(BYSTANDER, APEX, "/never/", NEVER),
                    Pass(20),
                    Fetch(BINGBOT, APEX),
                    Pass(5),
                    Ask(BINGBOT, APEX, "/never/", VIOLATION),
                ])
                .collect(),
        ),
        timeline(
            "a copy outlasts a pause of robots.txt",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WithoutA),
                Pass(20),
                Pause,
                Fetch(BINGBOT, APEX),
                Resume,
                Pass(10),
                // RFC 9309 section 2.4: a copy may be used for longer where robots.txt is unreachable.
                Ask(BINGBOT, APEX, "/a/", STALE),
            ],
        ),
        timeline(
            "what is no violation in any version",
            vec![
                day(),
                Ask(BINGBOT, APEX, "/x/../never/", "ambiguous"),
                Ask(NOT_BOUND, APEX, "/never/", "not_bound"),
                Ask(BROWSER, APEX, "/never/", "not_a_crawler"),
                Ask(BINGBOT, APEX, "/robots.txt", ALLOWED),
            ],
        ),
    ]
}

fn policy(rules: Rules, enforcement: &str) -> String {
    let mut closed = vec!["/never/".to_owned()];
    match rules {
        Open => {}
        WithoutA => closed.push("/a/".into()),
        WithoutAAndB => closed.extend(["/a/".into(), "/b/".into()]),
        Numbered(number) => closed.push(format!("/numbered/{number}/")),
        Long => closed.extend((0..6_000).map(|number| format!("/long/{}/{number}/", "x".repeat(50)))),
    }
    let mut text = format!(
        "hosts: [{APEX}, {WWW}]\nrobots:\n  origin: replace\n  groups:\n    - agents: ['*']\n      disallow:\n"
    );
    for path in closed {
        let _ = writeln!(text, "        - {path}");
    }
    let _ = writeln!(text, "enforcement:\n  mode: enforce\n  {enforcement}");
    text
}

struct Stage {
    gate: Gate,
    enforcement: &'static str,
    asked: usize,
    /// Last-Modified of the copies that crawlers have, by crawler and host.
    dates: HashMap<(&'static str, &'static str), String>,
}

impl Stage {
    fn play(&mut self, event: &Event, name: &str) {
        match *event {
            Policy(rules) => {
                self.gate.write_policy("shop", &policy(rules, self.enforcement));
                let reloaded = self.gate.command(&["reload"]);
                assert!(reloaded.status.success(), "{name}: {reloaded:?}");
            }
            Pass(hours) => {
                // Somebody comes every six hours.
                for passed in (0..hours).step_by(6) {
                    self.gate.live_through((hours - passed).min(6) * HOUR);
                    for host in [APEX, WWW] {
                        assert_eq!(self.ask(BYSTANDER, host, "/"), ALLOWED, "{name}");
                    }
                }
            }
            Silence(hours) => self.gate.live_through(hours * HOUR),
            SetClock(seconds) => self.gate.set_clock(seconds),
            Noticed => self.gate.log.wait_for("the clock was set, or the machine slept"),
            Fetch(agent, host) => {
                let response = self.request("GET", agent, host, "/robots.txt", "");
                assert!([200, 503].contains(&response), "{name}: {response}");
            }
            Confirm(agent, host) => {
                let etag = self.gate.ask("HEAD", host, "/robots.txt", "");
                let etag = etag.field("etag").expect("an entity tag");
                let conditional = format!("If-None-Match: {etag}\r\n");
                assert_eq!(self.request("GET", agent, host, "/robots.txt", &conditional), 304, "{name}");
            }
            Revalidate(agent, host, status) => {
                let date = self.dates.get(&(agent, host)).expect("it has a copy").clone();
                let conditional = format!("If-Modified-Since: {date}\r\n");
                assert_eq!(self.request("GET", agent, host, "/robots.txt", &conditional), status, "{name}");
            }
            Head(agent, host) => {
                assert_eq!(self.request("HEAD", agent, host, "/robots.txt", ""), 200, "{name}");
            }
            HangUp(agent, host) => self.hang_up(agent, host),
            Pause => assert!(self.gate.command(&["pause", "--robots-txt"]).status.success()),
            Resume => assert!(self.gate.command(&["resume"]).status.success()),
            Ask(agent, host, path, kind) => {
                let came = self.ask(agent, host, path);
                assert_eq!(came, kind, "{name}: {agent} asks {host} for {path}, request {}", self.asked);
            }
            Restart(signal, seconds) => self.restart(signal, seconds, |_| {}),
            RestartWith(signal, seconds, rules) => {
                let text = policy(rules, self.enforcement);
                self.restart(signal, seconds, |gate| gate.write_policy("shop", &text));
            }
            LoseState => self.restart("TERM", 5, |gate| {
                std::fs::remove_dir_all(gate.path("state")).expect("the state is removed");
            }),
        }
    }

    fn restart(&mut self, signal: &str, seconds: i64, meanwhile: impl FnOnce(&Gate)) {
        if signal == "KILL" {
            self.wait_until_written();
        }
        self.gate.restart(signal, |gate| {
            gate.write_clock(seconds, 0);
            meanwhile(gate);
        });
    }

    /// Everything up to now is on disk: a request at this moment is followed by a stamp of this moment or later.
    fn wait_until_written(&self) {
        let now = self.now();
        eventually("the ledger is written", || {
            let stamp: serde_json::Value =
                serde_json::from_str(&read(&self.gate.path("state/ledger/alive.json"))).ok()?;
            (stamp["at"].as_i64()? > now).then_some(())
        });
    }

    fn now(&self) -> i64 {
        let clock = read(&self.gate.path("clock"));
        let shift: i64 = clock.split_whitespace().filter_map(|word| word.strip_suffix('s')?.parse::<i64>().ok()).sum();
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        i64::try_from(since.as_secs()).expect("before the end of time") + shift
    }

    /// The status; returns when the request is over for crawlgate too.
    fn request(&mut self, method: &str, agent: &'static str, host: &'static str, target: &str, headers: &str) -> u16 {
        self.asked += 1;
        let target = format!("{target}?request={}", self.asked);
        let response = self.gate.ask(method, host, &target, &format!("User-Agent: {agent}\r\n{headers}"));
        self.record(&target);
        if let Some(date) = response.field("last-modified").filter(|_| method == "GET") {
            self.dates.insert((agent, host), date.to_owned());
        }
        response.status
    }

    /// What the access log calls a request.
    fn ask(&mut self, agent: &'static str, host: &'static str, path: &str) -> String {
        let status = self.request("GET", agent, host, path, "");
        let record = self.record(&format!("{path}?request={}", self.asked));
        let kind = record["kind"].as_str().expect("a kind").to_owned();
        let refused = ["violation", "unproven", "ambiguous"].contains(&kind.as_str());
        assert_eq!(status == 403, refused, "{kind} is answered {status}");
        match record["never_fetched"] == true {
            true => kind + ", never_fetched",
            false => kind,
        }
    }

    fn record(&self, target: &str) -> serde_json::Value {
        let wanted = format!("\"{target}\"");
        let line = eventually(&format!("{target} in the access log"), || {
            read(&self.gate.path("access.log")).lines().rev().find(|line| line.contains(&wanted)).map(str::to_owned)
        });
        serde_json::from_str(&line).expect("JSON")
    }

    /// Reads the beginning of robots.txt and goes. Segments and windows are small, so that the rest is not in the system's
    /// buffers by then.
    fn hang_up(&mut self, agent: &str, host: &str) {
        use socket2::{Domain, Protocol, Socket, Type};
        self.asked += 1;
        let target = format!("/robots.txt?request={}", self.asked);
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).expect("a socket");
        socket.set_recv_buffer_size(1).expect("a small window");
        socket.set_tcp_mss(536).expect("small segments");
        socket.connect(&self.gate.address.into()).expect("a connection");
        let mut stream = std::net::TcpStream::from(socket);
        std::io::Write::write_all(
            &mut stream,
            format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\n\r\n").as_bytes(),
        )
        .expect("sent");
        stream.read_exact(&mut [0; 200]).expect("the beginning");
        drop(stream);
        let record = self.record(&target);
        assert_eq!(record["kind"], "allowed");
    }
}

fn play(timeline: &Timeline) -> Stage {
    let origin = Origin::plain();
    let setup = Setup::before(origin.address).policy("shop", &policy(Open, timeline.enforcement)).with_clock();
    let log = setup.policies().parent().expect("a directory").join("access.log");
    let gate = setup.argument("--access-log").argument(log.display()).start();
    let mut stage = Stage { gate, enforcement: timeline.enforcement, asked: 0, dates: HashMap::new() };
    // The host is in use from now on.
    for host in [APEX, WWW] {
        stage.ask(BYSTANDER, host, "/");
    }
    for event in &timeline.events {
        stage.play(event, timeline.name);
    }
    stage
}

#[test]
fn every_timeline_ends_as_the_design_says() {
    let timelines = timelines();
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(timeline) = timelines.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(panic) = catch_unwind(|| drop(play(timeline))) {
                let said = panic.downcast_ref::<String>().cloned();
                let said = said.unwrap_or_else(|| format!("{} failed", timeline.name));
                failures.lock().expect("nobody panics while noting").push(said);
            }
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
    let failures = failures.into_inner().expect("nobody panics while noting");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_clock_of_a_developer_is_refused_where_others_can_connect() {
    let setup = Setup::before(Origin::nowhere()).policy("shop", &policy(Open, "")).with_clock();
    let (said, status) = setup.listen("0.0.0.0:0".parse().expect("an address")).fail();
    assert_eq!(status.code(), Some(3));
    assert!(said.contains("--clock is for development") && said.contains("0.0.0.0"), "{said}");
}

/// One violation, as each of those tells it that an owner looks at.
#[test]
fn log_metrics_answer_and_policy_tests_call_a_request_the_same() {
    let timeline = Timeline {
        name: "alike",
        enforcement: "",
        events: vec![
            Ask(BINGBOT, APEX, "/never/", UNPROVEN),
            Pass(25),
            Ask(BINGBOT, APEX, "/never/", NEVER),
            Fetch(BINGBOT, APEX),
            Ask(BINGBOT, APEX, "/never/", VIOLATION),
            Policy(WithoutA),
            Ask(BINGBOT, APEX, "/a/", STALE),
        ],
    };
    let stage = play(&timeline);
    for kind in ["unproven", "never_fetched", "violation"] {
        let series = format!("crawlgate_violations_total{{crawler=\"bingbot\",kind=\"{kind}\",site=\"shop\"}}");
        stage.gate.wait_for_metric(&series, 1.0);
    }
    for (verdict, action, count) in
        [("unproven", "block", 1.0), ("violation", "block", 2.0), ("stale_copy", "pass", 1.0)]
    {
        stage.gate.wait_for_metric(
            &format!("crawlgate_requests_total{{action=\"{action}\",crawler=\"bingbot\",site=\"shop\",verdict=\"{verdict}\"}}"),
            count,
        );
    }
    let tests = "tests:
  - { agent: bingbot, path: /never/, expect: { kind: unproven, action: block } }
  - { agent: bingbot, path: /never/, held: none, expect: { kind: violation, never_fetched: yes, action: block } }
  - { agent: bingbot, path: /never/, held: current, expect: { kind: violation, never_fetched: no, action: block } }
  - { agent: bingbot, path: /a/, held: 'Disallow:', expect: { kind: stale_copy, action: pass } }
";
    stage.gate.write_policy("shop", &(policy(WithoutA, "") + tests));
    let checked = stage.gate.command(&["reload"]);
    assert!(checked.status.success(), "{checked:?}");
}
