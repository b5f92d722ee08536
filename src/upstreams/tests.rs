//! Tests of load balancing: which of an origin's servers a request goes to, and how failed requests
//! and health checks change that.

use super::server::{AdmissionRefusal, InFlightGuard};
use super::*;
use crate::crawlers::Registry;
use crate::settings::{
    CapacitySettings, EjectionSettings, HealthSettings, LoadBalancing, OriginServerAddress,
};
use pingora_core::{Error, ErrorType};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::task::Poll;

const MINUTE: Duration = Duration::from_secs(60);

fn origin_with_servers(hosts: &[&str]) -> OriginSettings {
    let server = |host: &&str| OriginServerAddress {
        tls: false,
        host: (*host).to_owned(),
        port: 8080,
        socket: None,
    };
    OriginSettings::with_servers(hosts.iter().map(server))
}

/// The same, known to a name server that is not there.
fn unresolved_origin(hosts: &[&str]) -> OriginSettings {
    OriginSettings {
        resolvers: vec!["127.0.0.1:1".parse().expect("an address")],
        ..origin_with_servers(hosts)
    }
}

fn new_upstreams(origins: &[OriginSettings]) -> Upstreams {
    Upstreams::new(origins, &Metrics::new(), Clock::default()).expect("no files")
}

fn routing_facts(is_repeatable: bool) -> RoutingFacts<'static> {
    RoutingFacts {
        host: b"shop.example",
        target: b"/",
        client: None,
        is_crawler: false,
        verified: None,
        is_search: false,
        is_repeatable,
        monotonic: Duration::ZERO,
    }
}

fn crawler_facts() -> RoutingFacts<'static> {
    RoutingFacts {
        is_crawler: true,
        ..routing_facts(true)
    }
}

fn facts_from(client: &str) -> RoutingFacts<'static> {
    RoutingFacts {
        client: Some(client.parse().expect("an address")),
        ..routing_facts(true)
    }
}

fn upstream_error(kind: ErrorType) -> Box<Error> {
    let mut error = Error::new(kind);
    error.as_up();
    error
}

/// The last number of the address of the chosen server.
async fn next_server_number(
    attempts: &mut Attempts,
    upstreams: &Upstreams,
    facts: &RoutingFacts<'_>,
) -> u8 {
    attempts
        .next_server(upstreams, facts)
        .await
        .expect("a server");
    let address = attempts
        .peer()
        .and_then(|peer| peer._address.as_inet().copied())
        .expect("an address");
    let IpAddr::V4(ip) = address.ip() else {
        panic!("{address} is not IPv4")
    };
    ip.octets()[3]
}

async fn answered_request(upstreams: &Upstreams, facts: &RoutingFacts<'_>) -> u8 {
    let mut attempts = Attempts::default();
    let server = next_server_number(&mut attempts, upstreams, facts).await;
    attempts.record_response(upstreams, 200, Duration::ZERO, || false);
    server
}

/// Requests that the server with this number fails; the numbers of the servers that were asked.
async fn requests_failing_at(
    upstreams: &Upstreams,
    server: u8,
    kind: ErrorType,
    requests: usize,
) -> Vec<u8> {
    requests_failing_at_all(upstreams, &[server], kind, requests).await
}

/// The same for several servers.
async fn requests_failing_at_all(
    upstreams: &Upstreams,
    failing: &[u8],
    kind: ErrorType,
    requests: usize,
) -> Vec<u8> {
    let mut asked = Vec::new();
    for _ in 0..requests {
        let (mut attempts, facts) = (Attempts::default(), routing_facts(true));
        loop {
            asked.push(next_server_number(&mut attempts, upstreams, &facts).await);
            let has_failed = failing.contains(asked.last().expect("one was asked"));
            if !has_failed {
                attempts.record_response(upstreams, 200, Duration::ZERO, || false);
                break;
            }
            if !attempts.record_failure(
                upstreams,
                &facts,
                AttemptProgress::Nothing,
                &upstream_error(kind.clone()),
            ) {
                break;
            }
        }
    }
    asked
}

#[tokio::test]
async fn servers_take_turns_and_one_without_address_is_skipped() {
    let upstreams = new_upstreams(&[origin_with_servers(&[
        "127.0.0.1",
        "unresolved.invalid",
        "127.0.0.2",
    ])]);
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(answered_request(&upstreams, &routing_facts(true)).await);
    }
    assert_eq!(seen, [1, 2, 1, 2]);
}

#[tokio::test]
async fn weights_and_paths_of_the_settings_are_obeyed() {
    let mut heavy = origin_with_servers(&["127.0.0.1", "127.0.0.2"]);
    heavy.servers[0].weight = 3;
    let api = OriginSettings {
        paths: vec!["/api/".into()],
        ..origin_with_servers(&["127.0.0.9"])
    };
    let upstreams = new_upstreams(&[heavy, api]);
    let mut seen = Vec::new();
    for _ in 0..8 {
        seen.push(answered_request(&upstreams, &routing_facts(true)).await);
    }
    assert_eq!(seen, [1, 1, 2, 1, 1, 1, 2, 1]);
    assert_eq!(
        answered_request(
            &upstreams,
            &RoutingFacts {
                target: b"/api/a",
                ..routing_facts(true)
            }
        )
        .await,
        9
    );
}

