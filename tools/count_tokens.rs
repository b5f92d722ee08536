//! Counts the tokens of the product's code by module: `scripts/count-tokens`. Comments,
//! documentation and code that is compiled for tests only do not count. A token is a name, a
//! literal, a bracket or a sign. Below are the sums of the core and of the add-ons
//! (docs/internals/architecture.md), the tokens of a line and what packs several thoughts
//! into one: tuples as parameters, closures with a name, and two values in one `let`.
//!
//! With `--files` it also prints the largest files, with `--packing` the places that pack.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, FnArg, Pat};

fn main() -> Result<(), Box<dyn Error>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    for root in ["lib.rs", "main.rs"] {
        read(&source.join(root), &mut files)?;
    }
    let mut rooms = BTreeMap::<String, usize>::new();
    for file in &files {
        let first = file
            .path
            .strip_prefix(&source)?
            .iter()
            .next()
            .unwrap_or_default();
        *rooms
            .entry(first.to_string_lossy().trim_end_matches(".rs").to_owned())
            .or_default() += file.tokens;
    }
    let mut rooms: Vec<_> = rooms.into_iter().collect();
    rooms.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
    for (room, tokens) in &rooms {
        println!("{tokens:8} {room}");
    }
    let tokens = files.iter().map(|file| file.tokens).sum::<usize>();
    println!("{tokens:8} in all");
    let add_ons = add_ons()?;
    let outside: usize = rooms
        .iter()
        .filter(|(room, _)| add_ons.contains(room))
        .map(|(_, tokens)| tokens)
        .sum();
    println!("{:8} in the core", tokens - outside);
    println!("{outside:8} in add-ons");
    if std::env::args().any(|argument| argument == "--files") {
        files.sort_by_key(|file| std::cmp::Reverse(file.tokens));
        for file in files.iter().take(60) {
            println!(
                "{:8} {}",
                file.tokens,
                file.path.strip_prefix(&source)?.display()
            );
        }
    }
    let lines = files.iter().map(|file| file.lines.len()).sum::<usize>();
    println!(
        "{:8.1} tokens a line, of {lines}",
        tokens as f64 / lines as f64
    );
    let shows_places = std::env::args().any(|argument| argument == "--packing");
    for form in [
        "tuple parameter",
        "named closure",
        "paired let",
        "match on a boolean",
    ] {
        let places = files
            .iter()
            .flat_map(|file| file.packing.places.iter().map(move |place| (file, place)));
        let places: Vec<_> = places.filter(|(_, (found, _))| *found == form).collect();
        println!(
            "{:8} {form}, {:.1} in a thousand lines",
            places.len(),
            places.len() as f64 * 1e3 / lines as f64
        );
        if shows_places {
            for (file, (_, line)) in places {
                println!("         {}:{line}", file.path.display());
            }
        }
    }
    Ok(())
}

/// What was counted in a file.
struct Counted {
    path: PathBuf,
    tokens: usize,
    /// The lines with at least one token.
    lines: BTreeSet<usize>,
    packing: Packing,
}

/// The places that pack several thoughts into one line, with their form.
#[derive(Default)]
struct Packing {
    places: Vec<(&'static str, usize)>,
}

impl Packing {
    fn add(&mut self, form: &'static str, at: Span) {
        self.places.push((form, at.start().line));
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let argument = attribute.parse_args::<syn::Ident>();
        attribute.path().is_ident("cfg") && argument.is_ok_and(|argument| argument == "test")
    })
}

