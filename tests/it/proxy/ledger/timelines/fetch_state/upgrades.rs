//! Upgrades in a life: the process before serves a crawler its last robots.txt, and ends or is
//! killed.

use super::*;
use crate::proxy::support::Connection;
use crate::proxy::support::upgrade::{ended, signal};

impl FetchState {
    /// A request over a connection that stays open.
    fn request_over(
        &mut self,
        kept: &mut Connection,
        agent: &str,
        from: &str,
        host: usize,
        path: &str,
    ) -> Response {
        self.asked += 1;
        let target = format!("{path}?request={}", self.asked);
        let head = format!("User-Agent: {agent}\r\nX-Forwarded-For: {from}\r\n");
        kept.send(&format!(
            "GET {target} HTTP/1.1\r\nHost: {}\r\n{head}\r\n",
            HOSTS[host]
        ));
        let response = kept.response("GET");
        find_record(&self.gate, &target);
        self.seen[host] = self.now();
        response
    }

    /// Another process takes over, perhaps with another policy.
    pub fn upgrade(&mut self) {
        let rules = self
            .random
            .percent(50)
            .then(|| some_rules(&mut self.random));
        let (number, host) = (self.random.below(CRAWLERS.len()), self.random.below(2));
        let (fetches, dies) = (self.random.percent(70), self.random.percent(40));
        let says = rules.as_ref().map(said);
        let how = if dies {
            ", the process before is killed"
        } else {
            ""
        };
        self.note(format!(
            "an upgrade, policy: {says:?}, a last fetch: {fetches}{how}"
        ));
        let (before, mut kept) = (self.gate.serving(), self.gate.connect());
        // The host may have been silent for long: this request is one that is seen.
        assert_eq!(self.ask(BYSTANDER, "203.0.113.99", host, "/"), "allowed");
        self.request_over(&mut kept, BYSTANDER, "203.0.113.99", host, "/");
        if let Some(rules) = rules {
            self.gate
                .write_policy("shop", &rules.policy(&HOSTS.join(", "), ""));
        }
        self.gate.upgrade();
        self.accused = 0;
        if let Some(says) = says {
            self.comes_into_force(says);
        }
        if fetches {
            self.last_fetch(&mut kept, number, host);
        }
        let log = |life: &FetchState| {
            let text = life.gate.log.text();
            text.matches("predecessor=\"answered\"").count()
                + text.matches("predecessor=\"lost\"").count()
        };
        let told = log(self);
        if dies {
            signal(before, "KILL");
            self.serve_everyone_since(0.0);
        }
        drop(kept);
        ended(before);
        eventually("the next process knows that it ended", || {
            (log(self) > told).then_some(())
        });
    }

    /// The process before serves a crawler, which then asks the next one.
    fn last_fetch(&mut self, kept: &mut Connection, number: usize, host: usize) {
        let crawler = &CRAWLERS[number];
        let at = self.now();
        let answer = self.request_over(kept, crawler.agent, crawler.address, host, "/robots.txt");
        self.note(format!(
            "{} GET {} of the process before: {}",
            crawler.agent, HOSTS[host], answer.status
        ));
        if answer.status == 503 {
            return self.unreachable(crawler, host);
        }
        let field = |name: &str| answer.field(name).expect("a validator").to_owned();
        let validators = Some((field("etag"), field("last-modified")));
        self.served(
            crawler,
            host,
            Copy {
                said: Said::read(answer.text()),
                at,
                served: at,
                validators,
            },
        );
        if !crawler.honours_delay {
            self.page(number, host);
        }
    }
}
