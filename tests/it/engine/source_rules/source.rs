//! The crate's source as the compiler reads it: the tree of modules, the paths that each names, and
//! what a path means. [`Crate`] is the tree, [`Module`] one module with its [`Reference`]s. It
//! knows no layer and no rule.
//!
//! Types are not known here. A method that stands in another file than its type is seen where the
//! file names the type, not where the method is called.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprLit, File, ImplItem, Item, Lit, Meta, Signature, UseTree};

/// How many re-exports may lead from a path to its item.
const RE_EXPORTS: usize = 16;
/// The module of `lib.rs`.
const ROOT: usize = 0;

/// The modules of the library, and those of the binary beside them.
#[derive(Default)]
pub struct Crate {
    pub modules: Vec<Module>,
    pub functions: Vec<Function>,
}

#[derive(Default)]
pub struct Module {
    /// Its names below the crate; `main` for the binary.
    pub path: Vec<String>,
    /// Its file below `src`. Modules that are written inside another share its file.
    pub file: PathBuf,
    /// It is compiled for tests only.
    pub is_test: bool,
    pub references: Vec<Reference>,
    parent: usize,
    children: HashMap<String, usize>,
    items: HashSet<String>,
    imports: HashMap<String, Vec<Vec<String>>>,
    globs: Vec<Vec<String>>,
}

/// A path that a module names.
pub struct Reference {
    pub path: Vec<String>,
    pub line: usize,
    /// The code around it is compiled for tests only.
    pub is_test: bool,
}

/// A function with a body.
pub struct Function {
    pub file: PathBuf,
    pub name: String,
    /// Lines from `fn` to the closing brace.
    pub lines: usize,
    /// Parameters without `self`.
    pub parameters: usize,
    /// Parameters that are tuples without a name: `(a, b): (A, B)`.
    pub tuples: usize,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Module(usize),
    /// An item of this module.
    Item(usize),
}

impl Crate {
    /// Reads `lib.rs` and `main.rs` and all modules below them; `text` gives the text of a file
    /// below `src`.
    pub fn read(text: &dyn Fn(&Path) -> Option<String>) -> Self {
        let mut read = Self::default();
        for (root, path) in [("lib.rs", Vec::new()), ("main.rs", vec!["main".to_owned()])] {
            let module = Module {
                path,
                file: root.into(),
                ..Module::default()
            };
            if let Some(content) = text(Path::new(root)) {
                read.add_file(module, &content, text);
            }
        }
        read
    }

    fn add_file(
        &mut self,
        module: Module,
        content: &str,
        text: &dyn Fn(&Path) -> Option<String>,
    ) -> usize {
        let file = module.file.clone();
        let tree: File =
            syn::parse_str(content).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let directory = match file.file_name().and_then(|name| name.to_str()) {
            Some("mod.rs" | "lib.rs" | "main.rs") => file.with_file_name(""),
            _ => file.with_extension(""),
        };
        self.add(module, &tree.items, &directory, text)
    }

    /// Adds a module and those below it. `directory` is where the files of the modules below it
    /// are.
    fn add(
        &mut self,
        module: Module,
        items: &[Item],
        directory: &Path,
        text: &dyn Fn(&Path) -> Option<String>,
    ) -> usize {
        let (file, is_test, path) = (module.file.clone(), module.is_test, module.path.clone());
        let own = self.modules.len();
        self.modules.push(module);
        let mut reader = Reader {
            is_test,
            ..Reader::new(file.clone())
        };
        for item in items {
            if let Some(name) = item_name(item) {
                self.modules[own].items.insert(name);
            }
            let Item::Mod(below) = item else {
                reader.visit_item(item);
                continue;
            };
            let name = below.ident.to_string();
            let is_test = is_test || is_for_tests(&below.attrs);
            let mut path = path.clone();
            path.push(name.clone());
            let parent = own;
            let child = match &below.content {
                Some((_, items)) => {
                    let module = Module {
                        path,
                        file: file.clone(),
                        is_test,
                        parent,
                        ..Module::default()
                    };
                    self.add(module, items, &directory.join(&name), text)
                }
                None => {
                    let named =
                        path_attribute(&below.attrs).map(|named| file.with_file_name(named));
                    let usual = [
                        directory.join(format!("{name}.rs")),
                        directory.join(&name).join("mod.rs"),
                    ];
                    let found = named
                        .into_iter()
                        .chain(usual)
                        .find_map(|file| text(&file).map(|text| (file, text)));
                    let (file, content) =
                        found.unwrap_or_else(|| panic!("no file of module {}", path.join("::")));
                    let module = Module {
                        path,
                        file,
                        is_test,
                        parent,
                        ..Module::default()
                    };
                    self.add_file(module, &content, text)
                }
            };
            self.modules[own].children.insert(name, child);
        }
        let module = &mut self.modules[own];
        module.references = reader.references;
        module.imports = reader.imports;
        module.globs = reader.globs;
        self.functions.append(&mut reader.functions);
        own
    }

