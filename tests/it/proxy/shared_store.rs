//! `exchange::shared_store` against a real Redis: what is written is read again, and a store that
//! cannot be used, is away or is another one says so.

use crate::proxy::support::program::free_address;
use crate::proxy::support::redis::RedisServer;
use crawlgate::internals::exchange::shared_store::SharedStore;
use crawlgate::internals::exchange::store::MAX_CLIENT_FACTS;
use crawlgate::internals::exchange::{
    ExchangeStore, LogEntry, LogPosition, Member, SharedFact, StoreBatch, StoreDeadline,
    StoreError, StoreIdentity,
};
use crawlgate::internals::settings::{Settings, StoreSettings, decode_settings};
use crawlgate::yaml::SourceFile;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn settings(store: &str) -> StoreSettings {
    let source = SourceFile {
        name: "crawlgate.yaml".into(),
        text: format!("store: {store}\n").into(),
    };
    decode_settings(&source, std::path::Path::new(""), Settings::default())
        .0
        .and_then(|file| file.store)
        .expect("settings of a store")
}

fn opened(settings: StoreSettings) -> SharedStore {
    SharedStore::new(settings, StoreDeadline::default())
}

fn store(server: &RedisServer) -> SharedStore {
    opened(settings(&format!("'{}'", server.url())))
}

fn fact(key: &str, at: i64, value: &str) -> SharedFact {
    SharedFact {
        key: key.into(),
        at,
        value: value.into(),
    }
}

fn member(id: &str) -> Member {
    let position = LogPosition {
        milliseconds: 5,
        sequence: 1,
    };
    let json = serde_json::json!({
        "id": id, "run": "0123456789abcdef", "schema": 1, "version": "0.1.0", "host": "edge-1", "joined": 10, "reported": 11,
        "heard": position, "settled": null, "policies": "a", "crawlers": "b", "clock_ahead_ms": 0, "has_left": false,
    });
    serde_json::from_value(json).expect("a member")
}

fn batch(facts: Vec<SharedFact>) -> StoreBatch {
    let entry = LogEntry {
        member: member("aaaa"),
        facts: facts.clone(),
        sets: false,
        asks: false,
    };
    StoreBatch {
        facts,
        entry: Some(entry),
        ..StoreBatch::default()
    }
}

/// Writes facts; the place of their entry.
fn write(store: &mut SharedStore, identity: &StoreIdentity, facts: Vec<SharedFact>) -> LogPosition {
    let written = store.write(identity, &batch(facts)).expect("written");
    written.expect("the expected store")
}

#[test]
fn facts_are_read_from_the_sets_and_from_the_log() {
    let server = RedisServer::start();
    let (mut one, mut other) = (store(&server), store(&server));
    let (identity, time) = one.identity("f00d").expect("an identity");
    // The first one founds it.
    assert_eq!(other.identity("beef").expect("an identity").0, identity);
    assert_eq!(identity.epoch, "f00d");
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a clock")
        .as_millis();
    assert!(now.abs_diff(time as u128) < 60_000);

    assert_eq!(
        other.read(LogPosition::default()).expect("a log").entries,
        None
    );
    let first = write(
        &mut one,
        &identity,
        vec![fact("s\na", 100, ""), fact("p\nb", 7, "of a run")],
    );
    let second = write(
        &mut one,
        &identity,
        vec![fact("s\na", 90, ""), fact("v\nc", 7, "User-agent: *")],
    );
    let read = other.read(first).expect("the log");
    assert_eq!((read.identity, read.last), (identity.clone(), second));
    let entries = read.entries.expect("a log with the position");
    assert_eq!(
        entries.iter().map(|(place, _)| *place).collect::<Vec<_>>(),
        [second]
    );
    assert_eq!(entries[0].1.facts.len(), 2);

    let mut sets = other.read_sets().expect("sets");
    sets.facts.sort();
    // The earlier time did not take the place of the later one, and files come by their key.
    assert_eq!(
        sets.facts,
        [fact("p\nb", 7, "of a run"), fact("s\na", 100, "")]
    );
    assert_eq!(sets.members, [member("aaaa")]);
    let keys = ["v\nc".to_owned(), "v\nnone".to_owned()];
    assert_eq!(
        other.fetch(&keys).expect("facts"),
        [fact("v\nc", 7, "User-agent: *")]
    );
}

