//! Which server a request goes to, and what failures and checks change about it.

use super::server::{Full, Held};
use super::*;
use crate::crawlers::Registry;
use crate::settings::{Balance, Ejection, HealthSettings, PlaceSettings, ServerAddress};
use pingora_core::{Error, ErrorType};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::task::Poll;

const MINUTE: Duration = Duration::from_secs(60);

fn servers(hosts: &[&str]) -> OriginSettings {
    let server = |host: &&str| ServerAddress {
        tls: false,
        host: (*host).to_owned(),
        port: 8080,
        socket: None,
    };
    OriginSettings::of(hosts.iter().map(server))
}

/// The same, known to a name server that is not there.
fn unresolved(hosts: &[&str]) -> OriginSettings {
    OriginSettings {
        resolvers: vec!["127.0.0.1:1".parse().expect("an address")],
        ..servers(hosts)
    }
}

fn upstreams(origins: &[OriginSettings]) -> Upstreams {
    Upstreams::new(origins, &Metrics::new(), Events::off(), Clock::default()).expect("no files")
}

fn wanted(is_repeatable: bool) -> Wanted<'static> {
    Wanted {
        host: b"shop.example",
        target: b"/",
        client: None,
        is_crawler: false,
        verified: None,
        is_search: false,
        is_repeatable,
        lived: Duration::ZERO,
    }
}

fn crawler() -> Wanted<'static> {
    Wanted {
        is_crawler: true,
        ..wanted(true)
    }
}

fn from(client: &str) -> Wanted<'static> {
    Wanted {
        client: Some(client.parse().expect("an address")),
        ..wanted(true)
    }
}

fn failure(kind: ErrorType) -> Box<Error> {
    let mut error = Error::new(kind);
    error.as_up();
    error
}

/// The last number of the address of the chosen server.
async fn chosen(attempts: &mut Attempts, upstreams: &Upstreams, wanted: &Wanted<'_>) -> u8 {
    attempts.next(upstreams, wanted).await.expect("a server");
    let address = attempts
        .peer()
        .and_then(|peer| peer._address.as_inet().copied())
        .expect("an address");
    let IpAddr::V4(ip) = address.ip() else {
        panic!("{address} is not IPv4")
    };
    ip.octets()[3]
}

async fn one(upstreams: &Upstreams, wanted: &Wanted<'_>) -> u8 {
    let mut attempts = Attempts::default();
    let server = chosen(&mut attempts, upstreams, wanted).await;
    attempts.answered(upstreams, 200, Duration::ZERO, || false);
    server
}

/// Requests that the server with this number fails; the numbers of the servers that were asked.
async fn failing(upstreams: &Upstreams, server: u8, kind: ErrorType, requests: usize) -> Vec<u8> {
    failing_at(upstreams, &[server], kind, requests).await
}

/// The same for several servers.
async fn failing_at(
    upstreams: &Upstreams,
    failing: &[u8],
    kind: ErrorType,
    requests: usize,
) -> Vec<u8> {
    let mut asked = Vec::new();
    for _ in 0..requests {
        let (mut attempts, wanted) = (Attempts::default(), wanted(true));
        loop {
            asked.push(chosen(&mut attempts, upstreams, &wanted).await);
            let has_failed = failing.contains(asked.last().expect("one was asked"));
            if !has_failed {
                attempts.answered(upstreams, 200, Duration::ZERO, || false);
                break;
            }
            if !attempts.failed(upstreams, &wanted, Reached::Nothing, &failure(kind.clone())) {
                break;
            }
        }
    }
    asked
}

#[tokio::test]
async fn servers_take_turns_and_one_without_address_is_skipped() {
    let upstreams = upstreams(&[servers(&["127.0.0.1", "unresolved.invalid", "127.0.0.2"])]);
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(one(&upstreams, &wanted(true)).await);
    }
    assert_eq!(seen, [1, 2, 1, 2]);
}

#[tokio::test]
async fn weights_and_paths_of_the_settings_are_kept_to() {
    let mut heavy = servers(&["127.0.0.1", "127.0.0.2"]);
    heavy.servers[0].weight = 3;
    let api = OriginSettings {
        paths: vec!["/api/".into()],
        ..servers(&["127.0.0.9"])
    };
    let upstreams = upstreams(&[heavy, api]);
    let mut seen = Vec::new();
    for _ in 0..8 {
        seen.push(one(&upstreams, &wanted(true)).await);
    }
    assert_eq!(seen, [1, 1, 2, 1, 1, 1, 2, 1]);
    assert_eq!(
        one(
            &upstreams,
            &Wanted {
                target: b"/api/a",
                ..wanted(true)
            }
        )
        .await,
        9
    );
}

#[tokio::test]
async fn host_without_origin_and_name_without_address_have_no_server() {
    let upstreams = upstreams(&[OriginSettings {
        hosts: vec!["shop.example".into()],
        ..servers(&["unresolved.invalid"])
    }]);
    let mut attempts = Attempts::default();
    assert_eq!(
        attempts.next(&upstreams, &wanted(true)).await.err(),
        Some(NoServer::NoAddress)
    );
    let other = Wanted {
        host: b"blog.example",
        ..wanted(true)
    };
    let mut attempts = Attempts::default();
    assert_eq!(
        attempts.next(&upstreams, &other).await.err(),
        Some(NoServer::NoOrigin)
    );
    assert_eq!(upstreams.status(Duration::ZERO).servers[0].failures, 1);
}