#[tokio::test]
async fn missing_origin_or_address_is_no_server() {
    let upstreams = new_upstreams(&[OriginSettings {
        hosts: vec!["shop.example".into()],
        ..origin_with_servers(&["unresolved.invalid"])
    }]);
    let mut attempts = Attempts::default();
    assert_eq!(
        attempts
            .next_server(&upstreams, &routing_facts(true))
            .await
            .err(),
        Some(NoServer::NoAddress)
    );
    let other = RoutingFacts {
        host: b"blog.example",
        ..routing_facts(true)
    };
    let mut attempts = Attempts::default();
    assert_eq!(
        attempts.next_server(&upstreams, &other).await.err(),
        Some(NoServer::NoOrigin)
    );
    assert_eq!(upstreams.status(Duration::ZERO).servers[0].failures, 1);
}

#[tokio::test]
async fn retry_takes_no_turn() {
    let upstreams = new_upstreams(&[OriginSettings {
        ejection: None,
        ..origin_with_servers(&["127.0.0.1", "127.0.0.2"])
    }]);
    let asked = requests_failing_at(&upstreams, 1, ErrorType::ConnectRefused, 4).await;
    assert_eq!(asked, [1, 2, 2, 1, 2, 2]);
}

#[tokio::test]
async fn safe_requests_are_retried_once() {
    use ErrorType::{ConnectRefused, ConnectionClosed, InvalidHTTPHeader, ReadTimedout};
    let upstreams = new_upstreams(&[OriginSettings {
        ejection: None,
        ..origin_with_servers(&["127.0.0.1", "127.0.0.2"])
    }]);
    for (is_repeatable, reached, kind, goes_on) in [
        (false, AttemptProgress::Nothing, ConnectRefused, true),
        (
            true,
            AttemptProgress::KeptConnection,
            ConnectionClosed,
            true,
        ),
        (true, AttemptProgress::NewConnection, ConnectionClosed, true),
        (
            true,
            AttemptProgress::NewConnection,
            ErrorType::WriteError,
            true,
        ),
        (true, AttemptProgress::NewConnection, ReadTimedout, false),
        (true, AttemptProgress::Bytes, ConnectionClosed, false),
        (true, AttemptProgress::Bytes, InvalidHTTPHeader, false),
        (true, AttemptProgress::Body, ConnectionClosed, false),
        (
            false,
            AttemptProgress::KeptConnection,
            ConnectionClosed,
            false,
        ),
        (
            false,
            AttemptProgress::NewConnection,
            ConnectionClosed,
            false,
        ),
    ] {
        let (mut attempts, facts) = (Attempts::default(), routing_facts(is_repeatable));
        let first = next_server_number(&mut attempts, &upstreams, &facts).await;
        let address = attempts.server_address();
        let said =
            attempts.record_failure(&upstreams, &facts, reached, &upstream_error(kind.clone()));
        assert_eq!(said, goes_on, "{is_repeatable} {reached:?} {kind:?}");
        if goes_on {
            assert_ne!(
                next_server_number(&mut attempts, &upstreams, &facts).await,
                first
            );
            assert_ne!(attempts.server_address(), address);
            assert!(!attempts.record_failure(
                &upstreams,
                &facts,
                AttemptProgress::Nothing,
                &upstream_error(ConnectRefused)
            ));
        }
    }
    let mut attempts = Attempts::default();
    next_server_number(&mut attempts, &upstreams, &routing_facts(true)).await;
    let mut left = Error::new(ConnectionClosed);
    left.as_down();
    assert!(
        !attempts.record_failure(
            &upstreams,
            &routing_facts(true),
            AttemptProgress::NewConnection,
            &left
        ),
        "the client has left"
    );
}

#[tokio::test]
async fn third_failure_ejects_and_one_request_is_the_trial() {
    let upstreams = new_upstreams(&[origin_with_servers(&["127.0.0.1", "127.0.0.2"])]);
    let asked = requests_failing_at(&upstreams, 1, ErrorType::ConnectRefused, 8).await;
    assert_eq!(
        asked.iter().filter(|server| **server == 1).count(),
        3,
        "{asked:?}"
    );
    let server = first_server(&upstreams);
    assert!(!server.is_up());
    end_ejection(&upstreams);
    assert_eq!(
        answered_request(&upstreams, &routing_facts(false)).await,
        2,
        "a request that may not be sent twice tries nothing"
    );
    let mut attempts = Attempts::default();
    assert_eq!(
        next_server_number(&mut attempts, &upstreams, &routing_facts(true)).await,
        1
    );
    assert_eq!(
        answered_request(&upstreams, &routing_facts(true)).await,
        2,
        "one request tries it"
    );
    attempts.record_response(&upstreams, 200, Duration::ZERO, || false);
    drop(attempts);
    assert!(server.is_up());
    let seen: BTreeSet<u8> = [
        answered_request(&upstreams, &routing_facts(true)).await,
        answered_request(&upstreams, &routing_facts(true)).await,
    ]
    .into();
    assert_eq!(seen, [1, 2].into());
}

#[tokio::test]
async fn unrepeatable_request_is_a_trial_if_no_other_comes() {
    let ejection = Some(EjectionSettings {
        initial_time: Duration::ZERO,
        ..EjectionSettings::default()
    });
    let upstreams = new_upstreams(&[OriginSettings {
        ejection,
        ..origin_with_servers(&["127.0.0.1", "127.0.0.2"])
    }]);
    for _ in 0..5 {
        let mut attempts = Attempts::default();
        while next_server_number(&mut attempts, &upstreams, &routing_facts(false)).await == 1 {
            attempts.record_failure(
                &upstreams,
                &routing_facts(false),
                AttemptProgress::Nothing,
                &upstream_error(ErrorType::ConnectRefused),
            );
        }
    }
    assert!(!first_server(&upstreams).is_up());
    assert_eq!(answered_request(&upstreams, &routing_facts(false)).await, 1);
    assert!(first_server(&upstreams).is_up());
}

