//! Rules for the source, read from the source: which module imports which, no circles of imports, no
//! long functions. The layers are declared three times (picture and table in `docs/internals/architecture.md`,
//! sections of `src/lib.rs`), and the three must agree.

mod circles;
mod source;

use circles::circles;
use source::{Crate, Module};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Functions have at most so many lines and parameters.
const MAX_LINES: usize = 80;
const MAX_PARAMETERS: usize = 6;

/// The layer of what only the assembly may name, so that it can be taken out.
const ADD_ONS: &str = "add-ons";

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

/// Modules that may import Pingora.
const WITH_PINGORA: &[&str] = &["gateway", "edge", "admin", "upstreams", "server"];

static SOURCE: LazyLock<Crate> = LazyLock::new(|| {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    Crate::read(&|file| fs::read_to_string(src.join(file)).ok())
});

/// A layer with its modules, both from the top of the map.
type Layer = (String, BTreeSet<String>);

/// The layers by the table in `docs/internals/architecture.md`.
static LAYERS: LazyLock<Vec<Layer>> = LazyLock::new(|| {
    let mut layers: Vec<Layer> = Vec::new();
    for row in section("## The map")
        .lines()
        .filter(|line| line.starts_with("| "))
    {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, layer, modules, _, _] = cells[..] else {
            panic!("a row of the map with other columns: {row}");
        };
        if layer == "layer" {
            continue;
        }
        let modules = code_words(modules).map(|name| name.trim_end_matches(".rs").to_owned());
        match layers.last_mut() {
            Some((name, known)) if name == layer => known.extend(modules),
            _ => layers.push((layer.to_owned(), modules.collect())),
        }
    }
    layers
});

/// The text between a heading of `docs/internals/architecture.md` and the next one.
fn section(heading: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/internals/architecture.md");
    let text = fs::read_to_string(path).expect("docs/internals/architecture.md");
    let (_, rest) = text.split_once(heading).expect("the heading");
    rest.split("\n## ").next().unwrap_or_default().to_owned()
}

/// What stands between backticks.
fn code_words(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn module_name(module: &Module) -> Option<&str> {
    module.path.first().map(String::as_str)
}

/// How many layers stand above the module's own.
fn depth(name: &str) -> Option<usize> {
    LAYERS
        .iter()
        .position(|(_, modules)| modules.contains(name))
}

#[test]
fn every_module_is_on_the_map_once() {
    let in_source: BTreeSet<&str> = SOURCE.modules.iter().filter_map(module_name).collect();
    let on_the_map: Vec<&str> = LAYERS
        .iter()
        .flat_map(|(_, names)| names)
        .map(String::as_str)
        .collect();
    assert_eq!(on_the_map.len(), in_source.len());
    assert_eq!(on_the_map.into_iter().collect::<BTreeSet<_>>(), in_source);
}

#[test]
fn picture_of_the_layers_equals_the_table() {
    let text = section("## The map");
    let (_, picture) = text.split_once("```mermaid").expect("a picture");
    let (picture, _) = picture.split_once("```").expect("an end of the picture");
    let mut layers: Vec<Layer> = Vec::new();
    for line in picture.lines().map(str::trim) {
        if let Some(title) = line.strip_prefix("subgraph ") {
            let name = title.split('"').nth(1).expect("a title");
            layers.push((name.to_owned(), BTreeSet::new()));
        } else if let Some(modules) = line.split('"').nth(1)
            && let Some((_, known)) = layers.last_mut()
        {
            known.extend(
                modules
                    .split([',', ' '])
                    .filter(|name| !name.is_empty())
                    .map(str::to_owned),
            );
        }
    }
    assert_eq!(layers, *LAYERS);
}

#[test]
fn library_declares_its_modules_by_layer() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs"))
        .expect("lib.rs");
    let mut layers: Vec<Layer> = Vec::new();
    for line in text.lines() {
        if let Some(layer) = line.strip_prefix("// Layer: ") {
            layers.push((layer.trim_end_matches('.').to_owned(), BTreeSet::new()));
        } else if let Some(name) = line.trim_start_matches("pub ").strip_prefix("mod ")
            && let Some((_, modules)) = layers.last_mut()
        {
            modules.insert(name.trim_end_matches(';').to_owned());
        }
    }
    layers.reverse();
    let binary = ["main".to_owned()].into();
    let expected: Vec<Layer> = LAYERS
        .iter()
        .map(|(layer, modules)| (layer.clone(), modules - &binary))
        .collect();
    assert_eq!(layers, expected);
}

