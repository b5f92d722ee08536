//! Charts as inline SVG, from numbers alone: [`bars`] of requests by period, and a [`trend`] for a row of a table. Each
//! says its content in words; the pages have the numbers as tables, too.

use super::format::thousands;
use std::fmt::Write;

/// Requests of one period.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Bar {
    /// When it began, for people.
    pub period: String,
    /// Requests that did not certainly break a rule.
    pub kept: u64,
    /// Requests that did.
    pub broke: u64,
}

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 150.0;

/// Stacked bars. Only digits, and the periods that crawlgate writes itself, go into the SVG.
pub fn bars(shown: &[Bar]) -> String {
    let most = shown.iter().map(|bar| bar.kept + bar.broke).max().unwrap_or(0);
    let (Some(first), Some(last)) = (shown.first(), shown.last()) else { return String::new() };
    if most == 0 {
        return String::new();
    }
    let step = WIDTH / shown.len() as f64;
    let (all, broke) = shown.iter().fold((0, 0), |(all, broke), bar| (all + bar.kept + bar.broke, broke + bar.broke));
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"Requests of crawlers from {} to {}: {}, of which {} \
         broke the rules. The largest bar is {}.\">",
        HEIGHT + 25.0,
        first.period,
        last.period,
        thousands(all),
        thousands(broke),
        thousands(most)
    );
    for (place, bar) in shown.iter().enumerate() {
        let height = |number: u64| if number == 0 { 0.0 } else { (number as f64 / most as f64 * HEIGHT).max(1.5) };
        let (x, width) = (place as f64 * step, (step * 0.85).min(60.0));
        let (kept, broke) = (height(bar.kept), height(bar.broke));
        let top = (HEIGHT - kept - broke).max(0.0);
        let _ = write!(
            out,
            "<g><title>{}: {} kept, {} broke the rules</title><rect class=\"some\" x=\"{x:.1}\" y=\"{:.1}\" \
             width=\"{width:.1}\" height=\"{kept:.1}\"/><rect class=\"bad\" x=\"{x:.1}\" y=\"{top:.1}\" \
             width=\"{width:.1}\" height=\"{broke:.1}\"/></g>",
            bar.period,
            thousands(bar.kept),
            thousands(bar.broke),
            top + broke,
        );
    }
    let _ = write!(
        out,
        "<text x=\"0\" y=\"{y}\">{}</text><text x=\"{WIDTH}\" y=\"{y}\" text-anchor=\"end\">{}</text></svg>",
        first.period,
        last.period,
        y = HEIGHT + 18.0
    );
    out
}

/// Each period of a crawler as a small bar: the part that broke the rules stands on a line of what was judged.
pub fn trend(shares: &[(u64, u64)]) -> String {
    let with_requests = shares.iter().filter(|(judged, _)| *judged > 0).count();
    let broken = shares.iter().filter(|(_, broke)| *broke > 0).count();
    let step = 120.0 / shares.len().max(1) as f64;
    let mut out = format!(
        "<svg class=\"trend\" viewBox=\"0 0 120 24\" role=\"img\" aria-label=\"broke rules in {broken} of \
         {with_requests} periods with requests\">"
    );
    for (place, (judged, broke)) in shares.iter().enumerate().filter(|(_, (judged, _))| *judged > 0) {
        let height = if *broke == 0 { 0.0 } else { (*broke as f64 / *judged as f64 * 20.0).max(3.0) };
        let (x, width) = (place as f64 * step, (step * 0.8).max(1.0));
        let _ = write!(out, "<rect class=\"some\" x=\"{x:.1}\" y=\"21\" width=\"{width:.1}\" height=\"3\"/>");
        if height > 0.0 {
            let y = 21.0 - height;
            let _ = write!(
                out,
                "<rect class=\"bad\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
            );
        }
    }
    out.push_str("</svg>");
    out
}