#[test]
fn batch_replaces_keeps_or_removes_keys() {
    let server = RedisServer::start();
    let mut store = store(&server);
    let (identity, _) = store.identity("f00d").expect("an identity");
    write(
        &mut store,
        &identity,
        vec![
            fact("p\na", 1, "old"),
            fact("p\nb", 1, "old"),
            fact("s\nc", 5, ""),
        ],
    );
    let changed = StoreBatch {
        facts: vec![fact("p\na", 2, "new"), fact("s\nd", 50, "")],
        if_missing: vec![fact("p\nb", 2, "new"), fact("p\ne", 2, "new")],
        forget: vec!["p\nnone".into()],
        served_before: Some(50),
        members_if_missing: vec![member("aaaa"), member("bbbb")],
        forget_members: vec!["cccc".into()],
        entry: None,
    };
    let written = store.write(&identity, &changed).expect("written");
    assert_eq!(written, Some(LogPosition::default()));
    let mut sets = store.read_sets().expect("sets");
    sets.facts.sort();
    let expected = [
        fact("p\na", 2, "new"),
        fact("p\nb", 1, "old"),
        fact("p\ne", 2, "new"),
        fact("s\nd", 50, ""),
    ];
    assert_eq!(sets.facts, expected);
    assert_eq!(sets.members.len(), 2);
}

#[test]
fn large_sets_are_read_in_parts() {
    let server = RedisServer::start();
    let mut store = store(&server);
    let (identity, _) = store.identity("f00d").expect("an identity");
    for part in 0..5 {
        let facts = (0..1_000).flat_map(|number| {
            let number = part * 1_000 + number;
            [
                fact(&format!("s\n{number}"), number, ""),
                fact(&format!("p\n{number}"), number, "x"),
            ]
        });
        store
            .write(
                &identity,
                &StoreBatch {
                    entry: None,
                    ..batch(facts.collect())
                },
            )
            .expect("written");
    }
    let mut facts = store.read_sets().expect("sets").facts;
    facts.sort();
    facts.dedup();
    assert_eq!(facts.len(), 10_000);
}

#[test]
fn facts_that_clients_make_are_kept_up_to_a_bound() {
    let server = RedisServer::start();
    let mut store = store(&server);
    let identity = store.identity("f00d").expect("an identity").0;
    let mark = |number: usize| {
        fact(
            &format!("marked_clients\n\nshop\nother\n192.0.2.1\n[0,{number}]"),
            number as i64,
            "",
        )
    };
    let all: Vec<SharedFact> = (0..MAX_CLIENT_FACTS + 10).map(mark).collect();
    store
        .write(
            &identity,
            &StoreBatch {
                facts: vec![fact("pauses\n\nshop\nswitched\n\n[]", 1, "")],
                ..StoreBatch::default()
            },
        )
        .expect("written");
    for facts in all.chunks(5_000) {
        store
            .write(
                &identity,
                &StoreBatch {
                    facts: facts.to_vec(),
                    ..StoreBatch::default()
                },
            )
            .expect("written");
    }
    let mut facts = store.read_sets().expect("the sets").facts;
    facts.sort();
    facts.dedup();
    assert_eq!(facts.len(), MAX_CLIENT_FACTS + 1);
    assert!(
        facts.contains(&fact("pauses\n\nshop\nswitched\n\n[]", 1, "")),
        "what operators said stays"
    );
    assert!(
        facts.contains(&mark(10)) && !facts.contains(&mark(9)),
        "the oldest went"
    );
    // The latest time of a fact counts.
    let late = MAX_CLIENT_FACTS as i64 + 100;
    for at in [late, 5] {
        let again = SharedFact { at, ..mark(10) };
        store
            .write(
                &identity,
                &StoreBatch {
                    facts: vec![again],
                    ..StoreBatch::default()
                },
            )
            .expect("written");
    }
    assert!(
        store
            .read_sets()
            .expect("the sets")
            .facts
            .contains(&SharedFact {
                at: late,
                ..mark(10)
            })
    );
    store
        .write(
            &identity,
            &StoreBatch {
                served_before: Some(late),
                ..StoreBatch::default()
            },
        )
        .expect("written");
    assert_eq!(
        store.read_sets().expect("the sets").facts,
        [SharedFact {
            at: late,
            ..mark(10)
        }],
        "all else is over"
    );
}

#[test]
fn nothing_is_written_into_another_store_than_the_expected_one() {
    let server = RedisServer::start();
    let mut store = store(&server);
    let (identity, _) = store.identity("f00d").expect("an identity");
    write(&mut store, &identity, vec![fact("s\na", 1, "")]);
    let _: () = server.command(&["FLUSHALL"]);
    let written = store
        .write(&identity, &batch(vec![fact("s\nb", 1, "")]))
        .expect("an answer");
    assert_eq!(written, None);
    assert_eq!(server.command::<u64>(&["DBSIZE"]), 0);
    // The same process goes on under another epoch.
    let (founded, _) = store.identity("beef").expect("an identity");
    assert_eq!(
        (founded.epoch.as_str(), &founded.run_id),
        ("beef", &identity.run_id)
    );
}