#[tokio::test]
async fn trial_whose_client_leaves_is_repeated() {
    let upstreams = new_upstreams(&[origin_with_servers(&["127.0.0.1", "127.0.0.2"])]);
    requests_failing_at(&upstreams, 1, ErrorType::ConnectRefused, 8).await;
    end_ejection(&upstreams);
    for _ in 0..2 {
        let mut attempts = Attempts::default();
        assert_eq!(
            next_server_number(&mut attempts, &upstreams, &routing_facts(true)).await,
            1
        );
    }
}

/// The first server of the first origin.
fn first_server(upstreams: &Upstreams) -> Arc<Server> {
    let group = &upstreams.groups[0];
    group.servers_of(&group.entries[0])[0].clone()
}

/// The time of that server's ejection is over.
fn end_ejection(upstreams: &Upstreams) {
    let rules = EjectionSettings {
        initial_time: Duration::ZERO,
        ..EjectionSettings::default()
    };
    first_server(upstreams).update_state(|state| {
        let cause = state.cause().expect("it is ejected");
        state.eject(&rules, cause, 0)
    });
    upstreams.groups[0]
        .origin_state
        .trial_due
        .store(0, std::sync::atomic::Ordering::Relaxed);
}

#[tokio::test]
async fn ejected_server_is_tried_early_where_no_other_is_up() {
    let upstreams = new_upstreams(&[origin_with_servers(&["127.0.0.1", "127.0.0.2"])]);
    requests_failing_at(&upstreams, 1, ErrorType::ConnectRefused, 8).await;
    let (server, due) = (
        first_server(&upstreams),
        first_server(&upstreams).state().trial_due(),
    );
    assert!(due.is_some());
    // Both are away: it stays ejected, and no longer than before.
    let (mut attempts, request) = (Attempts::default(), routing_facts(false));
    for (expected, goes_on) in [(2, true), (1, false)] {
        assert_eq!(
            next_server_number(&mut attempts, &upstreams, &request).await,
            expected
        );
        let refused = upstream_error(ErrorType::ConnectRefused);
        assert_eq!(
            attempts.record_failure(&upstreams, &request, AttemptProgress::Nothing, &refused),
            goes_on
        );
    }
    drop(attempts);
    assert_eq!(server.state().trial_due(), due);
    // The first one is there again, and the second one is not yet.
    assert_eq!(
        requests_failing_at(&upstreams, 2, ErrorType::ConnectRefused, 1).await,
        [2, 1]
    );
    assert!(server.is_up());
}

fn check_failure() -> server_state::ExclusionCause {
    server_state::ExclusionCause {
        since: crate::time::Timestamp(0),
        reason: "timeout",
        status: None,
    }
}

#[tokio::test]
async fn server_down_by_its_first_check_gets_no_retry() {
    let health = HealthSettings {
        path: "/".into(),
        ..HealthSettings::default()
    };
    let upstreams = new_upstreams(&[origin_with_servers(&["127.0.0.1", "127.0.0.2"])]);
    assert!(
        upstreams.groups[0]
            .record_check(
                &first_server(&upstreams),
                &health,
                Err(check_failure()),
                Duration::ZERO,
            )
            .is_some()
    );
    assert_eq!(
        requests_failing_at(&upstreams, 2, ErrorType::ConnectRefused, 1).await,
        [2]
    );
}

#[tokio::test]
async fn half_of_the_servers_stay_unless_a_backup_is_up() {
    let hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];
    let with_backup = |is_backup: bool| {
        let mut origin = origin_with_servers(&hosts);
        origin.servers[2].is_backup = is_backup;
        new_upstreams(&[origin])
    };
    for (is_backup, stay) in [(false, 2), (true, 1)] {
        let upstreams = with_backup(is_backup);
        for failed in [&[1][..], &[1, 2], &[1, 2, 3]] {
            requests_failing_at_all(&upstreams, failed, ErrorType::ConnectRefused, 20).await;
        }
        let group = &upstreams.groups[0];
        let up = group
            .entries
            .iter()
            .flat_map(|entry| group.servers_of(entry))
            .filter(|server| server.is_up())
            .count();
        assert_eq!(up, stay, "{is_backup}");
    }
}

#[tokio::test]
async fn only_server_is_never_ejected() {
    let upstreams = new_upstreams(&[origin_with_servers(&["127.0.0.1"])]);
    let asked = requests_failing_at(&upstreams, 1, ErrorType::ConnectRefused, 10).await;
    assert_eq!(asked.len(), 10, "there is no other server to send them to");
    assert!(upstreams.groups[0].servers_of(&upstreams.groups[0].entries[0])[0].is_up());
}

#[tokio::test]
async fn slow_request_ejects_no_server_that_answers_others() {
    let upstreams = new_upstreams(&[origin_with_servers(&["127.0.0.1", "127.0.0.2"])]);
    let mut slow = Vec::new();
    for _ in 0..8 {
        let mut attempts = Attempts::default();
        next_server_number(&mut attempts, &upstreams, &routing_facts(true)).await;
        slow.push(attempts);
    }
    for _ in 0..2 {
        answered_request(&upstreams, &routing_facts(true)).await;
    }
    for attempts in &mut slow {
        attempts.record_failure(
            &upstreams,
            &routing_facts(true),
            AttemptProgress::NewConnection,
            &upstream_error(ErrorType::ReadTimedout),
        );
    }
    let group = &upstreams.groups[0];
    assert!(
        group
            .entries
            .iter()
            .flat_map(|entry| group.servers_of(entry))
            .all(|server| server.is_up())
    );
}

