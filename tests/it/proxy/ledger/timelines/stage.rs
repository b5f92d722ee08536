//! How a timeline is told to the real binary: what an owner, a crawler, the clock and an operator
//! can do, one event at a time, and what the access log calls each request. Knows nothing of what
//! is right.

use super::cast::*;
use crate::proxy::support::{Gate, Origin, Response, Setup, eventually, read};
use std::collections::HashMap;
use std::io::Read;

/// What happens.
pub enum Event {
    /// The owner changes the policy.
    Policy(Rules),
    /// The owner changes it twice within a second; the crawler fetches both, one after the other.
    TwiceInASecond(&'static str, &'static str, [Rules; 2]),
    /// A host goes to another site.
    Moves(&'static str, Rules),
    /// Hours pass, and the host is in use.
    Pass(i64),
    /// Hours pass, and nobody comes.
    Silence(i64),
    /// Seconds pass, and nobody comes.
    Wait(i64),
    /// As many seconds as the last answer asked for.
    WaitAsTold,
    /// The clock is set.
    SetClock(i64),
    /// crawlgate has noticed that the clock was set.
    Noticed,
    /// From here on all crawlers come from this address.
    From(&'static str),
    /// A crawler fetches robots.txt whole.
    Fetch(&'static str, &'static str),
    /// It asks whether its copy is good, and hears that it is.
    Confirm(&'static str, &'static str),
    /// It asks with the entity tag, or with the date, of the copy that it has, and this is the
    /// answer.
    RevalidateTag(&'static str, &'static str, u16),
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
    /// So many addresses are marked.
    Marked(usize),
    /// The operator releases an address.
    Release(&'static str),
    /// crawlgate is ended by a signal; so many seconds later it is there again.
    Restart(&'static str, i64),
    /// The same, and the owner changes the policy in between.
    RestartWith(&'static str, i64, Rules),
    /// Everything up to now is on disk.
    Written,
    /// It is killed at once, before what happened last is on disk.
    Crash(i64),
    /// The state directory is lost on the way.
    LoseState,
}
use Event::*;

/// Kinds, as the access log has them; a violation with its mark, and a refusal for its pace.
pub const ALLOWED: &str = "allowed";
pub const STALE: &str = "stale_copy";
pub const VIOLATION: &str = "violation";
pub const NEVER: &str = "violation, never_fetched";
pub const UNPROVEN: &str = "unproven";
pub const AMBIGUOUS: &str = "ambiguous";
pub const TOO_FAST: &str = "too_fast";
pub const UNPROVEN_PACE: &str = "unproven, slowed";
pub const IN_TRAP: &str = "trapped";
pub const PERSON: &str = "not_a_crawler";

pub struct Timeline {
    pub name: &'static str,
    /// What is in force at first.
    pub first: Rules,
    /// More lines of the policy; they begin within `enforcement`.
    pub more: &'static str,
    pub events: Vec<Event>,
}

/// One with nothing else in its policy, that begins with everything open.
pub fn timeline(name: &'static str, events: Vec<Event>) -> Timeline {
    Timeline {
        name,
        first: OPEN,
        more: "",
        events,
    }
}

impl Timeline {
    pub fn beginning(self, first: Rules) -> Timeline {
        Timeline { first, ..self }
    }

    pub fn with(self, more: &'static str) -> Timeline {
        Timeline { more, ..self }
    }
}

/// What a crawler keeps of an answer, to ask again with.
#[derive(Clone)]
struct Validators {
    tag: String,
    date: String,
}

pub struct Stage {
    pub gate: Gate,
    more: &'static str,
    /// The hosts of the site; another took the others over, and is not the first to do so.
    hosts: Vec<&'static str>,
    moved: usize,
    from: &'static str,
    asked: usize,
    told_to_wait: i64,
    copies: HashMap<(&'static str, &'static str), Validators>,
}

impl Stage {
    /// crawlgate before an origin, with every host in use from now on.
    pub fn set(timeline: &Timeline) -> Stage {
        let hosts = vec![APEX, WWW];
        let policy = timeline.first.policy(&hosts.join(", "), timeline.more);
        let setup = Setup::before(Origin::plain().address)
            .policy("shop", &policy)
            .with_clock();
        let log = setup
            .policies()
            .parent()
            .expect("a directory")
            .join("access.log");
        let gate = setup
            .settings("trusted_proxies: [127.0.0.1]")
            .argument("--access-log")
            .argument(log.display());
        let mut stage = Stage {
            gate: gate.start(),
            more: timeline.more,
            hosts,
            moved: 0,
            from: "",
            asked: 0,
            told_to_wait: 0,
            copies: HashMap::new(),
        };
        for host in [APEX, WWW] {
            stage.ask(BYSTANDER, host, "/");
        }
        stage
    }

    pub fn play(&mut self, event: &Event, name: &str) {
        match *event {
            Policy(rules) => self.publish("shop", &rules.policy(&self.hosts.join(", "), self.more)),
            TwiceInASecond(agent, host, versions) => self.change_twice(agent, host, versions),
            Moves(host, rules) => {
                self.hosts.retain(|other| *other != host);
                if self.moved > 0 {
                    let before = format!("other-{}", self.moved);
                    std::fs::remove_file(self.gate.setup.policies().join(format!("{before}.yaml")))
                        .expect("removed");
                    let ended = self.gate.command(&["reload", "--remove", &before]);
                    assert!(
                        ended.status.success(),
                        "the site that had it last is removed: {ended:?}"
                    );
                }
                self.moved += 1;
                let (rest, other) = (self.hosts.join(", "), format!("other-{}", self.moved));
                self.gate
                    .write_policy("shop", &OPEN.policy(&rest, self.more));
                self.publish(&other, &rules.policy(host, self.more));
            }
            Pass(hours) => {
                // Somebody comes every six hours.
                for passed in (0..hours).step_by(6) {
                    self.gate.live_through((hours - passed).min(6) * HOUR);
                    // Both first, and then what the log says of them: it is written a moment later.
                    let asked =
                        [APEX, WWW].map(|host| self.send("GET", BYSTANDER, host, "/", "").0);
                    for target in asked {
                        assert_eq!(self.record(&target)["kind"], ALLOWED, "{name}");
                    }
                }
            }
            Silence(hours) => self.gate.live_through(hours * HOUR),
            Wait(seconds) => self.gate.live_through(seconds),
            WaitAsTold => self.gate.live_through(self.told_to_wait),
            SetClock(seconds) => self.gate.set_clock(seconds),
            Noticed => self.gate.log.wait_for("set_by="),
            From(address) => self.from = address,
            Fetch(agent, host) => {
                let response = self.request("GET", agent, host, "/robots.txt", "").status;
                assert!([200, 503].contains(&response), "{name}: {response}");
            }
            Confirm(agent, host) => {
                let etag = self.gate.ask("HEAD", host, "/robots.txt", "");
                let etag = etag.field("etag").expect("an entity tag");
                let conditional = format!("If-None-Match: {etag}\r\n");
                assert_eq!(
                    self.request("GET", agent, host, "/robots.txt", &conditional)
                        .status,
                    304,
                    "{name}"
                );
            }
            RevalidateTag(agent, host, status) => {
                let conditional = format!("If-None-Match: {}\r\n", self.copy(agent, host).tag);
                assert_eq!(
                    self.request("GET", agent, host, "/robots.txt", &conditional)
                        .status,
                    status,
                    "{name}"
                );
            }
            Revalidate(agent, host, status) => {
                let conditional = format!("If-Modified-Since: {}\r\n", self.copy(agent, host).date);
                assert_eq!(
                    self.request("GET", agent, host, "/robots.txt", &conditional)
                        .status,
                    status,
                    "{name}"
                );
            }
            Head(agent, host) => {
                assert_eq!(
                    self.request("HEAD", agent, host, "/robots.txt", "").status,
                    200,
                    "{name}"
                );
            }
            HangUp(agent, host) => self.hang_up(agent, host),
            Pause => assert!(
                self.gate
                    .command(&["pause", "--all", "--robots-txt"])
                    .status
                    .success()
            ),
            Resume => assert!(self.gate.command(&["resume"]).status.success()),
            Ask(agent, host, path, kind) => {
                let came = self.ask(agent, host, path);
                assert_eq!(
                    came, kind,
                    "{name}: {agent} asks {host} for {path}, request {}",
                    self.asked
                );
            }
            Marked(number) => {
                let listed = self.gate.command(&["traps", "--json"]);
                let marks: serde_json::Value =
                    serde_json::from_slice(&listed.stdout).expect("JSON");
                assert_eq!(
                    marks.as_array().map(Vec::len),
                    Some(number),
                    "{name}: {marks}"
                );
            }
            Release(address) => assert!(
                self.gate
                    .command(&["traps", "--release", address])
                    .status
                    .success()
            ),
            Restart(signal, seconds) => self.restart(signal, seconds, |_| {}),
            RestartWith(signal, seconds, rules) => {
                let text = rules.policy(&self.hosts.join(", "), self.more);
                self.restart(signal, seconds, |gate| gate.write_policy("shop", &text));
            }
            Written => self.gate.wait_until_stored(),
            Crash(seconds) => self.gate.restart("KILL", |gate| {
                gate.write_clock(seconds, 0);
            }),
            LoseState => self.restart("TERM", 5, |gate| {
                std::fs::remove_dir_all(gate.path("state")).expect("the state is removed");
            }),
        }
    }

    fn publish(&self, site: &str, policy: &str) {
        self.gate.write_policy(site, policy);
        let reloaded = self.gate.command(&["reload"]);
        assert!(reloaded.status.success(), "{reloaded:?}");
    }

    fn copy(&self, agent: &'static str, host: &'static str) -> Validators {
        self.copies
            .get(&(agent, host))
            .expect("it has a copy")
            .clone()
    }

    /// Tried until both fall into one second; that they do depends on when the first begins.
    fn change_twice(&mut self, agent: &'static str, host: &'static str, versions: [Rules; 2]) {
        let mut number = 0;
        eventually("two versions in one second", || {
            number += 1;
            let mut dates = Vec::new();
            for rules in versions {
                self.publish(
                    "shop",
                    &rules
                        .numbered(number)
                        .policy(&self.hosts.join(", "), self.more),
                );
                assert_eq!(
                    self.request("GET", agent, host, "/robots.txt", "").status,
                    200
                );
                dates.push(self.copy(agent, host).date);
            }
            (dates[0] == dates[1]).then_some(())
        });
    }

    fn restart(&mut self, signal: &str, seconds: i64, meanwhile: impl FnOnce(&Gate)) {
        if signal == "KILL" {
            self.gate.wait_until_stored();
        }
        self.gate.restart(signal, |gate| {
            gate.write_clock(seconds, 0);
            meanwhile(gate);
        });
    }

    /// The answer; returns when the request is over for crawlgate too.
    fn request(
        &mut self,
        method: &str,
        agent: &'static str,
        host: &'static str,
        target: &str,
        headers: &str,
    ) -> Response {
        let (target, response) = self.send(method, agent, host, target, headers);
        self.record(&target);
        response
    }

    /// The target with the number of the request, and the answer.
    fn send(
        &mut self,
        method: &str,
        agent: &'static str,
        host: &'static str,
        target: &str,
        headers: &str,
    ) -> (String, Response) {
        self.asked += 1;
        let target = format!("{target}?request={}", self.asked);
        let from = if self.from.is_empty() {
            "192.0.2.200"
        } else {
            self.from
        };
        let headers = format!("User-Agent: {agent}\r\nX-Forwarded-For: {from}\r\n{headers}");
        let response = self.gate.ask(method, host, &target, &headers);
        let field = |name: &str| response.field(name).map(str::to_owned);
        if let Some((tag, date)) = field("etag")
            .zip(field("last-modified"))
            .filter(|_| method == "GET")
        {
            self.copies.insert((agent, host), Validators { tag, date });
        }
        (target, response)
    }

    /// What the access log calls a request.
    fn ask(&mut self, agent: &'static str, host: &'static str, path: &str) -> String {
        let response = self.request("GET", agent, host, path, "");
        let status = response.status;
        let record = self.record(&format!("{path}?request={}", self.asked));
        let kind = record["kind"].as_str().expect("a kind").to_owned();
        if let Some(seconds) = response.field("retry-after") {
            self.told_to_wait = seconds.parse().expect("whole seconds");
        }
        let statuses: &[u16] = match kind.as_str() {
            "violation" | "ambiguous" | "trapped" | "impostor" => &[403],
            "unproven" => &[403, 429],
            "too_fast" => &[429],
            _ => &[200, 503],
        };
        assert!(statuses.contains(&status), "{kind} is answered {status}");
        assert_eq!(
            status == 429,
            response.field("retry-after").is_some() && status != 503,
            "{kind}"
        );
        match (record["never_fetched"] == true, kind.as_str(), status) {
            (true, ..) => kind + ", never_fetched",
            (_, "unproven", 429) => UNPROVEN_PACE.to_owned(),
            _ => kind,
        }
    }

    /// The line of the access log.
    fn record(&self, target: &str) -> serde_json::Value {
        find_record(&self.gate, target)
    }

    /// Reads the beginning of robots.txt and goes. Segments and windows are small, so that the rest
    /// is not in the system's buffers by then.
    fn hang_up(&mut self, agent: &str, host: &str) {
        use socket2::{Domain, Protocol, Socket, Type};
        self.asked += 1;
        let target = format!("/robots.txt?request={}", self.asked);
        let socket =
            Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).expect("a socket");
        socket.set_recv_buffer_size(1).expect("a small window");
        socket.set_tcp_mss(536).expect("small segments");
        socket
            .connect(&self.gate.address.into())
            .expect("a connection");
        let mut stream = std::net::TcpStream::from(socket);
        std::io::Write::write_all(
            &mut stream,
            format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\n\r\n")
                .as_bytes(),
        )
        .expect("sent");
        stream.read_exact(&mut [0; 200]).expect("the beginning");
        drop(stream);
        let record = self.record(&target);
        assert_eq!(record["kind"], "allowed");
    }
}

/// A request's line of the access log, which is written when the request is over.
pub fn find_record(gate: &Gate, target: &str) -> serde_json::Value {
    let wanted = format!("\"{target}\"");
    let is_wanted = |line: &&str| line.contains(&wanted) && line.ends_with('\n');
    let look = || {
        read(&gate.path("access.log"))
            .split_inclusive('\n')
            .rev()
            .find(is_wanted)
            .map(str::to_owned)
    };
    let line = eventually(&format!("{target} in the access log"), look);
    serde_json::from_str(&line).expect("JSON")
}
