//! [`render_csv`] renders the crawlers of a report with their counts as CSV (RFC 4180), one row for
//! each crawler and identity. No cell is a formula for a spreadsheet.

use super::{ClientIdentity, CrawlerRow, Report, registry_crawler};
use crate::crawlers::Purpose;
use crate::printable::printable;

const HEADER: &str = "crawler,name,operator,purpose,identity,requests,bytes,status_2xx,status_3xx,status_304,status_4xx,status_5xx,against_rules,blocked";

const LINE_END: &str = "\r\n";

/// Renders the report as CSV.
pub fn render_csv(report: &Report) -> String {
    let mut csv = HEADER.to_owned();
    csv.push_str(LINE_END);
    for row in &report.crawlers {
        push_row(&mut csv, row);
        csv.push_str(LINE_END);
    }
    csv
}

fn push_row(csv: &mut String, row: &CrawlerRow) {
    let operator = registry_crawler(&row.id).map_or("", |crawler| crawler.operator.as_str());
    let texts: [&str; 5] = [
        &row.id,
        &row.name,
        operator,
        row.purpose.map_or("", Purpose::name),
        row.identity.map_or("", ClientIdentity::name),
    ];
    csv.push_str(&texts.map(text_cell).join(","));
    let counts = &row.counts;
    let sums = [counts.requests(), counts.bytes()];
    let rules = [counts.broke_rules(), counts.refused()];
    for number in sums.into_iter().chain(counts.statuses()).chain(rules) {
        csv.push_str(&format!(",{number}"));
    }
}

/// Quotes a text where it must be, and puts an apostrophe before one that a spreadsheet would
/// compute. Control characters are replaced.
fn text_cell(text: &str) -> String {
    let text = printable(text.as_bytes());
    let apostrophe = if text.starts_with(['=', '+', '-', '@']) {
        "'"
    } else {
        ""
    };
    if text.contains([',', '"']) {
        format!("\"{apostrophe}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{apostrophe}{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::text_cell;

    #[test]
    fn cell_is_quoted_and_no_formula() {
        for (text, cell) in [
            ("GPTBot", "GPTBot"),
            ("", ""),
            ("a, \"b\"", "\"a, \"\"b\"\"\""),
            ("\r\n", "\u{fffd}\u{fffd}"),
            ("=1+1", "'=1+1"),
            ("@x,y", "\"'@x,y\""),
            ("-", "'-"),
            ("+49", "'+49"),
            ("a=b", "a=b"),
        ] {
            assert_eq!(text_cell(text), cell);
        }
    }
}
