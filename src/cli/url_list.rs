//! [`for_each_url`] reads the URLs that the flag `--urls` names: a list, or a sitemap.

use super::check::sitemaps::read_sitemap;
use super::{Result, file_failure};
use crate::audit::{LogInput, for_each_line};
use crate::printable::printable_path;
use crate::sitemap::SitemapFindings;
use crate::yaml::strip_http_scheme;
use std::collections::HashSet;
use std::hash::BuildHasher;
use std::path::Path;

/// Calls `on_url` once with each path or URL of a list, one a line, or of a sitemap, a file or a URL. In a
/// list, empty lines and text after `#` are ignored. In CSV and TSV, the first column with a path or
/// URL counts. A first line is their header if no column has one, and its first column has neither a
/// slash nor a dot. Its first comma, semicolon or tab then separates the columns. Without a header, a comma separates them
/// if the name ends in `.csv`, because a URL may have commas. Fails after the last line if a line is
/// neither a path nor a URL.
pub fn for_each_url(path: &Path, mut on_url: impl FnMut(&str)) -> Result {
    let mut seen = HashSet::new();
    let mut on_url = |url: &str| {
        if seen.insert(seen.hasher().hash_one(url)) {
            on_url(url);
        }
    };
    let written = path.to_string_lossy();
    let input = match &*written {
        "-" => LogInput::Stdin,
        _ => LogInput::File(path.to_owned()),
    };
    if strip_http_scheme(&written).is_some() || input.is_xml() {
        return for_each_sitemap_url(&written, on_url);
    }
    let mut separator = written.ends_with(".csv").then_some(',');
    let mut column = None;
    let mut wrong = None;
    let mut number = 0_u64;
    for_each_line(&input, |line| {
        number += 1;
        let line = String::from_utf8_lossy(line);
        let line = line.trim_start_matches('\u{feff}');
        let (first, rest) = line.split_at(line.find([',', ';', '\t']).unwrap_or(line.len()));
        let is_table = !line.contains("://") && (separator.is_some() || !rest.is_empty());
        if number == 1 && is_table && !first.contains(['/', '.', '#']) {
            let found = rest.chars().next().or(separator);
            let cells = split_cells(line, found);
            if !cells.iter().any(|cell| is_path_or_url(cell)) {
                separator = found;
                return;
            }
            separator = separator.and(found);
        }
        let cells = split_cells(line, separator);
        column = column.or_else(|| cells.iter().position(|cell| is_path_or_url(cell)));
        match cells.get(column.unwrap_or_default()) {
            Some(url) if is_path_or_url(url) => on_url(url),
            Some(other) if !other.is_empty() => {
                wrong.get_or_insert_with(|| (number, other.clone()));
            }
            _ => {}
        }
    })
    .map_err(file_failure("read", path))?;
    if let Some((number, line)) = wrong {
        if line.contains('\0') {
            fail!(
                Runtime,
                "{} is in UTF-16; save it as \"CSV UTF-8\", or convert it first: iconv -f UTF-16 -t UTF-8",
                printable_path(path)
            );
        }
        fail!(
            Runtime,
            "{}:{number}: \"{line}\" is neither a path nor a URL; a path begins with /, a URL with https:// and has %20 for a blank",
            printable_path(path)
        );
    }
    Ok(())
}

/// The cells of a line, without text after `#`. A cell that begins with a quote may have separators,
/// and has its quotes doubled.
fn split_cells(line: &str, separator: Option<char>) -> Vec<String> {
    let mut is_start = true;
    let mut has_quotes = false;
    let mut is_open = false;
    let cells = line.split(|sign| {
        if is_start {
            has_quotes = sign == '"';
        }
        is_open ^= has_quotes && sign == '"';
        let is_separator = sign == '\t' || Some(sign) == separator;
        let is_end = !is_open && (is_separator || line.starts_with('"') && ",;".contains(sign));
        is_start = is_end || is_start && sign == ' ';
        is_end
    });
    cells
        .map(|cell| cell.split('#').next().unwrap_or_default().trim())
        .map(|cell| match cell.strip_prefix('"') {
            Some(inner) => inner
                .strip_suffix('"')
                .unwrap_or(inner)
                .replace("\"\"", "\""),
            None => cell.to_owned(),
        })
        .collect()
}

/// Whether a text is a path, or a URL with http or https and without blanks.
pub fn is_path_or_url(text: &str) -> bool {
    text.starts_with('/') || strip_http_scheme(text).is_some_and(|rest| !rest.contains(' '))
}

/// Calls `on_url` with each absolute URL of a sitemap or of those in an index. Fails if one of these
/// cannot be read.
fn for_each_sitemap_url(written: &str, mut on_url: impl FnMut(&str)) -> Result {
    let files = read_sitemap(written, &mut |pages| {
        for listed in &pages.urls {
            if strip_http_scheme(&listed.url).is_some() {
                on_url(&listed.url);
            }
        }
        Vec::new()
    })?;
    if let Some(problem) = files.iter().flat_map(SitemapFindings::problems).next() {
        fail!(
            Runtime,
            "--urls: {problem}. If {} is an index, put its sitemaps beside it, or name one of them in its place",
            printable_path(written)
        );
    }
    Ok(())
}