impl<'a> Visit<'a> for Packing {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_signature(&mut self, signature: &'a syn::Signature) {
        for input in &signature.inputs {
            if let FnArg::Typed(typed) = input
                && matches!(*typed.pat, Pat::Tuple(_))
            {
                self.add("tuple parameter", typed.span());
            }
        }
        visit::visit_signature(self, signature);
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        if let Some(init) = &local.init {
            let pattern = match &local.pat {
                Pat::Type(typed) => &typed.pat,
                pattern => pattern,
            };
            match (pattern, &*init.expr) {
                (Pat::Ident(_), Expr::Closure(_)) => self.add("named closure", local.span()),
                (Pat::Tuple(_), Expr::Tuple(_)) => self.add("paired let", local.span()),
                _ => {}
            }
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_match(&mut self, expression: &'a syn::ExprMatch) {
        let is_boolean = |arm: &syn::Arm| matches!(&arm.pat, Pat::Lit(literal) if matches!(literal.lit, syn::Lit::Bool(_)));
        if expression.arms.iter().any(is_boolean) {
            self.add("match on a boolean", expression.span());
        }
        visit::visit_expr_match(self, expression);
    }
}

/// Counts a file, and those of the modules that it declares.
fn read(file: &Path, files: &mut Vec<Counted>) -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let stream: TokenStream = text
        .parse()
        .map_err(|error| format!("{}: {error}", file.display()))?;
    let below = match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("mod" | "lib" | "main") => file.with_file_name(""),
        _ => file.with_extension(""),
    };
    let mut found = Found::default();
    found.count(stream, Path::new(""));
    let mut packing = Packing::default();
    packing.visit_file(&syn::parse_file(&text)?);
    files.push(Counted {
        path: file.to_owned(),
        tokens: found.tokens,
        lines: found.lines,
        packing,
    });
    for module in found.modules {
        let module = below.join(module);
        let nested = module.join("mod.rs");
        read(
            &if nested.is_file() {
                nested
            } else {
                module.with_extension("rs")
            },
            files,
        )?;
    }
    Ok(())
}

/// What was found in a stream of tokens.
#[derive(Default)]
struct Found {
    tokens: usize,
    lines: BTreeSet<usize>,
    /// The modules whose files it declares.
    modules: Vec<PathBuf>,
}

impl Found {
    fn add(&mut self, at: Span) {
        self.tokens += 1;
        self.lines.insert(at.start().line);
    }

    /// Adds the tokens of a stream. `within` are the modules around it.
    fn count(&mut self, stream: TokenStream, within: &Path) {
        let mut rest = stream.into_iter().peekable();
        let mut before = [String::new(), String::new()];
        while let Some(token) = rest.next() {
            let is_attribute = matches!(&token, TokenTree::Punct(sign) if sign.as_char() == '#')
                && rest
                    .peek()
                    .is_some_and(|next| matches!(next, TokenTree::Group(_) | TokenTree::Punct(_)));
            if is_attribute {
                let next = rest.next().expect("peeked at");
                let (sign, group) = match next {
                    TokenTree::Punct(_) => (1, rest.next()),
                    group => (0, Some(group)),
                };
                let Some(TokenTree::Group(group)) = group else {
                    continue;
                };
                let said: String = group
                    .stream()
                    .into_iter()
                    .take(2)
                    .map(|token| token.to_string())
                    .collect();
                match said.as_str() {
                    "doc=" => {}
                    "cfg(test)" => skip_item(&mut rest),
                    _ => {
                        self.add(token.span());
                        self.tokens += sign + 2;
                        self.count(group.stream(), within);
                    }
                }
                continue;
            }
            self.add(token.span());
            let [keyword, name] = &before;
            let module = (keyword == "mod").then(|| within.join(name));
            match &token {
                TokenTree::Group(group) => {
                    if group.delimiter() != Delimiter::None {
                        self.add(group.span_close());
                    }
                    let inside = module.filter(|_| group.delimiter() == Delimiter::Brace);
                    self.count(group.stream(), inside.as_deref().unwrap_or(within));
                }
                TokenTree::Punct(sign) if sign.as_char() == ';' => self.modules.extend(module),
                _ => {}
            }
            before.rotate_left(1);
            before[1] = if let TokenTree::Ident(name) = token {
                name.to_string()
            } else {
                String::new()
            };
        }
    }
}

/// Skips what an attribute stands before: to the end of its braces, or to its `;` or `,`.
fn skip_item(rest: &mut impl Iterator<Item = TokenTree>) {
    for token in rest {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return,
            TokenTree::Punct(sign) if matches!(sign.as_char(), ';' | ',') => return,
            _ => {}
        }
    }
}

/// The modules that the picture in docs/internals/architecture.md shows as add-ons.
fn add_ons() -> Result<BTreeSet<String>, Box<dyn Error>> {
    let map = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/internals/architecture.md");
    let text = fs::read_to_string(map)?;
    let names = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("add_ons_modules[\""));
    let names = names.unwrap_or_default().trim_end_matches("\"]");
    Ok(names.split(", ").map(str::to_owned).collect())
}
