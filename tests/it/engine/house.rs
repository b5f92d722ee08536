//! The rules of the house, read from the source: which room may import from which, that no files of
//! a room import each other in a circle, and how long functions may be. `docs/architecture.md` says
//! which room is on which floor.

mod circles;
mod source;

use circles::circles;
use source::{Crate, Module};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Functions have at most so many lines and parameters.
const MAX_LINES: usize = 80;
const MAX_PARAMETERS: usize = 6;

/// What only the assembly may name, so that it can be taken out.
const ADD_ONS: &[&str] = &[
    "acme",
    "audit",
    "decisions",
    "diff",
    "evidence",
    "exchange",
    "export",
    "middleware",
    "shared_store",
    "upgrade",
];

/// What the engine may not name: a runtime, a proxy, a clock, files, sockets, processes.
const NOT_IN_THE_ENGINE: &[&str] = &[
    "tokio",
    "pingora",
    "std::time::SystemTime::now",
    "std::time::Instant",
    "chrono::Utc",
    "chrono::Local",
    "std::fs",
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::UdpSocket",
    "std::process",
    "std::env",
    "std::thread",
];

/// Rooms that may import Pingora.
const WITH_PINGORA: &[&str] = &["gateway", "edge", "admin", "upstreams", "server"];

static SOURCE: LazyLock<Crate> = LazyLock::new(|| {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    Crate::read(&|file| fs::read_to_string(src.join(file)).ok())
});

/// The floor of each room, by the table in `docs/architecture.md`.
static FLOORS: LazyLock<BTreeMap<String, i8>> = LazyLock::new(|| {
    let map = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/architecture.md");
    let text = fs::read_to_string(map).expect("the map");
    let mut floors = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("| ")) {
        let mut cells = line.split('|').map(str::trim);
        let (Some(floor), Some(rooms)) = (
            cells.next().and_then(|cell| cell.parse().ok()),
            cells.next(),
        ) else {
            continue;
        };
        for room in rooms.split(',') {
            let room = room
                .trim()
                .trim_matches(['[', ']', '`', '/'])
                .trim_end_matches(".rs")
                .to_owned();
            assert_eq!(
                floors.insert(room.clone(), floor),
                None,
                "{room} is on the map twice"
            );
        }
    }
    floors
});

fn room(module: &Module) -> Option<&str> {
    module.path.first().map(String::as_str)
}

/// The rooms of the top floor put the rest together, and are one room.
fn is_one_room(one: &str, other: &str) -> bool {
    let top = FLOORS.values().max();
    one == other || (FLOORS.get(one) == top && FLOORS.get(other) == top)
}

#[test]
fn every_room_is_on_the_map() {
    let rooms: BTreeSet<&str> = SOURCE.modules.iter().filter_map(room).collect();
    assert_eq!(rooms, FLOORS.keys().map(String::as_str).collect());
}

#[test]
fn every_file_belongs_to_the_crate() {
    let read: BTreeSet<&Path> = SOURCE
        .modules
        .iter()
        .map(|module| module.file.as_path())
        .collect();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut open, mut there) = (vec![src.clone()], BTreeSet::new());
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).expect("a directory of src") {
            let path = entry.expect("an entry").path();
            match path.extension() {
                Some(extension) if extension == "rs" => {
                    there.insert(path.strip_prefix(&src).expect("below src").to_owned());
                }
                _ if path.is_dir() => open.push(path),
                _ => {}
            }
        }
    }
    assert_eq!(read, there.iter().map(PathBuf::as_path).collect());
}

#[test]
fn a_room_imports_only_from_floors_below() {
    let (mut wrong, mut checked) = (BTreeSet::new(), 0);
    for (from, module) in SOURCE.modules.iter().enumerate() {
        let Some(own) = room(module) else { continue };
        for reference in &module.references {
            let Some(other) = SOURCE
                .absolute(from, &reference.path)
                .and_then(|path| path.into_iter().next())
            else {
                continue;
            };
            let Some(floor) = FLOORS.get(&other) else {
                continue;
            };
            checked += 1;
            // Tests of a room may use rooms beside it as examples.
            let is_test = module.is_test || reference.is_test;
            let is_below = *floor < FLOORS[own] || (is_test && *floor == FLOORS[own]);
            if !is_below && !is_one_room(own, &other) {
                wrong.insert(format!(
                    "src/{}:{}: {other}",
                    module.file.display(),
                    reference.line
                ));
            }
        }
    }
    assert!(checked > 1000, "only {checked} imports were seen");
    assert!(
        wrong.is_empty(),
        "imports from a floor that is not below: {wrong:#?}"
    );
}