/// A GET that each server which gets it closes without an answer.
async fn close_both_servers(upstreams: &Upstreams) {
    let (mut attempts, facts) = (Attempts::default(), routing_facts(true));
    let mut goes_on = true;
    while goes_on {
        next_server_number(&mut attempts, upstreams, &facts).await;
        goes_on = attempts.record_failure(
            upstreams,
            &facts,
            AttemptProgress::NewConnection,
            &upstream_error(ErrorType::ConnectionClosed),
        );
    }
}

#[tokio::test]
async fn request_that_every_server_closes_ejects_none() {
    let upstreams = new_upstreams(&[origin_with_servers(&["127.0.0.1", "127.0.0.2"])]);
    for _ in 0..20 {
        close_both_servers(&upstreams).await;
    }
    // The first of them may have had a kept connection.
    for _ in 0..20 {
        let (mut attempts, facts) = (Attempts::default(), routing_facts(true));
        for (reached, goes_on) in [
            (AttemptProgress::KeptConnection, true),
            (AttemptProgress::NewConnection, false),
        ] {
            next_server_number(&mut attempts, &upstreams, &facts).await;
            let error = upstream_error(ErrorType::ConnectionClosed);
            assert_eq!(
                attempts.record_failure(&upstreams, &facts, reached, &error),
                goes_on
            );
        }
    }
    assert!(all_servers(&upstreams).iter().all(|server| server.is_up()));
    // It keeps no server ejected, either: as a trial it has no result.
    requests_failing_at(&upstreams, 1, ErrorType::ConnectRefused, 8).await;
    assert!(!first_server(&upstreams).is_up());
    for _ in 0..3 {
        end_ejection(&upstreams);
        close_both_servers(&upstreams).await;
    }
    answered_request(&upstreams, &routing_facts(true)).await;
    assert!(first_server(&upstreams).is_up());
}

#[tokio::test]
async fn server_that_closes_what_another_answers_is_ejected() {
    let upstreams = new_upstreams(&[origin_with_servers(&["127.0.0.1", "127.0.0.2"])]);
    for _ in 0..6 {
        let (mut attempts, facts) = (Attempts::default(), routing_facts(true));
        while next_server_number(&mut attempts, &upstreams, &facts).await == 1 {
            assert!(attempts.record_failure(
                &upstreams,
                &facts,
                AttemptProgress::NewConnection,
                &upstream_error(ErrorType::ReadError)
            ));
        }
        attempts.record_response(&upstreams, 200, Duration::ZERO, || false);
    }
    assert!(!first_server(&upstreams).is_up());
}

#[tokio::test]
async fn failure_of_one_path_ejects_no_server_that_answers_others() {
    use ErrorType::{ConnectionClosed, InvalidHTTPHeader, ReadTimedout};
    for (reached, kind, answers, is_up) in [
        (AttemptProgress::NewConnection, ConnectionClosed, true, true),
        (AttemptProgress::Bytes, ConnectionClosed, true, true),
        (AttemptProgress::Bytes, InvalidHTTPHeader, true, true),
        (
            AttemptProgress::NewConnection,
            ConnectionClosed,
            false,
            false,
        ),
        (AttemptProgress::Bytes, InvalidHTTPHeader, false, false),
        (AttemptProgress::NewConnection, ReadTimedout, false, false),
    ] {
        let upstreams = new_upstreams(&[origin_with_servers(&["127.0.0.1", "127.0.0.2"])]);
        for _ in 0..if answers { 2 } else { 0 } {
            answered_request(&upstreams, &routing_facts(true)).await;
        }
        for _ in 0..8 {
            let mut attempts = Attempts::default();
            next_server_number(&mut attempts, &upstreams, &routing_facts(false)).await;
            attempts.record_failure(
                &upstreams,
                &routing_facts(false),
                reached,
                &upstream_error(kind.clone()),
            );
        }
        assert_eq!(
            all_servers(&upstreams).iter().all(|server| server.is_up()),
            is_up,
            "{reached:?} {kind:?} {answers}"
        );
    }
}

/// The servers of the first origin.
fn all_servers(upstreams: &Upstreams) -> Vec<Arc<Server>> {
    let group = &upstreams.groups[0];
    group
        .entries
        .iter()
        .flat_map(|entry| group.servers_of(entry))
        .collect()
}

#[tokio::test]
async fn statuses_eject_only_where_the_settings_say_so() {
    for (statuses, is_up) in [(vec![], true), (vec![502..=503], false)] {
        let ejection = Some(EjectionSettings {
            statuses,
            ..EjectionSettings::default()
        });
        let upstreams = new_upstreams(&[OriginSettings {
            ejection,
            ..origin_with_servers(&["127.0.0.1", "127.0.0.2"])
        }]);
        for _ in 0..6 {
            let mut attempts = Attempts::default();
            let server = next_server_number(&mut attempts, &upstreams, &routing_facts(true)).await;
            attempts.record_response(
                &upstreams,
                if server == 1 { 503 } else { 200 },
                Duration::ZERO,
                || false,
            );
        }
        let group = &upstreams.groups[0];
        assert_eq!(group.servers_of(&group.entries[0])[0].is_up(), is_up);
    }
}