    /// What a path that is written in module `from` leads to; `None` for what is not of this crate.
    pub fn resolve(&self, from: usize, path: &[String]) -> Option<Target> {
        self.follow(from, path, RE_EXPORTS)
    }

    fn follow(&self, from: usize, path: &[String], left: usize) -> Option<Target> {
        let left = left.checked_sub(1)?;
        let mut at = from;
        let mut rest = path;
        let mut is_anchored = false;
        while let Some(first) = rest.first() {
            at = match first.as_str() {
                "crate" | "crawlgate" if !is_anchored => ROOT,
                "self" => at,
                "super" => self.modules[at].parent,
                _ => break,
            };
            is_anchored = true;
            rest = &rest[1..];
        }
        while let Some((first, after)) = rest.split_first() {
            match self.look_up(at, first, after.is_empty(), left) {
                Some(Target::Module(module)) => at = module,
                Some(item) => return Some(item),
                // Something that the module makes with a macro, if it is a module of ours at all.
                None => return is_anchored.then_some(Target::Item(at)),
            }
            is_anchored = true;
            rest = after;
        }
        Some(Target::Module(at))
    }

    /// What `name` is in module `at`. Before `::` a module is meant, at the end of a path an item
    /// if there is one.
    fn look_up(&self, at: usize, name: &str, is_last: bool, left: usize) -> Option<Target> {
        let module = &self.modules[at];
        let child = module
            .children
            .get(name)
            .map(|child| Target::Module(*child));
        let item = module.items.contains(name).then_some(Target::Item(at));
        if let Some(found) = if is_last { item } else { child.or(item) } {
            return Some(found);
        }
        let imports = module.imports.get(name).into_iter().flatten();
        let imported = imports.filter(|path| {
            path.first()
                .is_none_or(|first| first != name || path.len() > 1)
        });
        let mut imported = imported.filter_map(|path| self.follow(at, path, left));
        if let Some(found) = imported.next() {
            return Some(found);
        }
        if child.is_some() {
            return child;
        }
        // What a glob takes out of an enum are variants, which lead nowhere else.
        let is_module = |glob: &&Vec<String>| {
            let last = glob.last();
            last.is_none_or(|last| !last.starts_with(char::is_uppercase))
        };
        module.globs.iter().filter(is_module).find_map(|glob| {
            match self.follow(at, glob, left)? {
                Target::Module(other) if other != at => {
                    self.look_up(other, name, is_last, left.checked_sub(1)?)
                }
                _ => None,
            }
        })
    }

    /// The names below the crate that a path begins with, if it is written from the crate's root or
    /// leaves its top module.
    pub fn absolute(&self, from: usize, path: &[String]) -> Option<Vec<String>> {
        let (mut at, mut rest) = (from, path);
        while let Some(first) = rest.first() {
            at = match first.as_str() {
                "crate" | "crawlgate" if rest.len() == path.len() => ROOT,
                "self" => at,
                "super" => self.modules[at].parent,
                _ => break,
            };
            rest = &rest[1..];
        }
        (rest.len() < path.len())
            .then(|| self.modules[at].path.iter().chain(rest).cloned().collect())
    }

    /// A path of another crate, with what the module imported written out.
    pub fn written_out(&self, from: usize, path: &[String]) -> Vec<String> {
        let imported = path
            .first()
            .and_then(|first| self.modules[from].imports.get(first)?.first());
        match imported {
            Some(imported) => imported.iter().chain(&path[1..]).cloned().collect(),
            None => path.to_vec(),
        }
    }
}

/// Collects what one module names.
struct Reader {
    file: PathBuf,
    is_test: bool,
    references: Vec<Reference>,
    imports: HashMap<String, Vec<Vec<String>>>,
    globs: Vec<Vec<String>>,
    functions: Vec<Function>,
}

impl Reader {
    fn new(file: PathBuf) -> Self {
        Self {
            file,
            is_test: false,
            references: Vec::new(),
            imports: HashMap::new(),
            globs: Vec::new(),
            functions: Vec::new(),
        }
    }

    fn refer(&mut self, path: Vec<String>, line: usize) {
        self.references.push(Reference {
            path,
            line,
            is_test: self.is_test,
        });
    }