#[test]
fn store_identity_check_ends_no_foreign_transaction() {
    let server = RedisServer::start();
    let (mut one, mut other) = (store(&server), store(&server));
    let (identity, _) = one.identity("f00d").expect("an identity");
    write(&mut one, &identity, Vec::new());
    one.identity("f00d").expect("an identity");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(other.identity("beef").expect("an identity").0, identity);
            }
        });
        for at in 0..300 {
            let written = one.write(&identity, &batch(vec![fact("s\na", at, "")]));
            if !matches!(written, Ok(Some(_))) {
                is_over.store(true, Ordering::Relaxed);
                panic!("write {at} was not done: {written:?}");
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn restarted_store_is_another_one() {
    let mut server = RedisServer::start();
    let mut store = store(&server);
    let (identity, _) = store.identity("f00d").expect("an identity");
    server.program.kill();
    let Err(StoreError::Away(said)) = store.identity("f00d") else {
        panic!("nothing answers")
    };
    assert!(said.contains(&server.program.address.to_string()), "{said}");
    server.program.start_again();
    // The test's clock of Redis is the machine's: another run_id, and the epoch is founded anew.
    let (founded, _) = store.identity("beef").expect("an identity");
    assert_ne!(founded.run_id, identity.run_id);
    assert_eq!(founded.epoch, "beef");
}

#[test]
fn paused_store_is_away_in_time_and_comes_back() {
    let server = RedisServer::start();
    let mut store = store(&server);
    let (identity, _) = store.identity("f00d").expect("an identity");
    server.pause();
    for what in ["on the open connection", "on a new one"] {
        let began = Instant::now();
        let answer = store.read(LogPosition::default());
        assert!(
            matches!(answer, Err(StoreError::Away(_))),
            "{what}: {answer:?}"
        );
        assert!(began.elapsed() < Duration::from_secs(10), "{what}");
    }
    server.resume();
    assert_eq!(store.identity("beef").expect("an identity").0, identity);
}

/// A server that answers everything with the same bytes, one every so often.
fn trickling(answer: impl Fn() -> Vec<u8> + Send + 'static, pause: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let answer = answer();
            for byte in answer.chunks(if pause.is_zero() { answer.len() } else { 1 }) {
                if client.write_all(byte).is_err() {
                    break;
                }
                std::thread::park_timeout(pause);
            }
        }
    });
    address
}