#[tokio::test]
async fn retry_takes_no_turn() {
    let upstreams = upstreams(&[OriginSettings {
        ejection: None,
        ..servers(&["127.0.0.1", "127.0.0.2"])
    }]);
    let asked = failing(&upstreams, 1, ErrorType::ConnectRefused, 4).await;
    assert_eq!(asked, [1, 2, 2, 1, 2, 2]);
}

#[tokio::test]
async fn only_what_is_safe_is_sent_once_more_and_only_once() {
    use ErrorType::{ConnectRefused, ConnectionClosed, InvalidHTTPHeader, ReadTimedout};
    let upstreams = upstreams(&[OriginSettings {
        ejection: None,
        ..servers(&["127.0.0.1", "127.0.0.2"])
    }]);
    for (is_repeatable, reached, kind, goes_on) in [
        (false, Reached::Nothing, ConnectRefused, true),
        (true, Reached::KeptConnection, ConnectionClosed, true),
        (true, Reached::NewConnection, ConnectionClosed, true),
        (true, Reached::NewConnection, ErrorType::WriteError, true),
        (true, Reached::NewConnection, ReadTimedout, false),
        (true, Reached::Octets, ConnectionClosed, false),
        (true, Reached::Octets, InvalidHTTPHeader, false),
        (true, Reached::Body, ConnectionClosed, false),
        (false, Reached::KeptConnection, ConnectionClosed, false),
        (false, Reached::NewConnection, ConnectionClosed, false),
    ] {
        let (mut attempts, wanted) = (Attempts::default(), wanted(is_repeatable));
        let first = chosen(&mut attempts, &upstreams, &wanted).await;
        let said = attempts.failed(&upstreams, &wanted, reached, &failure(kind.clone()));
        assert_eq!(said, goes_on, "{is_repeatable} {reached:?} {kind:?}");
        if goes_on {
            assert_ne!(chosen(&mut attempts, &upstreams, &wanted).await, first);
            assert!(!attempts.failed(
                &upstreams,
                &wanted,
                Reached::Nothing,
                &failure(ConnectRefused)
            ));
        }
    }
    let mut attempts = Attempts::default();
    chosen(&mut attempts, &upstreams, &wanted(true)).await;
    let mut left = Error::new(ConnectionClosed);
    left.as_down();
    assert!(
        !attempts.failed(&upstreams, &wanted(true), Reached::NewConnection, &left),
        "the client has left"
    );
}

#[tokio::test]
async fn third_failure_in_a_row_ejects_a_server_and_one_request_tries_it_later() {
    let upstreams = upstreams(&[servers(&["127.0.0.1", "127.0.0.2"])]);
    let asked = failing(&upstreams, 1, ErrorType::ConnectRefused, 8).await;
    assert_eq!(
        asked.iter().filter(|server| **server == 1).count(),
        3,
        "{asked:?}"
    );
    let server = first(&upstreams);
    assert!(!server.is_up());
    end_ejection(&upstreams);
    assert_eq!(
        one(&upstreams, &wanted(false)).await,
        2,
        "a request that may not be sent twice tries nothing"
    );
    let mut attempts = Attempts::default();
    assert_eq!(chosen(&mut attempts, &upstreams, &wanted(true)).await, 1);
    assert_eq!(
        one(&upstreams, &wanted(true)).await,
        2,
        "one request tries it"
    );
    attempts.answered(&upstreams, 200, Duration::ZERO, || false);
    drop(attempts);
    assert!(server.is_up());
    let seen: BTreeSet<u8> = [
        one(&upstreams, &wanted(true)).await,
        one(&upstreams, &wanted(true)).await,
    ]
    .into();
    assert_eq!(seen, [1, 2].into());
}

#[tokio::test]
async fn request_that_may_not_be_sent_twice_tries_a_server_that_no_other_tries() {
    let ejection = Some(Ejection {
        time: Duration::ZERO,
        ..Ejection::default()
    });
    let upstreams = upstreams(&[OriginSettings {
        ejection,
        ..servers(&["127.0.0.1", "127.0.0.2"])
    }]);
    for _ in 0..5 {
        let mut attempts = Attempts::default();
        while chosen(&mut attempts, &upstreams, &wanted(false)).await == 1 {
            attempts.failed(
                &upstreams,
                &wanted(false),
                Reached::Nothing,
                &failure(ErrorType::ConnectRefused),
            );
        }
    }
    assert!(!first(&upstreams).is_up());
    assert_eq!(one(&upstreams, &wanted(false)).await, 1);
    assert!(first(&upstreams).is_up());
}