/// With the rule above it, the core names no add-on.
#[test]
fn add_ons_stand_between_the_core_and_the_assembly() {
    let top = FLOORS.values().max().expect("the assembly");
    for (room, floor) in FLOORS.iter().filter(|(_, floor)| *floor != top) {
        let expected: &[i8] = match room.as_str() {
            // It implements the store of the exchange.
            "shared_store" => &[11],
            room if ADD_ONS.contains(&room) => &[10],
            _ => &[-2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        };
        assert!(expected.contains(floor), "{room} on {floor}");
    }
}

#[test]
fn files_of_a_room_import_each_other_in_no_circle() {
    let found = circles(&SOURCE);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn functions_stay_short_and_have_few_parameters() {
    let long = SOURCE
        .functions
        .iter()
        .filter(|function| function.lines > MAX_LINES || function.parameters > MAX_PARAMETERS)
        .map(|function| format!("{}: {}", function.file.display(), function.name));
    assert_eq!(long.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn no_parameter_is_a_tuple_without_a_name() {
    let packed = SOURCE
        .functions
        .iter()
        .filter(|function| function.tuples > 0)
        .map(|function| format!("{}: {}", function.file.display(), function.name));
    assert_eq!(packed.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn the_engine_has_no_runtime_no_clock_and_no_files() {
    let engine = rooms_without_features();
    assert!(engine.len() > 5, "{engine:?}");
    let mut wrong = BTreeSet::new();
    for (place, named) in
        foreign_paths(|module| room(module).is_some_and(|room| engine.contains(room)))
    {
        if NOT_IN_THE_ENGINE
            .iter()
            .any(|forbidden| is_within(&named, forbidden))
        {
            wrong.insert(format!("{place}: {named}"));
        }
    }
    assert!(wrong.is_empty(), "not in the engine: {wrong:#?}");
}

#[test]
fn pingora_stays_in_its_rooms() {
    let outside = |module: &Module| room(module).is_none_or(|room| !WITH_PINGORA.contains(&room));
    let named = foreign_paths(outside)
        .into_iter()
        .filter(|(_, named)| is_within(named, "pingora"));
    let wrong: Vec<String> = named
        .map(|(place, named)| format!("{place}: {named}"))
        .collect();
    assert!(wrong.is_empty(), "Pingora outside of its rooms: {wrong:#?}");
}

#[test]
fn each_step_of_the_sequence_of_requests_stands_in_one_place() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let product: BTreeSet<&Path> = SOURCE
        .modules
        .iter()
        .filter(|module| !module.is_test)
        .map(|module| module.file.as_path())
        .collect();
    for (step, place) in [
        ("SentResponse {", "requests/ticket.rs"),
        ("RequestFacts::copy(", "requests/sequence.rs"),
        ("Ruling::new(", "requests/sequence.rs"),
    ] {
        let declares = |line: &str| {
            ["struct ", "enum ", "impl ", "-> "]
                .iter()
                .any(|word| line.contains(word))
        };
        let lines = |file: &&Path| {
            let text = fs::read_to_string(src.join(file)).expect("a file of src");
            text.lines()
                .filter(|line| line.contains(step) && !declares(line))
                .count()
        };
        let places: Vec<&Path> = product
            .iter()
            .flat_map(|file| vec![*file; lines(file)])
            .collect();
        assert_eq!(places, [Path::new(place)], "{step}");
    }
}

/// The modules of `lib.rs` that no feature brings: the engine.
fn rooms_without_features() -> BTreeSet<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs"))
        .expect("lib.rs");
    let library = syn::parse_file(&text).expect("lib.rs");
    let modules = library.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module)
            if !module
                .attrs
                .iter()
                .any(|attribute| attribute.path().is_ident("cfg")) =>
        {
            Some(module)
        }
        _ => None,
    });
    modules.map(|module| module.ident.to_string()).collect()
}

/// What modules name of other crates outside of tests, each with its place.
fn foreign_paths(chosen: impl Fn(&Module) -> bool) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (from, module) in SOURCE
        .modules
        .iter()
        .enumerate()
        .filter(|(_, module)| !module.is_test && chosen(module))
    {
        for reference in module
            .references
            .iter()
            .filter(|reference| !reference.is_test)
        {
            let named = SOURCE.written_out(from, &reference.path).join("::");
            found.push((
                format!("src/{}:{}", module.file.display(), reference.line),
                named,
            ));
        }
    }
    found
}

