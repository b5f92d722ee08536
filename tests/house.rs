//! The house: which room may import from which. The floors are in one table here and in the map that opens `lib.rs`;
//! the two must say the same.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Floor, and the rooms on it. `main`, `cli` and `server` are one room: the assembly.
const FLOORS: &[(i8, &[&str])] = &[
    (6, &["main", "cli", "server"]),
    (5, &["gateway", "admin"]),
    (4, &["origin", "sites", "ledger", "telemetry"]),
    (3, &["verdict", "history"]),
    (2, &["policy", "settings"]),
    (1, &["crawlers", "html"]),
    (0, &["robots", "indexing", "yaml", "clock", "durable"]),
    (-1, &["time"]),
];

/// Rooms of the engine: no runtime, no proxy, no clock, no I/O.
const ENGINE: &[&str] = &["robots", "indexing", "yaml", "time", "crawlers", "policy", "verdict", "history"];
const NOT_IN_THE_ENGINE: &[&str] = &[
    "tokio",
    "pingora",
    "SystemTime::now",
    "Instant::now",
    "Utc::now",
    "Local::now",
    "std::fs",
    "std::net::Tcp",
    "std::net::Udp",
    "std::process",
    "std::env",
    "std::thread",
];
/// Where Pingora may be imported.
const WITH_PINGORA: &[&str] = &["gateway", "admin", "origin", "server"];

struct File {
    path: PathBuf,
    room: String,
    /// Lines without their comments; string literals stay.
    code: Vec<String>,
    test: bool,
}

fn sources() -> Vec<File> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&src, &src, &mut files);
    assert!(files.len() > 40, "only {} files found", files.len());
    files
}

