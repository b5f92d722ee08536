//! Counts the tokens of the product's code by room: `scripts/count-tokens`. Comments, documentation
//! and code that is compiled for tests only do not count. A token is a name, a literal, a bracket
//! or a sign.
//!
//! With `--files` it also prints the largest files.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    for root in ["lib.rs", "main.rs"] {
        read(&source.join(root), &mut files)?;
    }
    let mut rooms = BTreeMap::<String, usize>::new();
    for (file, tokens) in &files {
        let first = file
            .strip_prefix(&source)?
            .iter()
            .next()
            .unwrap_or_default();
        *rooms
            .entry(first.to_string_lossy().trim_end_matches(".rs").to_owned())
            .or_default() += tokens;
    }
    let mut rooms: Vec<_> = rooms.into_iter().collect();
    rooms.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
    for (room, tokens) in &rooms {
        println!("{tokens:8} {room}");
    }
    println!(
        "{:8} in all",
        rooms.iter().map(|(_, tokens)| tokens).sum::<usize>()
    );
    if std::env::args().any(|argument| argument == "--files") {
        files.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
        for (file, tokens) in files.iter().take(60) {
            println!("{tokens:8} {}", file.strip_prefix(&source)?.display());
        }
    }
    Ok(())
}

/// Counts a file, and those of the modules that it declares.
fn read(file: &Path, files: &mut Vec<(PathBuf, usize)>) -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let stream: TokenStream = text
        .parse()
        .map_err(|error| format!("{}: {error}", file.display()))?;
    let below = match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("mod" | "lib" | "main") => file.with_file_name(""),
        _ => file.with_extension(""),
    };
    let (mut tokens, mut modules) = (0, Vec::new());
    count(stream, Path::new(""), &mut tokens, &mut modules);
    files.push((file.to_owned(), tokens));
    for module in modules {
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

/// Adds the tokens of a stream, and the modules whose files it declares. `within` are the modules
/// around it.
fn count(stream: TokenStream, within: &Path, tokens: &mut usize, modules: &mut Vec<PathBuf>) {
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
                    *tokens += 1 + sign + 2;
                    count(group.stream(), within, tokens, modules);
                }
            }
            continue;
        }
        *tokens += 1;
        let [keyword, name] = &before;
        let module = (keyword == "mod").then(|| within.join(name));
        match &token {
            TokenTree::Group(group) => {
                *tokens += usize::from(group.delimiter() != Delimiter::None);
                let inside = module.filter(|_| group.delimiter() == Delimiter::Brace);
                count(
                    group.stream(),
                    inside.as_deref().unwrap_or(within),
                    tokens,
                    modules,
                );
            }
            TokenTree::Punct(sign) if sign.as_char() == ';' => modules.extend(module),
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