/// A path is `above`, or something in it. (`pingora` stands for all crates of Pingora.)
fn is_within(path: &str, above: &str) -> bool {
    path.strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::") || rest.starts_with('_'))
}

fn files_in_circles(source: &Crate) -> Vec<Vec<PathBuf>> {
    circles(source)
        .into_iter()
        .map(|circle| circle.files)
        .collect()
}

/// A crate of these files.
fn written(files: &[(&str, &str)]) -> Crate {
    Crate::read(&|file| {
        files
            .iter()
            .find(|(name, _)| Path::new(name) == file)
            .map(|(_, text)| (*text).to_owned())
    })
}

#[test]
fn an_import_is_seen_however_it_is_written() {
    for (code, expected) in [
        ("use crate::b::X;", "b::X"),
        ("use crate::{c::Y, b::{X, Z}};", "b::X"),
        ("use super::super::b::X as W;", "b::X"),
        ("fn f(x: &crate::b::X) {}", "b::X"),
        (
            "fn f() { let crate::b::X { y } = x else { return }; }",
            "b::X",
        ),
        (
            "fn f() { assert!(y == Some(crate::b::X::new())); }",
            "b::X::new",
        ),
        ("impl From<crate::b::X> for Y {}", "b::X"),
    ] {
        let read = written(&[
            ("lib.rs", "mod a;"),
            ("a.rs", "mod inner;"),
            ("a/inner.rs", code),
        ]);
        let inner = read
            .modules
            .iter()
            .position(|module| module.path == ["a", "inner"])
            .expect("the module");
        let seen: Vec<String> = read.modules[inner]
            .references
            .iter()
            .filter_map(|reference| read.absolute(inner, &reference.path))
            .map(|path| path.join("::"))
            .collect();
        assert!(seen.iter().any(|path| path == expected), "{code}: {seen:?}");
    }
}

#[test]
fn a_circle_is_found_behind_a_re_export() {
    let found = files_in_circles(&written(&[
        ("lib.rs", "mod room;"),
        (
            "room/mod.rs",
            "mod one; mod two; mod three; pub use two::Two; pub use one::One;",
        ),
        (
            "room/one.rs",
            "use super::Two; pub struct One(Two); pub(super) mod below;",
        ),
        (
            "room/one/below.rs",
            "use super::One; pub struct Below(One);",
        ),
        (
            "room/two.rs",
            "pub struct Two; fn f() { drop(crate::room::One::new()) }",
        ),
        (
            "room/three.rs",
            "use super::one::below::Below; #[cfg(test)] mod tests { use super::super::Two; }",
        ),
    ]));
    assert_eq!(found, [["room/one.rs", "room/two.rs"].map(PathBuf::from)]);
}

#[test]
fn a_parent_and_its_children_may_name_each_other() {
    let found = files_in_circles(&written(&[
        ("lib.rs", "mod room;"),
        ("room/mod.rs", "mod one; mod two; pub struct Own(one::One);"),
        (
            "room/one.rs",
            "pub struct One(Option<Box<super::Own>>, super::two::Two);",
        ),
        (
            "room/two.rs",
            "pub struct Two(Option<Box<super::Own>>); #[cfg(test)] mod tests { use super::super::one::One; }",
        ),
    ]));
    assert_eq!(found, Vec::<Vec<PathBuf>>::new());
}
