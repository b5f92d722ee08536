//! Import circles between the files of a module: [`circles`] finds them in a [`Crate`].

use super::source::{Crate, Module, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Files of which each imports all others, directly or through one another.
#[derive(Debug)]
pub struct Circle {
    /// The files below `src`, sorted.
    pub files: Vec<PathBuf>,
    /// An example of each import: `one.rs:3 imports two.rs: Two`.
    #[expect(dead_code, reason = "printed when a test fails")]
    pub imports: Vec<String>,
}

/// Which file imports which, each with the first place where it does.
type Edges<'a> = BTreeMap<&'a Path, BTreeMap<&'a Path, String>>;

/// The circles of imports inside of modules.
///
/// A file imports the file that defines what it names, wherever that is re-exported. A file and the
/// files of the modules below it may name each other. What is compiled for tests only does not
/// count.
pub fn circles(source: &Crate) -> Vec<Circle> {
    let edges = imports(source);
    let reached: BTreeMap<&Path, BTreeSet<&Path>> = edges
        .keys()
        .map(|file| (*file, reach(&edges, file)))
        .collect();
    let meets =
        |one: &Path, other: &Path| reached.get(one).is_some_and(|files| files.contains(other));
    let mut found: Vec<Circle> = Vec::new();
    for file in edges.keys().copied().filter(|file| meets(file, file)) {
        if found
            .iter()
            .any(|circle| circle.files.iter().any(|known| known == file))
        {
            continue;
        }
        let inside = |other: &Path| meets(file, other) && meets(other, file);
        let files = edges
            .keys()
            .filter(|other| inside(other))
            .map(|file| file.to_path_buf())
            .collect();
        let from_inside = edges
            .iter()
            .filter(|(other, _)| inside(other))
            .flat_map(|(_, imports)| imports);
        let imports = from_inside
            .filter(|(other, _)| inside(other))
            .map(|(_, place)| place.clone())
            .collect();
        found.push(Circle { files, imports });
    }
    found
}

fn imports(source: &Crate) -> Edges<'_> {
    let mut edges = Edges::new();
    for (from, module) in source
        .modules
        .iter()
        .enumerate()
        .filter(|(_, module)| !module.is_test)
    {
        for reference in module
            .references
            .iter()
            .filter(|reference| !reference.is_test)
        {
            let Some(Target::Item(definer)) = source.resolve(from, &reference.path) else {
                continue;
            };
            let definer = &source.modules[definer];
            if definer.path.first() == module.path.first() && !in_one_line(source, module, definer)
            {
                let place = || {
                    let (file, path) = (module.file.display(), reference.path.join("::"));
                    format!(
                        "{file}:{} imports {}: {path}",
                        reference.line,
                        definer.file.display()
                    )
                };
                edges
                    .entry(&module.file)
                    .or_default()
                    .entry(&definer.file)
                    .or_insert_with(place);
            }
        }
    }
    edges
}

/// One file's module is the other's, or above it.
fn in_one_line(source: &Crate, one: &Module, other: &Module) -> bool {
    let top = |module: &Module| -> Vec<String> {
        let first = source
            .modules
            .iter()
            .find(|candidate| candidate.file == module.file);
        first.map_or_else(Vec::new, |module| module.path.clone())
    };
    let (one, other) = (top(one), top(other));
    one.starts_with(&other) || other.starts_with(&one)
}

/// The files that can be reached from `start` by at least one import.
fn reach<'a>(edges: &Edges<'a>, start: &Path) -> BTreeSet<&'a Path> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Path> = edges
        .get(start)
        .into_iter()
        .flat_map(BTreeMap::keys)
        .copied()
        .collect();
    while let Some(file) = open.pop() {
        if reached.insert(file) {
            open.extend(edges.get(file).into_iter().flat_map(BTreeMap::keys));
        }
    }
    reached
}