#[test]
fn answer_that_trickles_makes_the_store_away_in_time() {
    let address = trickling(|| vec![b'+'; 10_000], Duration::from_millis(20));
    let mut store = opened(settings(&format!("'redis://{address}/1'")));
    let began = Instant::now();
    let answer = store.identity("f00d");
    assert!(matches!(answer, Err(StoreError::Away(_))), "{answer:?}");
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn answer_of_60_megabytes_makes_the_store_away() {
    let large = || {
        [
            b"$62914560\r\n".as_slice(),
            &vec![b'a'; 62_914_560],
            b"\r\n",
        ]
        .concat()
    };
    let address = trickling(large, Duration::ZERO);
    let answer = opened(settings(&format!("'redis://{address}'"))).identity("f00d");
    assert!(matches!(answer, Err(StoreError::Away(_))), "{answer:?}");
}

#[test]
fn cut_log_differs_from_an_empty_one() {
    let server = RedisServer::start();
    let mut store = store(&server);
    let (identity, _) = store.identity("f00d").expect("an identity");
    let places: Vec<LogPosition> = (0..3)
        .map(|_| write(&mut store, &identity, Vec::new()))
        .collect();
    assert_eq!(
        store.read(places[2]).expect("the log").entries,
        Some(Vec::new())
    );
    let _: u64 = server.command(&["XTRIM", "crawlgate:log", "MAXLEN", "1"]);
    let read = store.read(places[0]).expect("the log");
    assert_eq!((read.entries, read.last), (None, places[2]));
}

#[test]
fn entry_of_a_later_crawlgate_is_no_entry() {
    let server = RedisServer::start();
    let mut store = store(&server);
    let (identity, _) = store.identity("f00d").expect("an identity");
    let place = write(&mut store, &identity, Vec::new());
    let _: String = server.command(&["XADD", "crawlgate:log", "*", "e", "{\"facts\":[]}"]);
    assert!(matches!(store.read(place), Err(StoreError::Newer(_))));
}

#[test]
fn every_key_ends_by_itself() {
    let server = RedisServer::start();
    let mut store = store(&server);
    let (identity, _) = store.identity("f00d").expect("an identity");
    write(
        &mut store,
        &identity,
        vec![
            fact("s\na", 1, ""),
            fact("marked_clients\n\nc", 1, ""),
            fact("p\nb", 1, "x"),
        ],
    );
    store.identity("f00d").expect("an identity");
    let keys: Vec<String> = server.command(&["KEYS", "*"]);
    assert_eq!(keys.len(), 6, "{keys:?}");
    for key in keys {
        let rest: i64 = server.command(&["TTL", &key]);
        assert!((32 * 86_400..=40 * 86_400).contains(&rest), "{key}: {rest}");
    }
}

/// Why a store is not used: the id, and what is said.
fn refusal(store: &mut SharedStore) -> (String, String) {
    match store.identity("f00d") {
        Err(StoreError::Unusable(why)) => (why.id.into_owned(), why.message),
        Err(StoreError::Evicts(said)) => ("evicts".to_owned(), said),
        other => panic!("{other:?}"),
    }
}

#[test]
fn store_that_deletes_keys_is_refused() {
    for policy in ["allkeys-lru", "volatile-ttl"] {
        let server = RedisServer::with(&["--maxmemory-policy", policy]);
        let (id, said) = refusal(&mut store(&server));
        assert_eq!(id, "evicts");
        assert!(
            said.contains(policy) && said.contains("noeviction"),
            "{said}"
        );
        // When it is mended, it is used. A store that runs is looked at again.
        let mut store = store(&server);
        let _: () = server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        store.identity("f00d").expect("an identity");
        let _: () = server.command(&["CONFIG", "SET", "maxmemory-policy", policy]);
        assert!(
            matches!(store.identity("f00d"), Err(StoreError::Evicts(said)) if said.contains(policy))
        );
        let _: () = server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        store.identity("f00d").expect("an identity");
    }
}

#[test]
fn keys_of_another_program_are_left_alone() {
    for key in ["crawlgate:epoch", "crawlgate:log"] {
        let server = RedisServer::start();
        let _: () = server.command(&["SET", key, "mine"]);
        let (id, said) = refusal(&mut store(&server));
        assert_eq!(id, "foreign-key");
        assert!(said.contains(key) && said.contains("prefix"), "{said}");
        assert_eq!(server.command::<String>(&["GET", key]), "mine");
        let mut elsewhere = opened(settings(&format!(
            "{{ url: '{}', prefix: 'shop:' }}",
            server.url()
        )));
        elsewhere.identity("f00d").expect("another prefix");
    }
}

#[test]
fn full_store_says_that_it_is_full() {
    let server = RedisServer::start();
    let mut store = store(&server);
    let (identity, _) = store.identity("f00d").expect("an identity");
    let _: () = server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let written = store.write(&identity, &batch(vec![fact("s\na", 1, "")]));
    let Err(StoreError::Unusable(why)) = written else {
        panic!("{written:?}")
    };
    assert_eq!(why.id, "store-full");
}

/// A server of another version: it answers `INFO`, and says yes to everything else.
fn of_version(version: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut lines = BufReader::new(client.try_clone().expect("a reader"))
                .lines()
                .map_while(Result::ok);
            let mut next = move || lines.next();
            // `*N`, and N times a length and a word.
            while let Some(words) =
                next().and_then(|line| line.strip_prefix('*')?.parse::<usize>().ok())
            {
                let words: Vec<String> = (0..words)
                    .filter_map(|_| next().and_then(|_| next()))
                    .collect();
                let info = format!(
                    "redis_version:{version}\r\nrun_id:1\r\nmaxmemory_policy:noeviction\r\n"
                );
                let answer = match words.first().map(String::as_str) {
                    Some("INFO") => format!("${}\r\n{info}\r\n", info.len()),
                    _ => "+none\r\n".to_owned(),
                };
                if client.write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    address
}

#[test]
fn server_of_an_old_version_is_refused() {
    for version in ["6.0.16", "5.0.14", "2.8.0", "", "of today"] {
        let (id, said) = refusal(&mut opened(settings(&format!(
            "'redis://{}'",
            of_version(version)
        ))));
        assert_eq!(id, "too-old");
        assert!(said.contains(version) && said.contains("6.2"), "{said}");
    }
    for version in ["6.2.0", "7.2.4", "10.0.0"] {
        let answer =
            opened(settings(&format!("'redis://{}'", of_version(version)))).identity("f00d");
        assert!(
            !matches!(&answer, Err(StoreError::Unusable(why)) if why.id == "too-old"),
            "{version}: {answer:?}"
        );
    }
}

#[test]
fn node_of_a_cluster_is_refused() {
    // By default the cluster's own port is one that a system hands out to others, and the server
    // would end.
    let port = free_address().port().to_string();
    let server = RedisServer::with(&["--cluster-enabled", "yes", "--cluster-port", &port]);
    assert_eq!(refusal(&mut store(&server)).0, "cluster");
}

#[test]
fn replica_is_refused() {
    let (primary, replica) = (RedisServer::start(), RedisServer::start());
    let port = primary.program.address.port().to_string();
    let _: () = replica.command(&["REPLICAOF", "127.0.0.1", &port]);
    assert_eq!(refusal(&mut store(&replica)).0, "replica");
}

#[test]
fn wrong_password_differs_from_no_answer() {
    let server = RedisServer::with_password("right");
    store(&server).identity("f00d").expect("an identity");
    let port = server.program.address.port();
    for url in [
        format!("redis://:wrong@127.0.0.1:{port}"),
        format!("redis://127.0.0.1:{port}"),
    ] {
        let (id, said) = refusal(&mut opened(settings(&format!("'{url}'"))));
        assert_eq!(id, "wrong-password");
        assert!(!said.contains("wrong@"), "{said}");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("password");
    std::fs::write(&file, "right\n").expect("a password");
    let of_file = format!(
        "{{ url: 'redis://127.0.0.1:{port}', password_file: '{}' }}",
        file.display()
    );
    opened(settings(&of_file))
        .identity("f00d")
        .expect("an identity");
    std::fs::remove_file(&file).expect("a file");
    let (id, said) = refusal(&mut opened(settings(&of_file)));
    assert_eq!(id, "unreadable-file");
    assert!(said.contains(&file.display().to_string()), "{said}");
}

#[test]
fn documented_acl_user_has_the_needed_rights() {
    let server = RedisServer::start();
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/instances.md"))
        .expect("a page");
    let line = page
        .lines()
        .find_map(|line| line.trim().strip_prefix("user edge "))
        .expect("the user for the file");
    let words: Vec<&str> = ["ACL", "SETUSER", "edge"]
        .into_iter()
        .chain(line.split_whitespace())
        .collect();
    let _: () = server.command(&words);
    let (user, password) = (
        words[2],
        words
            .iter()
            .find_map(|word| word.strip_prefix('>'))
            .expect("a password"),
    );
    let port = server.program.address.port();
    let mut store = opened(settings(&format!(
        "'redis://{user}:{password}@127.0.0.1:{port}/0'"
    )));
    let (identity, _) = store.identity("f00d").expect("an identity");
    let place = write(
        &mut store,
        &identity,
        vec![fact("s\na", 1, ""), fact("p\nb", 1, "x")],
    );
    store.read(place).expect("the log");
    store.read_sets().expect("sets");
    store.fetch(&["p\nb".into()]).expect("facts");
    let all = StoreBatch {
        if_missing: vec![fact("p\nc", 1, "x")],
        forget: vec!["p\nb".into()],
        served_before: Some(9),
        members_if_missing: vec![member("bbbb")],
        ..batch(Vec::new())
    };
    store.write(&identity, &all).expect("written");
    // Nothing but the prefix is open to it.
    let mut elsewhere = settings(&format!("'redis://{user}:{password}@127.0.0.1:{port}/0'"));
    elsewhere.prefix = "other:".into();
    assert_eq!(refusal(&mut opened(elsewhere)).0, "no-permission");
}

#[test]
fn certificate_of_the_store_is_verified() {
    let server = RedisServer::with_tls();
    let with_ca = format!("{{ url: '{}', ca: '{}' }}", server.url(), server.ca());
    opened(settings(&with_ca))
        .identity("f00d")
        .expect("an identity");
    // Nobody of the system vouches for it; and it is for another name.
    let of_system = store(&server).identity("f00d");
    assert!(
        matches!(&of_system, Err(StoreError::Away(said)) if said.contains("ertificate")),
        "{of_system:?}"
    );
    let other_name = with_ca.replace("localhost", "127.0.0.1");
    assert!(matches!(
        opened(settings(&other_name)).identity("f00d"),
        Err(StoreError::Away(_))
    ));
}