#[test]
fn files_that_the_architecture_names_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("docs/internals/architecture.md"))
        .expect("docs/internals/architecture.md");
    let missing: Vec<&str> = code_words(&text)
        .filter(|word| word.contains('/') && !word.contains([' ', '*', ':']))
        .filter(|path| !root.join("src").join(path).exists() && !root.join(path).exists())
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
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
fn module_imports_only_from_layers_below() {
    let (mut wrong, mut checked) = (BTreeSet::new(), 0);
    for (from, module) in SOURCE.modules.iter().enumerate() {
        let Some(own) = module_name(module) else {
            continue;
        };
        let own_depth = depth(own).expect("a module on the map");
        for reference in &module.references {
            let Some(other) = SOURCE
                .absolute(from, &reference.path)
                .and_then(|path| path.into_iter().next())
            else {
                continue;
            };
            let Some(other_depth) = depth(&other) else {
                continue;
            };
            checked += 1;
            // Unit tests may use modules beside theirs as examples. The assembly is one module.
            let is_test = module.is_test || reference.is_test;
            let may_be_beside = own == other || own_depth == 0 || is_test;
            if other_depth < own_depth || (other_depth == own_depth && !may_be_beside) {
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
        "imports from a layer that is not below: {wrong:#?}"
    );
}

/// With the rule above, the core names no add-on.
#[test]
fn add_ons_stand_between_the_core_and_the_assembly() {
    let names: Vec<&str> = LAYERS.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..2], ["assembly", ADD_ONS]);
}

#[test]
fn files_of_a_module_import_each_other_in_no_circle() {
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
fn parameters_are_no_anonymous_tuples() {
    let packed = SOURCE
        .functions
        .iter()
        .filter(|function| function.tuples > 0)
        .map(|function| format!("{}: {}", function.file.display(), function.name));
    assert_eq!(packed.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn the_engine_has_no_runtime_no_clock_and_no_files() {
    let engine = modules_without_features();
    assert!(engine.len() > 5, "{engine:?}");
    let mut wrong = BTreeSet::new();
    for (place, named) in
        foreign_paths(|module| module_name(module).is_some_and(|name| engine.contains(name)))
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
fn pingora_stays_in_its_modules() {
    let outside =
        |module: &Module| module_name(module).is_none_or(|name| !WITH_PINGORA.contains(&name));
    let named = foreign_paths(outside)
        .into_iter()
        .filter(|(_, named)| is_within(named, "pingora"));
    let wrong: Vec<String> = named
        .map(|(place, named)| format!("{place}: {named}"))
        .collect();
    assert!(
        wrong.is_empty(),
        "Pingora outside of its modules: {wrong:#?}"
    );
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
        ("SentResponse {", "requests/ticket/mod.rs"),
        ("RequestCopy::from_head(", "requests/pipeline.rs"),
        ("AnswerContext {", "requests/pipeline.rs"),
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
fn modules_without_features() -> BTreeSet<String> {
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
        ("lib.rs", "mod parent;"),
        (
            "parent/mod.rs",
            "mod one; mod two; mod three; pub use two::Two; pub use one::One;",
        ),
        (
            "parent/one.rs",
            "use super::Two; pub struct One(Two); pub(super) mod below;",
        ),
        (
            "parent/one/below.rs",
            "use super::One; pub struct Below(One);",
        ),
        (
            "parent/two.rs",
            "pub struct Two; fn f() { drop(crate::parent::One::new()) }",
        ),
        (
            "parent/three.rs",
            "use super::one::below::Below; #[cfg(test)] mod tests { use super::super::Two; }",
        ),
    ]));
    assert_eq!(
        found,
        [["parent/one.rs", "parent/two.rs"].map(PathBuf::from)]
    );
}

#[test]
fn a_parent_and_its_children_may_name_each_other() {
    let found = files_in_circles(&written(&[
        ("lib.rs", "mod parent;"),
        (
            "parent/mod.rs",
            "mod one; mod two; pub struct Own(one::One);",
        ),
        (
            "parent/one.rs",
            "pub struct One(Option<Box<super::Own>>, super::two::Two);",
        ),
        (
            "parent/two.rs",
            "pub struct Two(Option<Box<super::Own>>); #[cfg(test)] mod tests { use super::super::one::One; }",
        ),
    ]));
    assert_eq!(found, Vec::<Vec<PathBuf>>::new());
}