fn collect(src: &Path, directory: &Path, files: &mut Vec<File>) {
    for entry in fs::read_dir(directory).expect("the source directory is readable") {
        let path = entry.expect("a directory entry").path();
        if path.is_dir() {
            collect(src, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path.strip_prefix(src).expect("below src").to_owned();
            let first = relative.components().next().expect("a name").as_os_str().to_string_lossy().into_owned();
            let room = first.trim_end_matches(".rs").to_owned();
            let test = relative.components().any(|part| {
                let part = part.as_os_str().to_string_lossy();
                part == "tests" || part == "tests.rs" || part.ends_with("_tests.rs")
            });
            let text = fs::read_to_string(&path).expect("a source file is UTF-8");
            let code = text.lines().map(|line| line.split("//").next().unwrap_or("").to_owned()).collect();
            files.push(File { path: relative, room, code, test });
        }
    }
}

fn floor(room: &str) -> Option<i8> {
    FLOORS.iter().find(|(_, rooms)| rooms.contains(&room)).map(|(floor, _)| *floor)
}

fn same_room(one: &str, other: &str) -> bool {
    one == other || (floor(one) == Some(6) && floor(other) == Some(6))
}

/// The rooms that code names, each with its line: `crate::room`, `crate::{room, ...}`, `crawlgate::room`, or `super::`
/// beyond the room.
fn named_rooms(lines: &[String], depth: usize) -> Vec<(usize, String)> {
    let code = lines.join("\n");
    let out_of_the_room = "super::".repeat(depth);
    let mut rooms = Vec::new();
    for mark in ["crate::", "crawlgate::"].into_iter().chain((depth > 0).then_some(out_of_the_room.as_str())) {
        for (place, _) in code.match_indices(mark) {
            // `super::super::x` holds `super::` twice; only a whole path counts.
            if mark.starts_with("super") && code[..place].ends_with("super::") {
                continue;
            }
            let number = 1 + code[..place].matches('\n').count();
            for name in first_names(&code[place + mark.len()..]) {
                if floor(&name).is_some() {
                    rooms.push((number, name));
                }
            }
        }
    }
    rooms
}

/// The first name of a path; of each path in `{...}`.
fn first_names(path: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim().chars().take_while(|sign| sign.is_ascii_alphanumeric() || *sign == '_').collect()
    };
    let Some(list) = path.strip_prefix('{') else { return vec![name(path)] };
    let (mut names, mut depth, mut start) = (Vec::new(), 0, 0);
    for (place, sign) in list.char_indices() {
        match sign {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                names.push(name(&list[start..place]));
                start = place + 1;
                if sign == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    names
}

#[test]
fn no_room_imports_from_a_floor_that_is_not_below_its_own() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for file in sources().iter().filter(|file| file.room != "lib") {
        let own = floor(&file.room).unwrap_or_else(|| panic!("{} is in no room of the map", file.path.display()));
        // Modules between the crate's root and this file: `policy/decode/mod.rs` is two deep, `policy/lint.rs` too.
        let parts = file.path.components().count();
        let depth = if file.path.ends_with("mod.rs") { parts - 1 } else { parts };
        for (number, room) in named_rooms(&file.code, depth) {
            checked += 1;
            let below = floor(&room).is_some_and(|floor| floor < own);
            // Tests of a room may use rooms beside it as examples, never rooms above it.
            let beside = file.test && floor(&room) == Some(own);
            if !(same_room(&room, &file.room) || below || beside) {
                wrong.push(format!("src/{}:{number}: {room}, from {}", file.path.display(), file.room));
            }
        }
    }
    assert!(checked > 100, "only {checked} imports were seen: the check does not look right");
    assert!(wrong.is_empty(), "imports from a floor that is not below:\n{}", wrong.join("\n"));
}

#[test]
fn the_engine_has_no_runtime_no_proxy_no_clock_and_no_files() {
    let mut wrong = Vec::new();
    for file in sources().iter().filter(|file| ENGINE.contains(&file.room.as_str()) && !file.test) {
        for (number, line) in (1..).zip(&file.code) {
            if let Some(word) = NOT_IN_THE_ENGINE.iter().find(|word| line.contains(*word)) {
                wrong.push(format!("src/{}:{number}: {word}", file.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "not in the engine:\n{}", wrong.join("\n"));
}

#[test]
fn pingora_stays_in_its_rooms() {
    let mut wrong = Vec::new();
    for file in sources().iter().filter(|file| !WITH_PINGORA.contains(&file.room.as_str())) {
        for (number, line) in (1..).zip(&file.code) {
            if ["pingora_", "pingora::"].iter().any(|word| line.contains(word)) {
                wrong.push(format!("src/{}:{number}: {}", file.path.display(), line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "Pingora outside of its rooms:\n{}", wrong.join("\n"));
}

#[test]
fn the_map_in_lib_rs_is_the_table_here() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).expect("lib.rs");
    let mut map: BTreeMap<i8, Vec<String>> = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("//! | ")) {
        let mut cells = line.split('|').map(str::trim);
        let (Some(floor), Some(rooms)) = (cells.next().and_then(|cell| cell.parse().ok()), cells.next()) else {
            continue;
        };
        let names = rooms.split(',').map(|room| room.trim().trim_matches(['[', ']', '`']).trim_end_matches(".rs"));
        map.entry(floor).or_default().extend(names.map(str::to_owned));
    }
    let sorted = |rooms: Vec<String>| {
        let mut rooms = rooms;
        rooms.sort();
        rooms
    };
    let table: BTreeMap<i8, Vec<String>> = FLOORS
        .iter()
        .map(|(floor, rooms)| (*floor, sorted(rooms.iter().map(|room| (*room).to_owned()).collect())))
        .collect();
    let map: BTreeMap<i8, Vec<String>> = map.into_iter().map(|(floor, rooms)| (floor, sorted(rooms))).collect();
    assert_eq!(map, table);
}

#[test]
fn an_import_is_seen_however_it_is_written() {
    let rooms = |code: &str| -> Vec<String> {
        let lines: Vec<String> = code.lines().map(str::to_owned).collect();
        named_rooms(&lines, 2).into_iter().map(|(_, room)| room).collect()
    };
    assert_eq!(rooms("use crate::verdict::decide;"), ["verdict"]);
    assert_eq!(rooms("use crate::{\n    policy::{Site, model::Mode},\n    verdict::Facts,\n};"), ["policy", "verdict"]);
    assert_eq!(rooms("fn f(x: &crate::policy::Site) {}"), ["policy"]);
    assert_eq!(rooms("use super::super::cli::main;"), ["cli"]);
    assert_eq!(rooms("use super::compiled::Site;"), Vec::<String>::new());
}