#[tokio::test]
async fn trial_whose_client_leaves_is_repeated() {
    let upstreams = upstreams(&[servers(&["127.0.0.1", "127.0.0.2"])]);
    failing(&upstreams, 1, ErrorType::ConnectRefused, 8).await;
    end_ejection(&upstreams);
    for _ in 0..2 {
        let mut attempts = Attempts::default();
        assert_eq!(chosen(&mut attempts, &upstreams, &wanted(true)).await, 1);
    }
}

/// The first server of the first origin.
fn first(upstreams: &Upstreams) -> Arc<Server> {
    let group = &upstreams.groups[0];
    group.servers(&group.entries[0])[0].clone()
}

/// The time of that server's ejection is over.
fn end_ejection(upstreams: &Upstreams) {
    let rules = Ejection {
        time: Duration::ZERO,
        ..Ejection::default()
    };
    first(upstreams).change(|standing| {
        let because = standing.because().cloned().expect("it is ejected");
        standing.eject(&rules, because, 0)
    });
    upstreams.groups[0]
        .shared
        .trial_due
        .store(0, std::sync::atomic::Ordering::Relaxed);
}

#[tokio::test]
async fn ejected_server_is_tried_early_where_no_other_is_up() {
    let upstreams = upstreams(&[servers(&["127.0.0.1", "127.0.0.2"])]);
    failing(&upstreams, 1, ErrorType::ConnectRefused, 8).await;
    let (server, due) = (first(&upstreams), first(&upstreams).state().trial_due());
    assert!(due.is_some());
    // Both are away: it stays ejected, and no longer than before.
    let (mut attempts, request) = (Attempts::default(), wanted(false));
    for (expected, goes_on) in [(2, true), (1, false)] {
        assert_eq!(chosen(&mut attempts, &upstreams, &request).await, expected);
        let refused = failure(ErrorType::ConnectRefused);
        assert_eq!(
            attempts.failed(&upstreams, &request, Reached::Nothing, &refused),
            goes_on
        );
    }
    drop(attempts);
    assert_eq!(server.state().trial_due(), due);
    // The first one is there again, and the second one is not yet.
    assert_eq!(
        failing(&upstreams, 2, ErrorType::ConnectRefused, 1).await,
        [2, 1]
    );
    assert!(server.is_up());
}

#[tokio::test]
async fn server_that_checks_say_is_down_gets_no_request_of_another() {
    let health = HealthSettings {
        unhealthy_after: 1,
        ..HealthSettings::of("/".into())
    };
    let upstreams = upstreams(&[servers(&["127.0.0.1", "127.0.0.2"])]);
    let unwell = group::Unwell {
        reason: "timeout",
        status: None,
    };
    assert!(
        upstreams.groups[0]
            .checked(
                &first(&upstreams),
                &health,
                Err(unwell),
                Duration::ZERO,
                crate::time::Timestamp(0),
            )
            .is_some()
    );
    assert_eq!(
        failing(&upstreams, 2, ErrorType::ConnectRefused, 1).await,
        [2]
    );
}

#[tokio::test]
async fn half_of_the_servers_stay_unless_a_backup_is_up() {
    let hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];
    let with_backup = |is_backup: bool| {
        let mut origin = servers(&hosts);
        origin.servers[2].is_backup = is_backup;
        upstreams(&[origin])
    };
    for (is_backup, stay) in [(false, 2), (true, 1)] {
        let upstreams = with_backup(is_backup);
        for failed in [&[1][..], &[1, 2], &[1, 2, 3]] {
            failing_at(&upstreams, failed, ErrorType::ConnectRefused, 20).await;
        }
        let group = &upstreams.groups[0];
        let up = group
            .entries
            .iter()
            .flat_map(|entry| group.servers(entry))
            .filter(|server| server.is_up())
            .count();
        assert_eq!(up, stay, "{is_backup}");
    }
}

#[tokio::test]
async fn only_server_is_never_ejected() {
    let upstreams = upstreams(&[servers(&["127.0.0.1"])]);
    let asked = failing(&upstreams, 1, ErrorType::ConnectRefused, 10).await;
    assert_eq!(asked.len(), 10, "there is no other server to send them to");
    assert!(upstreams.groups[0].servers(&upstreams.groups[0].entries[0])[0].is_up());
}

#[tokio::test]
async fn slow_request_ejects_no_server_that_answers_others() {
    let upstreams = upstreams(&[servers(&["127.0.0.1", "127.0.0.2"])]);
    let mut slow = Vec::new();
    for _ in 0..8 {
        let mut attempts = Attempts::default();
        chosen(&mut attempts, &upstreams, &wanted(true)).await;
        slow.push(attempts);
    }
    for _ in 0..2 {
        one(&upstreams, &wanted(true)).await;
    }
    for attempts in &mut slow {
        attempts.failed(
            &upstreams,
            &wanted(true),
            Reached::NewConnection,
            &failure(ErrorType::ReadTimedout),
        );
    }
    let group = &upstreams.groups[0];
    assert!(
        group
            .entries
            .iter()
            .flat_map(|entry| group.servers(entry))
            .all(|server| server.is_up())
    );
}

