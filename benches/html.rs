//! What rewriting a page costs beside passing it on: a page of a megabyte in pieces as they come
//! from a socket. `cargo bench --no-default-features --features html --bench html`.

use crawlgate::indexing::parse_lines;
use crawlgate::internals::html::PageRewriter;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::fmt::Write;
use std::hint::black_box;

/// Pieces of this size.
const PIECE: usize = 16 * 1024;

/// An ordinary page: a head with what heads have, then sections with text, links and a table.
fn page(bytes: usize) -> String {
    let mut html = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>A long page</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<link rel=\"stylesheet\" href=\"/style.css\">\n\
         <script src=\"/script.js\" defer></script>\n<meta name=\"robots\" content=\"max-snippet:50\">\n</head>\n<body>\n",
    );
    let mut number = 0;
    while html.len() < bytes {
        number += 1;
        let _ = writeln!(
            html,
            "<section class=\"article\" id=\"s{number}\"><h2>Section {number}</h2>\n<p>Some text that goes on for a while, as \
             text does, with <em>words</em> that matter and <a href=\"/page/{number}\">a link</a> or two.</p>\n<table><tr>\
             <td class=\"price\">{number} €</td><td>more</td></tr></table>\n<div class=\"comments\"><p><a href=\"https://e\
             xample.org/{number}\">somebody</a> says so.</p></div></section>"
        );
    }
    html.push_str("</body>\n</html>\n");
    html
}

/// As the gateway does: what passes is not touched.
fn rewrite(page: Option<PageRewriter>, html: &[u8]) -> usize {
    let mut page = page;
    let mut written = 0;
    for piece in html.chunks(PIECE) {
        written += match page.as_mut().filter(|page| !page.passes_rest_unchanged()) {
            Some(page) => black_box(page.write(piece)).len(),
            None => black_box(piece).len(),
        };
    }
    written + page.map_or(0, |mut page| page.end().len())
}

fn rewriting(criterion: &mut Criterion) {
    let tags = parse_lines([b"noindex, nofollow".as_slice(), b"googlebot: nosnippet"]);
    let mut group = criterion.benchmark_group("html");
    for bytes in [16 * 1024, 1 << 20] {
        let html = page(bytes);
        let html = html.as_bytes();
        group.throughput(Throughput::Bytes(html.len() as u64));
        let size = format!("{} KiB", bytes / 1024);
        group.bench_function(BenchmarkId::new("untouched", &size), |bencher| {
            bencher.iter(|| rewrite(None, html))
        });
        group.bench_function(BenchmarkId::new("copied", &size), |bencher| {
            bencher.iter(|| {
                html.chunks(PIECE)
                    .map(|piece| black_box(piece.to_vec()).len())
                    .sum::<usize>()
            });
        });
        group.bench_function(BenchmarkId::new("metas", &size), |bencher| {
            bencher.iter(|| rewrite(PageRewriter::new(&tags, Some(b"utf-8")), html));
        });
    }
    group.finish();
}

criterion_group!(benches, rewriting);
criterion_main!(benches);