#[tokio::test]
async fn backup_gets_requests_only_while_no_other_server_is_up() {
    let mut origin = origin_with_servers(&["127.0.0.1", "127.0.0.2"]);
    origin.servers[1].is_backup = true;
    let upstreams = new_upstreams(&[origin]);
    for _ in 0..4 {
        assert_eq!(answered_request(&upstreams, &routing_facts(true)).await, 1);
    }
    let asked = requests_failing_at(&upstreams, 1, ErrorType::ConnectRefused, 5).await;
    assert_eq!(asked, [1, 2, 1, 2, 1, 2, 2, 2]);
}

#[tokio::test]
async fn server_with_fewer_requests_in_flight_is_preferred() {
    let balance = LoadBalancing::LeastRequests;
    let upstreams = new_upstreams(&[OriginSettings {
        balance,
        ..origin_with_servers(&["127.0.0.1", "127.0.0.2"])
    }]);
    let mut busy = Vec::new();
    for _ in 0..10 {
        let mut attempts = Attempts::default();
        let server = next_server_number(&mut attempts, &upstreams, &routing_facts(true)).await;
        busy.push((server, attempts));
    }
    let ones = busy.iter().filter(|(server, _)| *server == 1).count();
    assert_eq!(ones, 5);
    // The requests of the first server end.
    busy.retain(|(server, _)| *server == 2);
    for _ in 0..5 {
        assert_eq!(answered_request(&upstreams, &routing_facts(true)).await, 1);
    }
}

#[tokio::test]
async fn client_keeps_its_server_unless_that_is_removed() {
    let balance = LoadBalancing::Client;
    let hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];
    let clients: Vec<String> = (0..200).map(|client| format!("192.0.2.{client}")).collect();
    let all = new_upstreams(&[OriginSettings {
        balance,
        ..origin_with_servers(&hosts)
    }]);
    let fewer = new_upstreams(&[OriginSettings {
        balance,
        ..origin_with_servers(&hosts[..2])
    }]);
    let mut of_each = [0; 4];
    for client in &clients {
        let server = answered_request(&all, &facts_from(client)).await;
        assert_eq!(answered_request(&all, &facts_from(client)).await, server);
        if server != 3 {
            assert_eq!(
                answered_request(&fewer, &facts_from(client)).await,
                server,
                "{client}"
            );
        }
        of_each[usize::from(server)] += 1;
    }
    assert!(
        of_each[1..]
            .iter()
            .all(|clients| (40..100).contains(clients)),
        "{of_each:?}"
    );
}

#[tokio::test]
async fn remaining_address_keeps_its_state() {
    let upstreams = new_upstreams(&[unresolved_origin(&["name.invalid"])]);
    let (group, entry) = (&upstreams.groups[0], &upstreams.groups[0].entries[0]);
    let address = |text: &str| -> SocketAddr { text.parse().expect("an address") };
    let (one, two, three) = (
        address("127.0.0.1:80"),
        address("127.0.0.2:80"),
        address("127.0.0.3:80"),
    );
    group.set_addresses(entry, &[one, two]);
    let before = group.servers_of(entry);
    group.set_addresses(entry, &[two, one]);
    assert!(
        before
            .iter()
            .zip(group.servers_of(entry))
            .all(|(before, now)| Arc::ptr_eq(before, &now))
    );
    group.set_addresses(entry, &[three, two]);
    let now = group.servers_of(entry);
    assert_eq!(
        (now[1].address, Arc::ptr_eq(&now[0], &before[1])),
        (three, true)
    );
    let rules = HealthSettings::default();
    let failed_checks = |server| {
        let failed = || Err(check_failure());
        let check = |_: &usize| group.record_check(server, &rules, failed(), Duration::ZERO);
        (1..9).find(|number| check(number).is_some())
    };
    assert_eq!(
        failed_checks(&now[0]),
        Some(1),
        "it is there from the start"
    );
    assert_eq!(failed_checks(&now[1]), Some(3));
}

#[tokio::test]
async fn failed_lookup_keeps_the_last_good_addresses() {
    let upstreams = Arc::new(new_upstreams(&[unresolved_origin(&["name.invalid"])]));
    let (group, entry) = (&upstreams.groups[0], &upstreams.groups[0].entries[0]);
    assert!(!OriginResolver(upstreams.clone()).resolve_all().await);
    group.set_addresses(entry, &["127.0.0.7:8080".parse().expect("an address")]);
    assert!(OriginResolver(upstreams.clone()).resolve_all().await);
    assert_eq!(answered_request(&upstreams, &routing_facts(true)).await, 7);
}

#[tokio::test]
async fn name_is_resolved_to_its_address() {
    let upstreams = Arc::new(new_upstreams(&[unresolved_origin(&["localhost"])]));
    assert!(OriginResolver(upstreams.clone()).resolve_all().await);
    let found = upstreams.groups[0].servers_of(&upstreams.groups[0].entries[0]);
    assert!(!found.is_empty() && found.iter().all(|server| server.address.ip().is_loopback()));
}

#[tokio::test]
async fn peer_has_timeouts_and_verifies_the_servers_name() {
    let mut origin = origin_with_servers(&["127.0.0.1"]);
    origin.servers[0].address.tls = true;
    let upstreams = new_upstreams(&[origin]);
    let mut attempts = Attempts::default();
    attempts
        .next_server(&upstreams, &routing_facts(true))
        .await
        .expect("a server");
    let peer = attempts.peer().expect("a peer");
    assert_eq!(
        peer.options.connection_timeout,
        Some(Duration::from_secs(3))
    );
    assert_eq!(peer.options.read_timeout, Some(MINUTE));
    assert_eq!(peer.options.write_timeout, Some(Duration::from_secs(30)));
    assert_eq!(peer.options.idle_timeout, Some(Duration::from_secs(55)));
    assert!(peer.is_tls() && peer.options.verify_cert && peer.options.verify_hostname);
    assert_eq!(peer.sni, "127.0.0.1");
}