/// A GET that each server which gets it closes without an answer.
async fn closed(upstreams: &Upstreams) {
    let (mut attempts, wanted) = (Attempts::default(), wanted(true));
    let mut goes_on = true;
    while goes_on {
        chosen(&mut attempts, upstreams, &wanted).await;
        goes_on = attempts.failed(
            upstreams,
            &wanted,
            Reached::NewConnection,
            &failure(ErrorType::ConnectionClosed),
        );
    }
}

#[tokio::test]
async fn request_that_every_server_closes_ejects_none() {
    let upstreams = upstreams(&[servers(&["127.0.0.1", "127.0.0.2"])]);
    for _ in 0..20 {
        closed(&upstreams).await;
    }
    // The first of them may have had a kept connection.
    for _ in 0..20 {
        let (mut attempts, wanted) = (Attempts::default(), wanted(true));
        for (reached, goes_on) in [
            (Reached::KeptConnection, true),
            (Reached::NewConnection, false),
        ] {
            chosen(&mut attempts, &upstreams, &wanted).await;
            let error = failure(ErrorType::ConnectionClosed);
            assert_eq!(
                attempts.failed(&upstreams, &wanted, reached, &error),
                goes_on
            );
        }
    }
    assert!(all(&upstreams).iter().all(|server| server.is_up()));
    // It keeps no server ejected, either: as a trial it has no result.
    failing(&upstreams, 1, ErrorType::ConnectRefused, 8).await;
    assert!(!first(&upstreams).is_up());
    for _ in 0..3 {
        end_ejection(&upstreams);
        closed(&upstreams).await;
    }
    one(&upstreams, &wanted(true)).await;
    assert!(first(&upstreams).is_up());
}

#[tokio::test]
async fn server_that_closes_what_another_answers_is_ejected() {
    let upstreams = upstreams(&[servers(&["127.0.0.1", "127.0.0.2"])]);
    for _ in 0..6 {
        let (mut attempts, wanted) = (Attempts::default(), wanted(true));
        while chosen(&mut attempts, &upstreams, &wanted).await == 1 {
            assert!(attempts.failed(
                &upstreams,
                &wanted,
                Reached::NewConnection,
                &failure(ErrorType::ReadError)
            ));
        }
        attempts.answered(&upstreams, 200, Duration::ZERO, || false);
    }
    assert!(!first(&upstreams).is_up());
}

#[tokio::test]
async fn failure_of_one_path_ejects_no_server_that_answers_others() {
    use ErrorType::{ConnectionClosed, InvalidHTTPHeader, ReadTimedout};
    for (reached, kind, answers, is_up) in [
        (Reached::NewConnection, ConnectionClosed, true, true),
        (Reached::Octets, ConnectionClosed, true, true),
        (Reached::Octets, InvalidHTTPHeader, true, true),
        (Reached::NewConnection, ConnectionClosed, false, false),
        (Reached::Octets, InvalidHTTPHeader, false, false),
        (Reached::NewConnection, ReadTimedout, false, false),
    ] {
        let upstreams = upstreams(&[servers(&["127.0.0.1", "127.0.0.2"])]);
        for _ in 0..if answers { 2 } else { 0 } {
            one(&upstreams, &wanted(true)).await;
        }
        for _ in 0..8 {
            let mut attempts = Attempts::default();
            chosen(&mut attempts, &upstreams, &wanted(false)).await;
            attempts.failed(&upstreams, &wanted(false), reached, &failure(kind.clone()));
        }
        assert_eq!(
            all(&upstreams).iter().all(|server| server.is_up()),
            is_up,
            "{reached:?} {kind:?} {answers}"
        );
    }
}

/// The servers of the first origin.
fn all(upstreams: &Upstreams) -> Vec<Arc<Server>> {
    let group = &upstreams.groups[0];
    group
        .entries
        .iter()
        .flat_map(|entry| group.servers(entry))
        .collect()
}

#[tokio::test]
async fn statuses_eject_only_where_the_settings_say_so() {
    for (statuses, is_up) in [(vec![], true), (vec![502..=503], false)] {
        let ejection = Some(Ejection {
            statuses,
            ..Ejection::default()
        });
        let upstreams = upstreams(&[OriginSettings {
            ejection,
            ..servers(&["127.0.0.1", "127.0.0.2"])
        }]);
        for _ in 0..6 {
            let mut attempts = Attempts::default();
            let server = chosen(&mut attempts, &upstreams, &wanted(true)).await;
            attempts.answered(
                &upstreams,
                if server == 1 { 503 } else { 200 },
                Duration::ZERO,
                || false,
            );
        }
        let group = &upstreams.groups[0];
        assert_eq!(group.servers(&group.entries[0])[0].is_up(), is_up);
    }
}

#[tokio::test]
async fn backup_gets_requests_only_while_no_other_server_is_up() {
    let mut origin = servers(&["127.0.0.1", "127.0.0.2"]);
    origin.servers[1].is_backup = true;
    let upstreams = upstreams(&[origin]);
    for _ in 0..4 {
        assert_eq!(one(&upstreams, &wanted(true)).await, 1);
    }
    let asked = failing(&upstreams, 1, ErrorType::ConnectRefused, 5).await;
    assert_eq!(asked, [1, 2, 1, 2, 1, 2, 2, 2]);
}

