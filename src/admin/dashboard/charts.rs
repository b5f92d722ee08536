//! Charts as inline SVG: [`bars`] draws the requests of each period, [`trend`] a small chart for a
//! row of a table. Each chart has a text alternative, and the pages show the same numbers as
//! tables.

use super::format::thousands;
use crate::verdict::KnownIdentity;
use std::fmt::Write;

/// Requests of one period.
#[derive(Debug, Default, serde::Serialize)]
pub struct Bar {
    /// When it began, for people.
    pub period: String,
    /// Requests that obeyed the rules.
    pub kept: u64,
    /// Disallowed requests that do not count: the crawler may have had another robots.txt.
    pub uncounted: u64,
    /// Requests that broke the rules, without those of impostors.
    pub broke: u64,
    /// Requests among `broke` under a name that nothing proves.
    pub broke_unverified: u64,
    /// Requests of impostors.
    pub impostor: u64,
}

impl Bar {
    /// All requests of the period. Those of `broke_unverified` are among `broke` already.
    pub fn all(&self) -> u64 {
        self.kept + self.uncounted + self.broke + self.impostor
    }
}

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 150.0;

/// The requests of each period as stacked bars in SVG, with the first and the last period below.
/// Empty if no period has requests. Only digits, and the periods that crawlgate writes itself, go
/// into the SVG.
pub fn bars(shown: &[Bar]) -> String {
    let most = shown.iter().map(Bar::all).max().unwrap_or(0);
    let [first, ..] = shown else {
        return String::new();
    };
    let last = shown.last().unwrap_or(first);
    if most == 0 {
        return String::new();
    }
    let step = WIDTH / shown.len() as f64;
    let sum = |of: fn(&Bar) -> u64| thousands(shown.iter().map(of).sum::<u64>());
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"Requests of crawlers from {} to {}: {}, of which {} \
         broke the rules, {} of them under a name that nothing proves, and {} were impostors'. The largest bar is {}.\">",
        HEIGHT + 1.0,
        first.period,
        last.period,
        sum(Bar::all),
        sum(|bar| bar.broke),
        sum(|bar| bar.broke_unverified),
        sum(|bar| bar.impostor),
        thousands(most)
    );
    for (place, bar) in shown.iter().enumerate().filter(|(_, bar)| bar.all() > 0) {
        let x = place as f64 * step;
        let width = (step * 0.85).min(100.0);
        let Bar {
            period,
            kept,
            uncounted,
            broke,
            broke_unverified,
            impostor,
        } = bar;
        let _ = write!(
            out,
            "<g><title>{period}: {kept} obeyed, {uncounted} do not count, {broke} broke the rules ({broke_unverified} \
             of unverified names), {impostor} of impostors</title>"
        );
        let verified = broke.saturating_sub(*broke_unverified);
        let parts = [
            ("some", *kept),
            ("unknown", *uncounted),
            ("bad", verified),
            ("claimed", *broke_unverified),
            ("impostor", *impostor),
        ];
        let mut top = HEIGHT;
        for (class, number) in parts {
            let height = if number == 0 {
                0.0
            } else {
                (number as f64 / most as f64 * HEIGHT).max(1.5)
            };
            top -= height;
            if number > 0 {
                let y = top.max(0.0);
                let _ = write!(
                    out,
                    "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
                );
            }
        }
        out.push_str("</g>");
    }
    let _ = write!(
        out,
        "</svg><p class=\"axis\"><span>{}</span><span>{}</span></p>",
        first.period, last.period
    );
    out
}

/// A small bar for each period of a crawler, as SVG: the share of requests that broke the rules, in
/// the colour of the identity. `shares` are pairs of judged requests and those that broke a rule. A
/// line below marks the periods with judged requests.
pub fn trend(shares: &[(u64, u64)], identity: KnownIdentity) -> String {
    let class = match identity {
        KnownIdentity::Verified => "bad",
        KnownIdentity::Impostor => "impostor",
        KnownIdentity::Unverified => "claimed",
    };
    let with_requests = shares.iter().filter(|(judged, _)| *judged > 0).count();
    let broken = shares.iter().filter(|(_, broke)| *broke > 0).count();
    let step = 120.0 / shares.len().max(1) as f64;
    let mut out = format!(
        "<svg class=\"trend\" viewBox=\"0 0 120 24\" role=\"img\" aria-label=\"broke rules in {broken} of \
         {with_requests} periods with requests\">"
    );
    for (place, (judged, broke)) in shares
        .iter()
        .enumerate()
        .filter(|(_, (judged, _))| *judged > 0)
    {
        let height = if *broke == 0 {
            0.0
        } else {
            (*broke as f64 / *judged as f64 * 20.0).max(3.0)
        };
        let x = place as f64 * step;
        let width = (step * 0.8).max(1.0);
        let _ = write!(
            out,
            "<rect class=\"some\" x=\"{x:.1}\" y=\"21\" width=\"{width:.1}\" height=\"3\"/>"
        );
        if height > 0.0 {
            let y = 21.0 - height;
            let _ = write!(
                out,
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
            );
        }
    }
    out.push_str("</svg>");
    out
}