fn limited_origin(connections: usize, crawlers: usize) -> OriginSettings {
    let places = CapacitySettings {
        crawlers,
        queue_timeout: MINUTE,
        ..CapacitySettings::with_connections(connections)
    };
    OriginSettings {
        capacity: Some(places),
        ..origin_with_servers(&["127.0.0.1"])
    }
}

/// A request that has a place.
async fn admitted_attempts(upstreams: &Upstreams, facts: &RoutingFacts<'_>) -> Option<Attempts> {
    let mut attempts = Attempts::default();
    let next = tokio::time::timeout(
        Duration::from_millis(20),
        attempts.next_server(upstreams, facts),
    )
    .await;
    matches!(next, Ok(Ok(_))).then_some(attempts)
}

#[tokio::test]
async fn crawlers_get_their_part_of_the_places() {
    let upstreams = new_upstreams(&[limited_origin(5, 2)]);
    let mut inside = Vec::new();
    for _ in 0..2 {
        inside.push(
            admitted_attempts(&upstreams, &crawler_facts())
                .await
                .expect("a place of crawlers"),
        );
    }
    let mut third = Attempts::default();
    let Err(NoServer::Refused(full)) = third.next_server(&upstreams, &crawler_facts()).await else {
        panic!("a third crawler got in")
    };
    assert_eq!(full.reason, "turned_away");
    for _ in 0..3 {
        inside.push(
            admitted_attempts(&upstreams, &routing_facts(true))
                .await
                .expect("a place"),
        );
    }
    assert!(
        admitted_attempts(&upstreams, &routing_facts(true))
            .await
            .is_none(),
        "all places are taken"
    );
    drop(inside);
    assert!(
        admitted_attempts(&upstreams, &crawler_facts())
            .await
            .is_some()
    );
}

#[tokio::test]
async fn people_wait_in_order_and_before_crawlers() {
    let upstreams = Arc::new(new_upstreams(&[limited_origin(1, 1)]));
    let inside = admitted_attempts(&upstreams, &routing_facts(true))
        .await
        .expect("a place");
    let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
    let mut waiting = Vec::new();
    for number in 0..3 {
        let (servers, sender) = (upstreams.clone(), sender.clone());
        waiting.push(tokio::spawn(async move {
            let mut attempts = Attempts::default();
            attempts
                .next_server(&servers, &routing_facts(true))
                .await
                .expect("a place");
            sender.send(number).expect("the test listens");
        }));
        let queue = upstreams.groups[0]
            .origin_state
            .queue
            .as_ref()
            .expect("a bound");
        while queue.waiting_count() <= number {
            tokio::task::yield_now().await;
        }
    }
    // The second one leaves.
    waiting[1].abort();
    let queue = upstreams.groups[0]
        .origin_state
        .queue
        .as_ref()
        .expect("a bound");
    while queue.waiting_count() > 2 {
        tokio::task::yield_now().await;
    }
    let mut attempts = Attempts::default();
    assert!(matches!(
        attempts.next_server(&upstreams, &crawler_facts()).await,
        Err(NoServer::Refused(_))
    ));
    drop(inside);
    assert_eq!((order.recv().await, order.recv().await), (Some(0), Some(2)));
}

#[tokio::test]
async fn queue_is_bounded_in_length_and_time() {
    let mut origin = limited_origin(1, 1);
    origin.capacity = Some(CapacitySettings {
        queue_length: 1,
        queue_timeout: Duration::from_millis(30),
        ..CapacitySettings::with_connections(1)
    });
    let upstreams = Arc::new(new_upstreams(&[origin]));
    let _inside = admitted_attempts(&upstreams, &routing_facts(true))
        .await
        .expect("a place");
    let waits = async {
        let mut attempts = Attempts::default();
        attempts
            .next_server(&upstreams, &routing_facts(true))
            .await
            .err()
    };
    let comes_too_late = async {
        let queue = upstreams.groups[0]
            .origin_state
            .queue
            .as_ref()
            .expect("a bound");
        while queue.waiting_count() == 0 {
            tokio::task::yield_now().await;
        }
        let mut attempts = Attempts::default();
        attempts
            .next_server(&upstreams, &routing_facts(true))
            .await
            .err()
    };
    let (waited, refused) = tokio::join!(waits, comes_too_late);
    let reason = |none: Option<NoServer>| match none {
        Some(NoServer::Refused(full)) => full.reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (reason(waited), reason(refused)),
        ("queue_timeout", "queue_full")
    );
}

#[tokio::test]
async fn one_address_takes_a_quarter_of_the_places() {
    let upstreams = new_upstreams(&[limited_origin(8, 1)]);
    let (one, other) = (facts_from("192.0.2.1"), facts_from("192.0.2.2"));
    let _inside = [
        admitted_attempts(&upstreams, &one).await.expect("a place"),
        admitted_attempts(&upstreams, &one).await.expect("a place"),
    ];
    assert!(admitted_attempts(&upstreams, &one).await.is_none());
    assert!(admitted_attempts(&upstreams, &other).await.is_some());
}

