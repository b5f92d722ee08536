//! [`for_each_url`] reads the URLs that the flag `--urls` names: a list, or a sitemap.

use super::Result;
use super::check::sitemaps::read_sitemap;
use crate::audit::{LogInput, for_each_line};
use crate::printable::printable_path;
use crate::sitemap::SitemapFindings;
use crate::yaml::strip_http_scheme;
use std::path::Path;

/// Calls `on_url` with each path or URL of a list, one a line, or of a sitemap, a file or a URL. In a
/// list, empty lines and text after `#` are ignored. Of a line of CSV that begins with a quote, the
/// first column counts, and its header `Address` or `URL` is ignored. Fails after the last line if a
/// line is neither a path nor a URL.
pub fn for_each_url(path: &Path, mut on_url: impl FnMut(&str)) -> Result {
    let written = path.to_string_lossy();
    let input = match &*written {
        "-" => LogInput::Stdin,
        _ => LogInput::File(path.to_owned()),
    };
    if strip_http_scheme(&written).is_some() || input.is_xml() {
        return for_each_sitemap_url(&written, on_url);
    }
    let mut wrong = None;
    let mut number = 0_u64;
    for_each_line(&input, |line| {
        number += 1;
        let line = String::from_utf8_lossy(line);
        let line = line.trim_start_matches('\u{feff}');
        let quoted = line
            .strip_prefix('"')
            .and_then(|text| text.split('"').next());
        let line = quoted.unwrap_or(line);
        let line = line.split('#').next().unwrap_or_default().trim();
        let is_header = number == 1 && ["address", "url"].contains(&&*line.to_ascii_lowercase());
        if line.starts_with('/') || line.contains("://") {
            on_url(line);
        } else if !line.is_empty() && !is_header && wrong.is_none() {
            wrong = Some((number, line.to_owned()));
        }
    })?;
    match wrong {
        Some((number, line)) => fail!(
            Runtime,
            "{}:{number}: \"{line}\" is neither a path nor a URL; a path begins with /, a URL with https://",
            printable_path(path)
        ),
        None => Ok(()),
    }
}

/// Calls `on_url` with each absolute URL of a sitemap or of those in an index. Fails if one of these
/// cannot be read.
fn for_each_sitemap_url(written: &str, mut on_url: impl FnMut(&str)) -> Result {
    let files = read_sitemap(written, &mut |pages| {
        let urls = pages.urls.iter().map(|listed| listed.url.as_str());
        urls.filter(|url| url.contains("://")).for_each(&mut on_url);
        Vec::new()
    })?;
    match files.iter().flat_map(SitemapFindings::problems).next() {
        Some(problem) => fail!(
            Runtime,
            "--urls: {problem}. If {} is an index, put its sitemaps beside it, or name one of them in its place",
            printable_path(written)
        ),
        None => Ok(()),
    }
}
