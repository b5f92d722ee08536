//! The items that other crates may use, as `tests/it/public-api.txt` lists them: a change of that
//! file is a change of the interface. They are read from the source: what `lib.rs` re-exports, the
//! modules of it that are public and shown in the documentation, and the public methods, fields and
//! variants of the types among it.
//!
//! `UPDATE_PUBLIC_API=1 cargo test --test it -- public_api` writes the file anew.

use proc_macro2::TokenTree;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::{Attribute, Fields, ImplItem, Item, TraitItem, Type, UseTree, Visibility};

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The most items that the list may have.
const MAX_ITEMS: usize = 415;

/// Whether the attributes say `#[doc(hidden)]`, or that the item is there for tests only.
fn is_left_out(attributes: &[Attribute]) -> bool {
    let says = |attribute: &Attribute, name: &str, words: &[&str]| {
        let arguments = attribute
            .meta
            .require_list()
            .map(|list| list.tokens.to_string())
            .unwrap_or_default();
        attribute.path().is_ident(name) && words.iter().any(|word| arguments.contains(word))
    };
    attributes.iter().any(|attribute| {
        says(attribute, "doc", &["hidden"]) || says(attribute, "cfg", &["test", "internals"])
    })
}

/// One module: its items, and the modules below it by name.
struct Module {
    items: Vec<Item>,
    below: BTreeMap<String, Module>,
}

impl Module {
    /// Reads a module and those below it. `directory` is where the files of the latter are.
    fn read(items: Vec<Item>, directory: &Path) -> Module {
        let mut below = BTreeMap::new();
        for item in &items {
            let Item::Mod(module) = item else { continue };
            if is_left_out(&module.attrs) {
                continue;
            }
            let name = module.ident.to_string();
            let directory = directory.join(&name);
            let read = match &module.content {
                Some((_, items)) => Module::read(items.clone(), &directory),
                None => Module::of_file(&directory),
            };
            below.insert(name, read);
        }
        Module { items, below }
    }