#[tokio::test]
async fn address_with_the_fewest_places_goes_first() {
    let upstreams = Arc::new(new_upstreams(&[limited_origin(8, 1)]));
    let _one = admitted_attempts(&upstreams, &facts_from("192.0.2.1"))
        .await
        .expect("a place");
    let mut inside = Vec::new();
    for last in 2..9 {
        let facts = RoutingFacts {
            client: Some([192, 0, 2, last].into()),
            ..routing_facts(true)
        };
        inside.push(
            admitted_attempts(&upstreams, &facts)
                .await
                .expect("a place"),
        );
    }
    let second = expect_queued(&upstreams, facts_from("192.0.2.1")).await;
    let mut third = Attempts::default();
    let other = facts_from("192.0.2.9");
    let mut third = pin!(third.next_server(&upstreams, &other));
    assert!(poll_fn(|context| Poll::Ready(third.as_mut().poll(context).is_pending())).await);
    inside.pop();
    assert!(third.await.is_ok());
    let queue = upstreams.groups[0]
        .origin_state
        .queue
        .as_ref()
        .expect("a bound");
    assert_eq!(queue.waiting_count(), 1, "the one that came first");
    // Its turn is the next, though another address has none.
    let last = facts_from("192.0.2.10");
    let mut fourth = Attempts::default();
    let mut fourth = pin!(fourth.next_server(&upstreams, &last));
    assert!(poll_fn(|context| Poll::Ready(fourth.as_mut().poll(context).is_pending())).await);
    inside.pop();
    assert_eq!(second.await.expect("no panic"), None);
}

#[tokio::test]
async fn place_is_contended_while_its_server_is_full() {
    let upstreams = Arc::new(new_upstreams(&[limited_origin(4, 1)]));
    let inside = admitted_attempts(&upstreams, &facts_from("192.0.2.1"))
        .await
        .expect("a place");
    let _waiting = expect_queued(&upstreams, facts_from("192.0.2.1")).await;
    let is_wanted = || {
        inside
            .releasable_place()
            .is_some_and(|place| place.is_contended())
    };
    assert!(!is_wanted(), "whoever waits has his share");
    let crawler = admitted_attempts(&upstreams, &crawler_facts())
        .await
        .expect("a place");
    assert!(
        crawler.releasable_place().is_none(),
        "a crawler keeps its place"
    );
    let _others = [
        admitted_attempts(&upstreams, &routing_facts(true)).await,
        admitted_attempts(&upstreams, &routing_facts(true)).await,
    ];
    assert!(is_wanted());
    let place = inside.releasable_place().expect("a place");
    assert!(place.try_release() && inside.releasable_place().is_none());
}

#[tokio::test]
async fn retry_has_a_place_and_counts_for_its_address() {
    let upstreams = new_upstreams(&[OriginSettings {
        capacity: limited_origin(2, 1).capacity,
        ..origin_with_servers(&["127.0.0.1", "127.0.0.2"])
    }]);
    let one = facts_from("192.0.2.1");
    let mut attempts = admitted_attempts(&upstreams, &one).await.expect("a place");
    assert!(attempts.record_failure(
        &upstreams,
        &one,
        AttemptProgress::Nothing,
        &upstream_error(ErrorType::ConnectRefused)
    ));
    attempts
        .next_server(&upstreams, &one)
        .await
        .expect("the other server");
    assert!(attempts.releasable_place().is_some());
    assert!(
        admitted_attempts(&upstreams, &one).await.is_none(),
        "its address has its share"
    );
    drop(attempts);
    assert!(admitted_attempts(&upstreams, &one).await.is_some());
}

#[tokio::test]
async fn newcomer_displaces_the_address_with_the_most_waiters() {
    let mut origin = limited_origin(1, 1);
    origin
        .capacity
        .iter_mut()
        .for_each(|places| places.queue_length = 40);
    let upstreams = Arc::new(new_upstreams(&[origin]));
    let _inside = admitted_attempts(&upstreams, &routing_facts(true))
        .await
        .expect("a place");
    let mut waiting = Vec::new();
    for last in 1..=20 {
        for _ in 0..2 {
            let client = Some([192, 0, 2, last].into());
            waiting.push(
                expect_queued(
                    &upstreams,
                    RoutingFacts {
                        client,
                        ..routing_facts(true)
                    },
                )
                .await,
            );
        }
    }
    let mut newcomer = Attempts::default();
    let other = facts_from("198.51.100.1");
    let mut newcomer = pin!(newcomer.next_server(&upstreams, &other));
    assert!(poll_fn(|context| Poll::Ready(newcomer.as_mut().poll(context).is_pending())).await);
    let displaced = waiting
        .pop()
        .expect("the last one")
        .await
        .expect("no panic");
    assert!(
        matches!(
            displaced,
            Some(NoServer::Refused(AdmissionRefusal {
                reason: "queue_full",
                ..
            }))
        ),
        "{displaced:?}"
    );
    let mut second = Attempts::default();
    let refused = second.next_server(&upstreams, &other).await.err();
    assert!(
        matches!(refused, Some(NoServer::Refused(_))),
        "it has as many as the others: {refused:?}"
    );
}

/// A request of a person who waits for a place.
async fn expect_queued(
    upstreams: &Arc<Upstreams>,
    facts: RoutingFacts<'static>,
) -> tokio::task::JoinHandle<Option<NoServer>> {
    let servers = upstreams.clone();
    let queue = upstreams.groups[0]
        .origin_state
        .queue
        .as_ref()
        .expect("a bound");
    let before = queue.waiting_count();
    let task = tokio::spawn(async move {
        let mut attempts = Attempts::default();
        attempts.next_server(&servers, &facts).await.err()
    });
    while queue.waiting_count() == before {
        tokio::task::yield_now().await;
    }
    task
}