#[tokio::test]
async fn server_with_fewer_requests_in_flight_is_preferred() {
    let balance = Balance::LeastRequests;
    let upstreams = upstreams(&[OriginSettings {
        balance,
        ..servers(&["127.0.0.1", "127.0.0.2"])
    }]);
    let mut busy = Vec::new();
    for _ in 0..10 {
        let mut attempts = Attempts::default();
        let server = chosen(&mut attempts, &upstreams, &wanted(true)).await;
        busy.push((server, attempts));
    }
    let ones = busy.iter().filter(|(server, _)| *server == 1).count();
    assert_eq!(ones, 5);
    // The requests of the first server end.
    busy.retain(|(server, _)| *server == 2);
    for _ in 0..5 {
        assert_eq!(one(&upstreams, &wanted(true)).await, 1);
    }
}

#[tokio::test]
async fn client_keeps_its_server_and_a_lost_server_moves_only_its_own() {
    let balance = Balance::Client;
    let hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];
    let clients: Vec<String> = (0..200).map(|client| format!("192.0.2.{client}")).collect();
    let all = upstreams(&[OriginSettings {
        balance,
        ..servers(&hosts)
    }]);
    let fewer = upstreams(&[OriginSettings {
        balance,
        ..servers(&hosts[..2])
    }]);
    let mut of_each = [0; 4];
    for client in &clients {
        let server = one(&all, &from(client)).await;
        assert_eq!(one(&all, &from(client)).await, server);
        if server != 3 {
            assert_eq!(one(&fewer, &from(client)).await, server, "{client}");
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
async fn address_that_stays_keeps_what_is_known_of_it() {
    let upstreams = upstreams(&[unresolved(&["name.invalid"])]);
    let (group, entry) = (&upstreams.groups[0], &upstreams.groups[0].entries[0]);
    let address = |text: &str| -> SocketAddr { text.parse().expect("an address") };
    let (one, two, three) = (
        address("127.0.0.1:80"),
        address("127.0.0.2:80"),
        address("127.0.0.3:80"),
    );
    group.use_addresses(entry, &[one, two]);
    let before = group.servers(entry);
    group.use_addresses(entry, &[two, one]);
    assert!(
        before
            .iter()
            .zip(group.servers(entry))
            .all(|(before, now)| Arc::ptr_eq(before, &now))
    );
    group.use_addresses(entry, &[three, two]);
    let now = group.servers(entry);
    assert_eq!(
        (now[0].address, Arc::ptr_eq(&now[1], &before[1])),
        (three, true)
    );
}

#[tokio::test]
async fn next_process_sends_nothing_to_an_ejected_server() {
    let hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];
    let before = upstreams(&[servers(&hosts)]);
    failing(&before, 2, ErrorType::ConnectRefused, 12).await;
    let passed = serde_json::to_string(&before.pass()).expect("JSON");
    let passed: Vec<PassedServer> = serde_json::from_str(&passed).expect("what was passed");
    assert_eq!(passed.len(), 1);
    let next = upstreams(&[servers(&hosts)]);
    next.go_on(&passed);
    for _ in 0..6 {
        assert_ne!(one(&next, &wanted(false)).await, 2);
    }
    // As the last server it would be needed, and other settings may eject none.
    let alone = upstreams(&[servers(&hosts[1..2])]);
    let never = upstreams(&[OriginSettings {
        ejection: None,
        ..servers(&hosts)
    }]);
    for upstreams in [alone, never] {
        upstreams.go_on(&passed);
        assert_eq!(upstreams.pass(), Vec::new());
    }
}

#[tokio::test]
async fn ejection_waits_for_the_address_of_a_name() {
    let named = || upstreams(&[unresolved(&["name.invalid", "127.0.0.3"])]);
    let address = ["127.0.0.2:8080".parse().expect("an address")];
    let before = named();
    before.groups[0].use_addresses(&before.groups[0].entries[0], &address);
    failing(&before, 2, ErrorType::ConnectRefused, 12).await;
    let (next, passed) = (named(), before.pass());
    next.go_on(&passed);
    assert_eq!((passed.len(), next.pass().len()), (1, 0));
    next.groups[0].use_addresses(&next.groups[0].entries[0], &address);
    assert_eq!(next.pass().len(), 1);
}

#[tokio::test]
async fn failed_lookup_keeps_the_last_good_addresses() {
    let upstreams = Arc::new(upstreams(&[unresolved(&["name.invalid"])]));
    let (group, entry) = (&upstreams.groups[0], &upstreams.groups[0].entries[0]);
    assert!(!Resolver(upstreams.clone()).round().await);
    group.use_addresses(entry, &["127.0.0.7:8080".parse().expect("an address")]);
    assert!(Resolver(upstreams.clone()).round().await);
    assert_eq!(one(&upstreams, &wanted(true)).await, 7);
}

#[tokio::test]
async fn name_is_resolved_to_its_address() {
    let upstreams = Arc::new(upstreams(&[unresolved(&["localhost"])]));
    assert!(Resolver(upstreams.clone()).round().await);
    let found = upstreams.groups[0].servers(&upstreams.groups[0].entries[0]);
    assert!(!found.is_empty() && found.iter().all(|server| server.address.ip().is_loopback()));
}

#[tokio::test]
async fn peer_has_timeouts_and_verifies_the_servers_name() {
    let mut origin = servers(&["127.0.0.1"]);
    origin.servers[0].address.tls = true;
    let upstreams = upstreams(&[origin]);
    let mut attempts = Attempts::default();
    attempts
        .next(&upstreams, &wanted(true))
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

fn bounded(connections: usize, crawlers: usize) -> OriginSettings {
    let places = PlaceSettings {
        crawlers,
        wait: MINUTE,
        ..PlaceSettings::of(connections)
    };
    OriginSettings {
        places: Some(places),
        ..servers(&["127.0.0.1"])
    }
}

/// A request that has a place.
async fn placed(upstreams: &Upstreams, wanted: &Wanted<'_>) -> Option<Attempts> {
    let mut attempts = Attempts::default();
    let next =
        tokio::time::timeout(Duration::from_millis(20), attempts.next(upstreams, wanted)).await;
    matches!(next, Ok(Ok(_))).then_some(attempts)
}

#[tokio::test]
async fn crawlers_have_their_part_of_the_places_and_people_the_rest() {
    let upstreams = upstreams(&[bounded(5, 2)]);
    let mut inside = Vec::new();
    for _ in 0..2 {
        inside.push(
            placed(&upstreams, &crawler())
                .await
                .expect("a place of crawlers"),
        );
    }
    let mut third = Attempts::default();
    let Err(NoServer::Full(full)) = third.next(&upstreams, &crawler()).await else {
        panic!("a third crawler got in")
    };
    assert_eq!(full.reason, "turned_away");
    for _ in 0..3 {
        inside.push(placed(&upstreams, &wanted(true)).await.expect("a place"));
    }
    assert!(
        placed(&upstreams, &wanted(true)).await.is_none(),
        "all places are taken"
    );
    drop(inside);
    assert!(placed(&upstreams, &crawler()).await.is_some());
}

#[tokio::test]
async fn people_wait_in_their_order_and_crawlers_stay_out_meanwhile() {
    let upstreams = Arc::new(upstreams(&[bounded(1, 1)]));
    let inside = placed(&upstreams, &wanted(true)).await.expect("a place");
    let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
    let mut waiting = Vec::new();
    for number in 0..3 {
        let (servers, sender) = (upstreams.clone(), sender.clone());
        waiting.push(tokio::spawn(async move {
            let mut attempts = Attempts::default();
            attempts
                .next(&servers, &wanted(true))
                .await
                .expect("a place");
            sender.send(number).expect("the test listens");
        }));
        let room = upstreams.groups[0].shared.room.as_ref().expect("a bound");
        while room.waiting() <= number {
            tokio::task::yield_now().await;
        }
    }
    // The second one leaves.
    waiting[1].abort();
    let room = upstreams.groups[0].shared.room.as_ref().expect("a bound");
    while room.waiting() > 2 {
        tokio::task::yield_now().await;
    }
    let mut attempts = Attempts::default();
    assert!(matches!(
        attempts.next(&upstreams, &crawler()).await,
        Err(NoServer::Full(_))
    ));
    drop(inside);
    assert_eq!((order.recv().await, order.recv().await), (Some(0), Some(2)));
}

#[tokio::test]
async fn queue_is_bounded_in_length_and_time() {
    let mut origin = bounded(1, 1);
    origin.places = Some(PlaceSettings {
        length: 1,
        wait: Duration::from_millis(30),
        ..PlaceSettings::of(1)
    });
    let upstreams = Arc::new(upstreams(&[origin]));
    let _inside = placed(&upstreams, &wanted(true)).await.expect("a place");
    let waits = async {
        let mut attempts = Attempts::default();
        attempts.next(&upstreams, &wanted(true)).await.err()
    };
    let comes_too_late = async {
        let room = upstreams.groups[0].shared.room.as_ref().expect("a bound");
        while room.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        let mut attempts = Attempts::default();
        attempts.next(&upstreams, &wanted(true)).await.err()
    };
    let (waited, refused) = tokio::join!(waits, comes_too_late);
    let reason = |none: Option<NoServer>| match none {
        Some(NoServer::Full(full)) => full.reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (reason(waited), reason(refused)),
        ("queue_timeout", "queue_full")
    );
}

#[tokio::test]
async fn one_address_takes_a_quarter_of_the_places() {
    let upstreams = upstreams(&[bounded(8, 1)]);
    let (one, other) = (from("192.0.2.1"), from("192.0.2.2"));
    let _inside = [
        placed(&upstreams, &one).await.expect("a place"),
        placed(&upstreams, &one).await.expect("a place"),
    ];
    assert!(placed(&upstreams, &one).await.is_none());
    assert!(placed(&upstreams, &other).await.is_some());
}

#[tokio::test]
async fn address_with_the_fewest_places_goes_first() {
    let upstreams = Arc::new(upstreams(&[bounded(8, 1)]));
    let _one = placed(&upstreams, &from("192.0.2.1"))
        .await
        .expect("a place");
    let mut inside = Vec::new();
    for last in 2..9 {
        let wanted = Wanted {
            client: Some([192, 0, 2, last].into()),
            ..wanted(true)
        };
        inside.push(placed(&upstreams, &wanted).await.expect("a place"));
    }
    let second = waits(&upstreams, from("192.0.2.1")).await;
    let mut third = Attempts::default();
    let other = from("192.0.2.9");
    let mut third = pin!(third.next(&upstreams, &other));
    assert!(poll_fn(|context| Poll::Ready(third.as_mut().poll(context).is_pending())).await);
    inside.pop();
    assert!(third.await.is_ok());
    let room = upstreams.groups[0].shared.room.as_ref().expect("a bound");
    assert_eq!(room.waiting(), 1, "the one that came first");
    // Its turn is the next, though another address has none.
    let last = from("192.0.2.10");
    let mut fourth = Attempts::default();
    let mut fourth = pin!(fourth.next(&upstreams, &last));
    assert!(poll_fn(|context| Poll::Ready(fourth.as_mut().poll(context).is_pending())).await);
    inside.pop();
    assert_eq!(second.await.expect("no panic"), None);
}

#[tokio::test]
async fn place_is_wanted_while_its_server_has_no_other() {
    let upstreams = Arc::new(upstreams(&[bounded(4, 1)]));
    let inside = placed(&upstreams, &from("192.0.2.1"))
        .await
        .expect("a place");
    let _waiting = waits(&upstreams, from("192.0.2.1")).await;
    let is_wanted = || inside.place().is_some_and(|place| place.people_wait());
    assert!(!is_wanted(), "whoever waits has his share");
    let crawler = placed(&upstreams, &crawler()).await.expect("a place");
    assert!(crawler.place().is_none(), "a crawler keeps its place");
    let _others = [
        placed(&upstreams, &wanted(true)).await,
        placed(&upstreams, &wanted(true)).await,
    ];
    assert!(is_wanted());
    let place = inside.place().expect("a place");
    assert!(place.give_up() && inside.place().is_none());
}

#[tokio::test]
async fn another_attempt_has_a_place_and_counts_for_its_address() {
    let upstreams = upstreams(&[OriginSettings {
        places: bounded(2, 1).places,
        ..servers(&["127.0.0.1", "127.0.0.2"])
    }]);
    let one = from("192.0.2.1");
    let mut attempts = placed(&upstreams, &one).await.expect("a place");
    assert!(attempts.failed(
        &upstreams,
        &one,
        Reached::Nothing,
        &failure(ErrorType::ConnectRefused)
    ));
    attempts
        .next(&upstreams, &one)
        .await
        .expect("the other server");
    assert!(attempts.place().is_some());
    assert!(
        placed(&upstreams, &one).await.is_none(),
        "its address has its share"
    );
    drop(attempts);
    assert!(placed(&upstreams, &one).await.is_some());
}

#[tokio::test]
async fn newcomer_takes_a_turn_of_the_address_with_the_most() {
    let mut origin = bounded(1, 1);
    origin
        .places
        .iter_mut()
        .for_each(|places| places.length = 40);
    let upstreams = Arc::new(upstreams(&[origin]));
    let _inside = placed(&upstreams, &wanted(true)).await.expect("a place");
    let mut waiting = Vec::new();
    for last in 1..=20 {
        for _ in 0..2 {
            let client = Some([192, 0, 2, last].into());
            waiting.push(
                waits(
                    &upstreams,
                    Wanted {
                        client,
                        ..wanted(true)
                    },
                )
                .await,
            );
        }
    }
    let mut newcomer = Attempts::default();
    let other = from("198.51.100.1");
    let mut newcomer = pin!(newcomer.next(&upstreams, &other));
    assert!(poll_fn(|context| Poll::Ready(newcomer.as_mut().poll(context).is_pending())).await);
    let displaced = waiting
        .pop()
        .expect("the last one")
        .await
        .expect("no panic");
    assert!(
        matches!(
            displaced,
            Some(NoServer::Full(Full {
                reason: "queue_full",
                ..
            }))
        ),
        "{displaced:?}"
    );
    let mut second = Attempts::default();
    let refused = second.next(&upstreams, &other).await.err();
    assert!(
        matches!(refused, Some(NoServer::Full(_))),
        "it has as many as the others: {refused:?}"
    );
}

/// A request of a person who waits for a place.
async fn waits(
    upstreams: &Arc<Upstreams>,
    wanted: Wanted<'static>,
) -> tokio::task::JoinHandle<Option<NoServer>> {
    let servers = upstreams.clone();
    let room = upstreams.groups[0].shared.room.as_ref().expect("a bound");
    let before = room.waiting();
    let task = tokio::spawn(async move {
        let mut attempts = Attempts::default();
        attempts.next(&servers, &wanted).await.err()
    });
    while room.waiting() == before {
        tokio::task::yield_now().await;
    }
    task
}

#[tokio::test]
async fn one_address_takes_a_sixteenth_of_the_queue() {
    let mut origin = bounded(1, 1);
    origin
        .places
        .iter_mut()
        .for_each(|places| places.length = 32);
    let upstreams = Arc::new(upstreams(&[origin]));
    let _inside = placed(&upstreams, &wanted(true)).await.expect("a place");
    let _waiting = [
        waits(&upstreams, from("192.0.2.1")).await,
        waits(&upstreams, from("192.0.2.1")).await,
    ];
    let mut third = Attempts::default();
    let refused = third.next(&upstreams, &from("192.0.2.1")).await.err();
    assert!(
        matches!(
            refused,
            Some(NoServer::Full(Full {
                reason: "queue_full",
                ..
            }))
        ),
        "{refused:?}"
    );
    let other = waits(&upstreams, from("192.0.2.2")).await;
    // One that leaves makes room for another one.
    other.abort();
    let room = upstreams.groups[0].shared.room.as_ref().expect("a bound");
    while room.waiting() > 2 {
        tokio::task::yield_now().await;
    }
    for _ in 0..2 {
        waits(&upstreams, from("192.0.2.2")).await;
    }
}

#[tokio::test]
async fn address_that_waits_for_its_share_keeps_no_crawler_out() {
    let upstreams = Arc::new(upstreams(&[bounded(4, 1)]));
    let _inside = placed(&upstreams, &from("192.0.2.1"))
        .await
        .expect("a place");
    let waiting = waits(&upstreams, from("192.0.2.1")).await;
    let crawler = placed(&upstreams, &crawler())
        .await
        .expect("a place of crawlers");
    let others = [
        placed(&upstreams, &wanted(true)).await,
        placed(&upstreams, &wanted(true)).await,
    ];
    assert!(others.iter().all(Option::is_some), "nor another person");
    let second = waits(&upstreams, from("192.0.2.2")).await;
    drop(crawler);
    assert_eq!(
        second.await.expect("no panic"),
        None,
        "the place of the crawler is this person's"
    );
    assert!(!waiting.is_finished());
}

#[tokio::test]
async fn verified_crawler_of_the_list_waits_like_a_person() {
    let googlebot = Registry::builtin()
        .find("googlebot")
        .expect("a known crawler");
    let mut origin = bounded(4, 1);
    origin
        .places
        .iter_mut()
        .for_each(|places| places.exempt = vec![googlebot]);
    let upstreams = upstreams(&[origin]);
    let verified = Wanted {
        verified: Some(googlebot),
        is_search: true,
        ..crawler()
    };
    let mut inside = Vec::new();
    for _ in 0..4 {
        inside.push(placed(&upstreams, &verified).await.expect("a place"));
    }
    let mut attempts = Attempts::default();
    let waits = tokio::time::timeout(
        Duration::from_millis(10),
        attempts.next(&upstreams, &verified),
    )
    .await;
    assert!(waits.is_err(), "it waits");
}

#[tokio::test]
async fn crawlers_that_are_turned_away_are_told_later_and_later_moments() {
    let upstreams = upstreams(&[bounded(2, 1)]);
    let _inside = placed(&upstreams, &crawler()).await.expect("a place");
    let mut told = Vec::new();
    for _ in 0..6 {
        let mut attempts = Attempts::default();
        match attempts.next(&upstreams, &crawler()).await {
            Err(NoServer::Full(full)) => told.push(full.retry_after),
            other => panic!("{other:?}"),
        }
    }
    // Half a second each, as long as no request has ended.
    assert_eq!(told, [1, 1, 2, 2, 3, 3]);
}

#[tokio::test]
async fn search_crawler_that_is_turned_away_for_long_is_known() {
    let googlebot = Registry::builtin()
        .find("googlebot")
        .expect("a known crawler");
    let origin = bounded(2, 1);
    let group = Group::new(0, &origin, None);
    let room = group.shared.room.as_ref().expect("a bound");
    let _inside = Held::enter(group.servers(&group.entries[0])[0].clone());
    let searching = Wanted {
        verified: Some(googlebot),
        is_search: true,
        ..crawler()
    };
    let minutes = |minutes: u32| MINUTE * minutes;
    let taken: Vec<_> = (0..2)
        .map(|_| group.enter(&searching, || Duration::ZERO))
        .collect();
    for minute in [1, 10, 19] {
        group.enter(&searching, || minutes(minute));
    }
    let found = |minute| {
        room.status(String::new(), minutes(minute), Duration::ZERO)
            .search_crawlers
    };
    let name = &Registry::builtin().get(googlebot).name;
    assert_eq!(found(20), [(name.clone(), 19 * 60)]);
    assert!(found(40).is_empty());
    group.enter(&searching, || minutes(40));
    assert_eq!(found(40), [(name.clone(), 0)]);
    drop(taken);
}

#[tokio::test]
async fn endless_answer_gives_its_place_back() {
    let upstreams = upstreams(&[bounded(1, 1)]);
    let mut stream = placed(&upstreams, &wanted(true)).await.expect("a place");
    stream.answered(&upstreams, 200, Duration::ZERO, || true);
    assert!(placed(&upstreams, &wanted(true)).await.is_some());
}
