//! Three instances behind the shipped configuration of nginx, which sends each request to the next
//! one: a day with a rolling restart, a new policy and the loss of the store comes to the kinds of
//! one instance.

use super::{BEFORE, Fleet, instances, kinds, policy, roll_out};
use crate::proxy::support::program::{Program, deployed, free_address, nginx};
use crate::proxy::support::redis::RedisServer;
use crate::proxy::support::{BINGBOT, BROWSER, GPTBOT, Gate, Origin, Setup, eventually};
use std::fs;
use std::net::SocketAddr;

struct Site {
    redis: Option<RedisServer>,
    gates: Vec<Gate>,
    balancer: Program,
    _origin: Origin,
}

fn balancer(instances: &[SocketAddr]) -> Program {
    Program::start(|prepared| {
        let shipped = [1, 2, 3].map(|number| (number, format!("crawlgate-{number}:8080")));
        let mut words: Vec<(String, String)> = vec![(
            "listen 8080;".into(),
            format!("listen {};", prepared.address),
        )];
        words.extend(
            shipped
                .into_iter()
                .map(|(number, name)| match instances.get(number - 1) {
                    Some(address) => (name, address.to_string()),
                    None => (format!("server {name} max_fails=0;"), String::new()),
                }),
        );
        let words: Vec<(&str, String)> = words
            .iter()
            .map(|(old, new)| (old.as_str(), new.clone()))
            .collect();
        nginx(prepared, &deployed("compose/instances/nginx.conf", &words))
    })
}

impl Site {
    fn start(instances: usize, redis: Option<RedisServer>) -> Site {
        let (origin, addresses) = (
            Origin::plain(),
            (0..instances).map(|_| free_address()).collect::<Vec<_>>(),
        );
        let store = redis
            .as_ref()
            .map_or(String::new(), |redis| format!("store: '{}'\n", redis.url()));
        let start = |address: &SocketAddr| {
            let setup = Setup::before(origin.address)
                .policy("shop", &policy("/cart/"))
                .listen(*address);
            fs::write(setup.policies().join("before.txt"), BEFORE).expect("the file from before");
            setup
                .settings(&format!(
                    "trusted_proxies: [127.0.0.1]\nlogs: {{ access: access.log }}\n{store}"
                ))
                .start()
        };
        let gates = addresses.iter().map(start).collect();
        let site = Site {
            redis,
            gates,
            balancer: balancer(&addresses),
            _origin: origin,
        };
        site.wait_until_all_accuse();
        site
    }

    fn wait_until_all_accuse(&self) {
        if self.redis.is_some() {
            Fleet::wait_until_these_accuse(&self.gates);
        }
    }

    fn kind(&self, agent: &str, path: &str) -> String {
        let before: Vec<usize> = self
            .gates
            .iter()
            .map(|gate| kinds(gate, path).len())
            .collect();
        assert!(
            self.balancer.fetch_as(agent, path).status < 500,
            "{}",
            self.balancer.log()
        );
        eventually("a line of an access log", || {
            self.gates
                .iter()
                .zip(&before)
                .find_map(|(gate, before)| kinds(gate, path).into_iter().nth(*before))
        })
    }

    fn ask(&self, agent: &str, path: &str) -> (String, String) {
        let kind = || Some(self.kind(agent, path)).filter(|kind| kind != "unproven");
        (
            format!("{agent} {path}"),
            eventually("a kind that is not `unproven`", kind),
        )
    }

    fn restart_one_after_the_other(&mut self) {
        for place in 0..self.gates.len() {
            self.gates[place].restart("TERM", |_| {});
            self.wait_until_all_accuse();
        }
    }

    /// The store is away, and comes back empty. One instance has none.
    fn lose_the_store(&mut self) {
        let Some(redis) = &mut self.redis else { return };
        redis.program.kill();
        for gate in &self.gates {
            eventually("it is noticed", || {
                instances(gate)["away"].is_object().then_some(())
            });
        }
        assert_eq!(self.kind(BINGBOT, "/cart/while-it-is-away"), "unproven");
        assert_eq!(self.balancer.fetch_as(BROWSER, "/").status, 200);
        assert_eq!(self.balancer.fetch_as(BINGBOT, "/robots.txt").status, 200);
        self.redis.as_mut().expect("a store").program.start_again();
        self.wait_until_all_accuse();
    }
}

/// The same requests of everyone, each at the next instance; the kinds of all.
fn day(mut site: Site) -> Vec<(String, String)> {
    let mut all = vec![
        site.ask(BROWSER, "/cart/1"),
        site.ask(BINGBOT, "/robots.txt"),
        site.ask(BINGBOT, "/"),
        site.ask(BINGBOT, "/cart/2"),
        site.ask(GPTBOT, "/a"),
        site.ask(GPTBOT, "/cart/3"),
    ];
    site.restart_one_after_the_other();
    all.extend([
        site.ask(BINGBOT, "/b"),
        site.ask(BINGBOT, "/cart/4"),
        site.ask(GPTBOT, "/cart/5"),
    ]);
    roll_out(&site.gates, "/cart/, /new/");
    // Both may still use the file from before, which only one instance gave to one of them.
    all.extend([
        site.ask(BINGBOT, "/new/1"),
        site.ask(GPTBOT, "/new/2"),
        site.ask(GPTBOT, "/cart/6"),
    ]);
    site.lose_the_store();
    site.restart_one_after_the_other();
    all.extend([
        site.ask(GPTBOT, "/new/3"),
        site.ask(BINGBOT, "/robots.txt"),
        site.ask(BINGBOT, "/cart/7"),
        site.ask(BINGBOT, "/c"),
        site.ask(BROWSER, "/new/4"),
    ]);
    let served = site
        .gates
        .iter()
        .map(|gate| kinds(gate, "/robots.txt").len() + kinds(gate, "/b").len());
    assert!(
        site.gates.len() == 1 || served.filter(|requests| *requests > 0).count() > 1,
        "the balancer balances"
    );
    all
}

#[test]
fn three_instances_behind_nginx_come_to_the_kinds_of_one() {
    let alone = day(Site::start(1, None));
    for kind in ["violation", "stale_copy", "allowed"] {
        assert!(
            alone.iter().any(|(_, found)| found == kind),
            "{kind}: {alone:?}"
        );
    }
    assert_eq!(day(Site::start(3, Some(RedisServer::start()))), alone);
}

#[test]
fn quick_rolling_restart_behind_nginx_fails_no_request() {
    let mut site = Site::start(3, Some(RedisServer::start()));
    for place in 0..3 {
        let balancer = &site.balancer;
        site.gates[place].restart("TERM", |_| {
            // Each instance has its turn.
            for _ in 0..6 {
                assert_eq!(
                    balancer.fetch_as(BROWSER, "/").status,
                    200,
                    "{}",
                    balancer.log()
                );
            }
        });
    }
    site.wait_until_all_accuse();
}