#[tokio::test]
async fn one_address_takes_a_sixteenth_of_the_queue() {
    let mut origin = limited_origin(1, 1);
    origin
        .capacity
        .iter_mut()
        .for_each(|places| places.queue_length = 32);
    let upstreams = Arc::new(new_upstreams(&[origin]));
    let _inside = admitted_attempts(&upstreams, &routing_facts(true))
        .await
        .expect("a place");
    let _waiting = [
        expect_queued(&upstreams, facts_from("192.0.2.1")).await,
        expect_queued(&upstreams, facts_from("192.0.2.1")).await,
    ];
    let mut third = Attempts::default();
    let refused = third
        .next_server(&upstreams, &facts_from("192.0.2.1"))
        .await
        .err();
    assert!(
        matches!(
            refused,
            Some(NoServer::Refused(AdmissionRefusal {
                reason: "queue_full",
                ..
            }))
        ),
        "{refused:?}"
    );
    let other = expect_queued(&upstreams, facts_from("192.0.2.2")).await;
    // One that leaves makes room for another one.
    other.abort();
    let queue = upstreams.groups[0]
        .origin_state
        .queue
        .as_ref()
        .expect("a bound");
    while queue.waiting_count() > 2 {
        tokio::task::yield_now().await;
    }
    for _ in 0..2 {
        expect_queued(&upstreams, facts_from("192.0.2.2")).await;
    }
}

#[tokio::test]
async fn address_at_its_limit_delays_no_crawler() {
    let upstreams = Arc::new(new_upstreams(&[limited_origin(4, 1)]));
    let _inside = admitted_attempts(&upstreams, &facts_from("192.0.2.1"))
        .await
        .expect("a place");
    let waiting = expect_queued(&upstreams, facts_from("192.0.2.1")).await;
    let crawler = admitted_attempts(&upstreams, &crawler_facts())
        .await
        .expect("a place of crawlers");
    let others = [
        admitted_attempts(&upstreams, &routing_facts(true)).await,
        admitted_attempts(&upstreams, &routing_facts(true)).await,
    ];
    assert!(others.iter().all(Option::is_some), "nor another person");
    let second = expect_queued(&upstreams, facts_from("192.0.2.2")).await;
    drop(crawler);
    assert_eq!(
        second.await.expect("no panic"),
        None,
        "the place of the crawler is this person's"
    );
    assert!(!waiting.is_finished());
}

#[tokio::test]
async fn exempt_crawler_waits_like_a_person() {
    let googlebot = Registry::builtin()
        .find("googlebot")
        .expect("a known crawler");
    let mut origin = limited_origin(4, 1);
    origin
        .capacity
        .iter_mut()
        .for_each(|places| places.exempt = vec![googlebot]);
    let upstreams = new_upstreams(&[origin]);
    let verified = RoutingFacts {
        verified: Some(googlebot),
        is_search: true,
        ..crawler_facts()
    };
    let mut inside = Vec::new();
    for _ in 0..4 {
        inside.push(
            admitted_attempts(&upstreams, &verified)
                .await
                .expect("a place"),
        );
    }
    let mut attempts = Attempts::default();
    let waits = tokio::time::timeout(
        Duration::from_millis(10),
        attempts.next_server(&upstreams, &verified),
    )
    .await;
    assert!(waits.is_err(), "it waits");
}

#[tokio::test]
async fn crawler_returns_after_the_longest_wait_of_a_visitor() {
    let upstreams = Arc::new(new_upstreams(&[limited_origin(1, 1)]));
    let _inside = admitted_attempts(&upstreams, &crawler_facts())
        .await
        .expect("a place");
    let mut attempts = Attempts::default();
    match attempts.next_server(&upstreams, &crawler_facts()).await {
        Err(NoServer::Refused(refusal)) => assert_eq!(refusal.retry_after, 60),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn search_crawler_turned_away_for_long_is_reported() {
    let googlebot = Registry::builtin()
        .find("googlebot")
        .expect("a known crawler");
    let origin = limited_origin(2, 1);
    let group = ServerGroup::new(0, &origin, None);
    let queue = group.origin_state.queue.as_ref().expect("a bound");
    let _inside = InFlightGuard::new(group.servers_of(&group.entries[0])[0].clone());
    let search_crawler = RoutingFacts {
        verified: Some(googlebot),
        is_search: true,
        ..crawler_facts()
    };
    let minutes = |minutes: u32| MINUTE * minutes;
    let taken: Vec<_> = (0..2)
        .map(|_| group.admit(&search_crawler, || Duration::ZERO))
        .collect();
    for minute in [1, 10, 19] {
        group.admit(&search_crawler, || minutes(minute));
    }
    let found = |minute| {
        queue
            .status(String::new(), minutes(minute), Duration::ZERO)
            .search_crawlers
    };
    let name = &Registry::builtin().get(googlebot).name;
    assert_eq!(found(20), [(name.clone(), 19 * 60)]);
    assert!(found(40).is_empty());
    group.admit(&search_crawler, || minutes(40));
    assert_eq!(found(40), [(name.clone(), 0)]);
    drop(taken);
}

#[tokio::test]
async fn endless_response_releases_its_place() {
    let upstreams = new_upstreams(&[limited_origin(1, 1)]);
    let mut stream = admitted_attempts(&upstreams, &routing_facts(true))
        .await
        .expect("a place");
    stream.record_response(&upstreams, 200, Duration::ZERO, || true);
    assert!(
        admitted_attempts(&upstreams, &routing_facts(true))
            .await
            .is_some()
    );
}