    fn import(&mut self, tree: &UseTree, above: &[String]) {
        let with = |name: String| above.iter().cloned().chain([name]).collect::<Vec<_>>();
        match tree {
            UseTree::Path(path) => self.import(&path.tree, &with(path.ident.to_string())),
            UseTree::Group(group) => group.items.iter().for_each(|item| self.import(item, above)),
            UseTree::Glob(glob) => {
                self.refer(above.to_vec(), glob.span().start().line);
                self.globs.push(above.to_vec());
            }
            UseTree::Name(name) => self.import_as(
                above,
                &name.ident.to_string(),
                None,
                tree.span().start().line,
            ),
            UseTree::Rename(rename) => {
                let (name, alias) = (rename.ident.to_string(), rename.rename.to_string());
                self.import_as(above, &name, Some(alias), tree.span().start().line);
            }
        }
    }

    fn import_as(&mut self, above: &[String], name: &str, alias: Option<String>, line: usize) {
        let mut path = above.to_vec();
        if name != "self" {
            path.push(name.to_owned());
        }
        let known_as = alias.or_else(|| path.last().cloned()).unwrap_or_default();
        self.refer(path.clone(), line);
        self.imports.entry(known_as).or_default().push(path);
    }

    fn measure(&mut self, signature: &Signature, end: usize) {
        if self.is_test {
            return;
        }
        let typed = signature.inputs.iter().filter_map(|input| match input {
            syn::FnArg::Typed(typed) => Some(&*typed.pat),
            syn::FnArg::Receiver(_) => None,
        });
        let tuples = typed
            .clone()
            .filter(|pattern| matches!(pattern, syn::Pat::Tuple(_)))
            .count();
        self.functions.push(Function {
            file: self.file.clone(),
            name: signature.ident.to_string(),
            lines: end + 1 - signature.fn_token.span.start().line,
            parameters: typed.count(),
            tuples,
        });
    }

    /// The paths in the arguments of a macro: names with `::` between them.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut line, mut colons) = (Vec::new(), 0, 0);
        for token in tokens {
            match &token {
                TokenTree::Ident(name) if path.is_empty() || colons == 2 => {
                    line = name.span().start().line;
                    path.push(name.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(sign)
                    if sign.as_char() == ':' && !path.is_empty() && colons < 2 =>
                {
                    colons += 1;
                    continue;
                }
                _ => {}
            }
            if path.len() > 1 {
                self.refer(std::mem::take(&mut path), line);
            }
            path.clear();
            colons = 0;
            match token {
                TokenTree::Group(group) => self.read_tokens(group.stream()),
                TokenTree::Ident(name) => path.push(name.to_string()),
                _ => {}
            }
        }
        if path.len() > 1 {
            self.refer(path, line);
        }
    }

    /// Visits with the knowledge whether the attributes make it a test's.
    fn within(&mut self, attributes: &[Attribute], visit: impl FnOnce(&mut Self)) {
        let before = self.is_test;
        self.is_test |= is_for_tests(attributes);
        visit(self);
        self.is_test = before;
    }
}

impl<'a> Visit<'a> for Reader {
    fn visit_item(&mut self, item: &'a Item) {
        self.within(attributes(item), |reader| visit::visit_item(reader, item));
    }

    fn visit_impl_item(&mut self, item: &'a ImplItem) {
        let attributes: &[Attribute] = match item {
            ImplItem::Fn(function) => &function.attrs,
            ImplItem::Const(constant) => &constant.attrs,
            _ => &[],
        };
        self.within(attributes, |reader| visit::visit_impl_item(reader, item));
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.import(&item.tree, &[]);
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.measure(&item.sig, item.block.brace_token.span.close().end().line);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.measure(&item.sig, item.block.brace_token.span.close().end().line);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.measure(&item.sig, block.brace_token.span.close().end().line);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        self.refer(names, path.span().start().line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'a syn::Macro) {
        self.read_tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }

    fn visit_item_macro(&mut self, item: &'a syn::ItemMacro) {
        self.visit_macro(&item.mac);
    }

    // What is written in attributes is not the code's, and `pub(in ...)` is no use of a module.
    fn visit_attribute(&mut self, _: &'a Attribute) {}
    fn visit_visibility(&mut self, _: &'a syn::Visibility) {}
}

fn item_name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(name.to_string())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// `#[test]` or `#[cfg(test)]`.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        Meta::NameValue(_) => false,
    })
}

/// The file of `#[path = "..."]`.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes
        .iter()
        .find_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        })
}