    fn of_file(directory: &Path) -> Module {
        let files: [PathBuf; 2] = [directory.with_extension("rs"), directory.join("mod.rs")];
        let text = files.iter().find_map(|file| fs::read_to_string(file).ok());
        let text = text.unwrap_or_else(|| panic!("no file for {}", directory.display()));
        let file = syn::parse_file(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        Module::read(file.items, directory)
    }

    /// Calls `visit` with every item of the module and of those below it.
    fn each(&self, visit: &mut impl FnMut(&Item)) {
        self.items.iter().for_each(&mut *visit);
        self.below.values().for_each(|module| module.each(visit));
    }
}

/// The members of the types of a room, by the name of the type.
fn members(room: &Module) -> BTreeMap<String, BTreeSet<String>> {
    let mut members: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    room.each(&mut |item| {
        let (name, found) = match item {
            Item::Macro(item) if item.mac.path.is_ident("named") => {
                for token in item.mac.tokens.clone() {
                    if let TokenTree::Ident(name) = token {
                        let named = members.entry(name.to_string()).or_default();
                        named.insert("::name".to_owned());
                    }
                }
                return;
            }
            Item::Struct(item) => (item.ident.to_string(), fields(&item.fields, true)),
            Item::Enum(item) => {
                let variants = item.variants.iter().flat_map(|variant| {
                    let name = format!("::{}", variant.ident);
                    let fields = fields(&variant.fields, false);
                    fields
                        .into_iter()
                        .map(|field| format!("{name}{field}"))
                        .chain([name.clone()])
                        .collect::<Vec<_>>()
                });
                (item.ident.to_string(), variants.collect())
            }
            Item::Trait(item) => {
                let methods = item.items.iter().filter_map(|member| match member {
                    TraitItem::Fn(method) => Some(format!("::{}", method.sig.ident)),
                    _ => None,
                });
                (item.ident.to_string(), methods.collect())
            }
            Item::Impl(block) if block.trait_.is_none() => {
                let Type::Path(of) = &*block.self_ty else {
                    return;
                };
                let methods = block.items.iter().filter_map(|member| match member {
                    ImplItem::Fn(method)
                        if is_public(&method.vis) && !is_left_out(&method.attrs) =>
                    {
                        Some(format!("::{}", method.sig.ident))
                    }
                    ImplItem::Const(constant) if is_public(&constant.vis) => {
                        Some(format!("::{}", constant.ident))
                    }
                    _ => None,
                });
                (
                    of.path.segments.last().expect("a name").ident.to_string(),
                    methods.collect(),
                )
            }
            _ => return,
        };
        members.entry(name).or_default().extend(found);
    });
    members
}

/// The fields that other crates may name; those of a variant are as public as the variant.
fn fields(fields: &Fields, asks_visibility: bool) -> Vec<String> {
    let is_shown = |field: &syn::Field| {
        (!asks_visibility || is_public(&field.vis)) && !is_left_out(&field.attrs)
    };
    let shown = fields
        .iter()
        .enumerate()
        .filter(|(_, field)| is_shown(field));
    let name = |(place, field): (usize, &syn::Field)| match &field.ident {
        Some(name) => format!(".{name}"),
        None => format!(".{place}"),
    };
    shown.map(name).collect()
}

/// The names that a `use` brings.
fn used(tree: &UseTree, names: &mut Vec<String>) {
    match tree {
        UseTree::Path(path) => used(&path.tree, names),
        UseTree::Group(group) => group.items.iter().for_each(|tree| used(tree, names)),
        UseTree::Name(name) => names.push(name.ident.to_string()),
        UseTree::Rename(rename) => names.push(rename.rename.to_string()),
        UseTree::Glob(_) => panic!("a public glob hides what it brings"),
    }
}

/// What a module shows, each line with the path of the module before it.
fn shown(
    module: &Module,
    path: &str,
    members: &BTreeMap<String, BTreeSet<String>>,
    lines: &mut BTreeSet<String>,
) {
    for item in &module.items {
        let mut names = Vec::new();
        match item {
            Item::Mod(below) if is_public(&below.vis) => {
                if let Some(read) = module.below.get(&below.ident.to_string()) {
                    shown(read, &format!("{path}::{}", below.ident), members, lines);
                }
            }
            Item::Use(item) if is_public(&item.vis) && !is_left_out(&item.attrs) => {
                used(&item.tree, &mut names)
            }
            Item::Fn(item) if is_public(&item.vis) => names.push(item.sig.ident.to_string()),
            Item::Struct(item) if is_public(&item.vis) => names.push(item.ident.to_string()),
            Item::Enum(item) if is_public(&item.vis) => names.push(item.ident.to_string()),
            Item::Trait(item) if is_public(&item.vis) => names.push(item.ident.to_string()),
            Item::Const(item) if is_public(&item.vis) => names.push(item.ident.to_string()),
            Item::Static(item) if is_public(&item.vis) => names.push(item.ident.to_string()),
            Item::Type(item) if is_public(&item.vis) => names.push(item.ident.to_string()),
            _ => {}
        }
        for name in names {
            let of_type = members.get(&name).into_iter().flatten();
            lines.extend(of_type.map(|member| format!("{path}::{name}{member}")));
            lines.insert(format!("{path}::{name}"));
        }
    }
}

fn public_items() -> BTreeSet<String> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let library = fs::read_to_string(src.join("lib.rs")).expect("lib.rs");
    let library = Module::read(syn::parse_file(&library).expect("lib.rs").items, &src);
    let mut lines = BTreeSet::new();
    for item in &library.items {
        match item {
            Item::Use(re_export) => {
                let UseTree::Path(path) = &re_export.tree else {
                    panic!("a re-export names its room")
                };
                let room = &library.below[&path.ident.to_string()];
                let own = Module {
                    items: vec![item.clone()],
                    below: BTreeMap::new(),
                };
                shown(&own, "crawlgate", &members(room), &mut lines);
            }
            Item::Mod(item) if is_public(&item.vis) => {
                let name = item.ident.to_string();
                if let Some(room) = library.below.get(&name) {
                    shown(
                        room,
                        &format!("crawlgate::{name}"),
                        &members(room),
                        &mut lines,
                    );
                }
            }
            _ => {}
        }
    }
    lines
}

#[test]
fn public_items_are_those_of_the_list() {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/public-api.txt");
    let items = public_items();
    if std::env::var_os("UPDATE_PUBLIC_API").is_some() {
        let text: String = items.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&list, text).expect("the list is written");
    }
    assert!(items.len() <= MAX_ITEMS, "{} public items", items.len());
    let listed = fs::read_to_string(&list).expect("the list");
    let listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    let (new, gone): (Vec<_>, Vec<_>) = (
        items.difference(&listed).collect(),
        listed.difference(&items).collect(),
    );
    assert!(
        new.is_empty() && gone.is_empty(),
        "the public items changed; if that is meant, run UPDATE_PUBLIC_API=1 cargo test --test it -- public_api\n\
         new: {new:#?}\ngone: {gone:#?}"
    );
}
