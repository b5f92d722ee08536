//! The report of a case: one HTML page for people who are no engineers, with everything in it. Requests of clients whose name is
//! not proven, or refuted, never stand under the crawler's name alone.

use super::findings::{CaseFindings, Findings, ProofFinding, RequestFinding};
use std::fmt::Write;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:80rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b}\
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2rem}h2.log{font-size:1.4rem;border-top:3px solid #ccc;padding-top:1rem}h3{font-size:1rem}table{border-collapse:collapse;width:100%;font-size:.85rem}\
th,td{text-align:left;vertical-align:top;padding:.3rem .5rem;border-bottom:1px solid #ccc}td.long{overflow-wrap:anywhere}\
code{font-size:.9em;overflow-wrap:anywhere}pre,li{overflow-wrap:anywhere;white-space:pre-wrap}.fault{border:2px solid #b00020;padding:.5rem 1rem}.fine{border:2px solid #1b6e3c;padding:.5rem 1rem}\
@media(max-width:50rem){tr:has(th){display:none}tr{display:block;border-bottom:1px solid #ccc;padding:.3rem 0}\
td{display:block;border:0;padding:.1rem 0;overflow-wrap:anywhere}td::before{content:attr(data-h) ': ';font-weight:bold}td:empty{display:none}}";

/// Octets of a word that no column is as wide as.
const LONG_WORD: usize = 24;

/// A time as people write it.
fn shown(time: &str) -> String {
    match (time.get(..10), time.get(10..11), time.get(11..19), time.ends_with('Z')) {
        (Some(day), Some("T"), Some(clock), true) => format!("{day} {clock} UTC"),
        _ => time.to_owned(),
    }
}

/// Text in HTML.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // What would hide or turn other text stands as its number.
            letter
                if letter.is_control()
                    || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                let _ = write!(escaped, "\\u{{{:x}}}", u32::from(letter));
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// The page.
pub fn page(case: &CaseFindings) -> String {
    let nothing = Findings::default();
    let Findings { site, crawler, from, to, .. } = case.logs.first().unwrap_or(&nothing);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{0} on {1}</title><style>{STYLE}</style></head>\
         <body>\n<h1>What clients that call themselves {0} did on {1}</h1>\n<p>From {2} to {3}.</p>\n",
        escaped(crawler),
        escaped(site),
        escaped(&shown(from)),
        escaped(&shown(to)),
    );
    if case.faults.is_empty() {
        page.push_str("<p class=\"fine\">When this page was written, every check of the case held. Check it again: the page proves nothing by itself.</p>\n");
    } else {
        list(&mut page, "What does not hold", &case.faults, " class=\"fault\"");
    }
    if case.logs.len() > 1 {
        let _ = writeln!(
            page,
            "<p>This case has the logs of {} instances of crawlgate. Each writes by a clock of its own.</p>",
            case.logs.len()
        );
    }
    for (place, findings) in case.logs.iter().enumerate() {
        match case.logs.len() {
            1 => drop(writeln!(page, "<p>Log: <code>{}</code>.</p>", escaped(&findings.log))),
            _ => drop(writeln!(
                page,
                "<h2 class=\"log\">Log {0} of {1}: <code>{2}</code></h2><p>Its files are below <code>logs/{0}/</code>.</p>",
                place + 1,
                case.logs.len(),
                escaped(&findings.log)
            )),
        }
        tell_log(&mut page, findings);
    }
    how_to_check(&mut page, case.logs.len());
    page.push_str("</body></html>\n");
    page
}

fn tell_log(page: &mut String, findings: &Findings) {
    let name = escaped(&findings.crawler);
    publications(page, findings);
    copies(page, findings);
    for (standing, heading) in [
        (Standing::Proven, format!("Requests against the rules, proven to be of {name}")),
        (
            Standing::Asserted,
            format!("Requests that the operator says are of {name}; the case has no proof of who the client was"),
        ),
        (Standing::Claimed, format!("Requests by clients that call themselves {name}; it is not proven that they are")),
        (Standing::Impostor, format!("Requests by impostors: clients that call themselves {name} and are others")),
    ] {
        let of: Vec<&RequestFinding> =
            findings.requests.iter().filter(|request| Standing::of(request, findings) == standing).collect();
        if standing == Standing::Asserted && of.is_empty() {
            continue;
        }
        requests(page, &heading, &of);
        match standing {
            Standing::Proven => proofs(page, findings, "verified"),
            Standing::Impostor => proofs(page, findings, "impostor"),
            Standing::Asserted | Standing::Claimed => {}
        }
    }
    list(page, "What was checked and holds", &findings.holds, "");
    list(page, "What cannot be known", &findings.unknown, "");
}

/// What the case has of who made a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It was the crawler, and a proof is in the case.
    Proven,
    /// It was the crawler, by the word of the operator: by networks of the policy, or a proof that the log no longer has.
    Asserted,
    /// It is open who it was.
    Claimed,
    /// It was not the crawler.
    Impostor,
}

impl Standing {
    fn of(request: &RequestFinding, findings: &Findings) -> Standing {
        let has_proof = findings.proofs.iter().any(|proof| Some(proof.number) == request.proof_entry);
        match (request.identity.as_str(), has_proof) {
            ("verified", true) => Standing::Proven,
            ("verified", false) => Standing::Asserted,
            ("impostor", _) => Standing::Impostor,
            _ => Standing::Claimed,
        }
    }
}

fn list(page: &mut String, heading: &str, items: &[String], class: &str) {
    let _ = writeln!(page, "<h2>{heading}</h2><ul{class}>");
    for item in items {
        let _ = writeln!(page, "<li>{}</li>", escaped(item));
    }
    page.push_str("</ul>\n");
}

/// A table. On a narrow screen each row is a list, with the headings before the cells.
struct Table<'p> {
    page: &'p mut String,
    headings: &'static [&'static str],
}

impl<'p> Table<'p> {
    fn begin(page: &'p mut String, headings: &'static [&'static str]) -> Table<'p> {
        let cells: String = headings.iter().map(|heading| format!("<th>{heading}</th>")).collect();
        let _ = writeln!(page, "<table><tr>{cells}</tr>");
        Table { page, headings }
    }

    fn row(&mut self, cells: &[&str]) {
        self.page.push_str("<tr>");
        for (cell, heading) in cells.iter().zip(self.headings) {
            // Only hashes and addresses of pages are broken within a word.
            let class = if cell.split_whitespace().any(|word| word.len() > LONG_WORD) { " class=\"long\"" } else { "" };
            let _ = write!(self.page, "<td data-h=\"{heading}\"{class}>{}</td>", escaped(cell));
        }
        self.page.push_str("</tr>\n");
    }

    fn end(self) {
        self.page.push_str("</table>\n");
    }
}

fn publications(page: &mut String, findings: &Findings) {
    page.push_str("<h2>What the site published as robots.txt</h2>\n");
    let mut table = Table::begin(page, &["since", "answer", "version", "file in the case"]);
    for published in &findings.published {
        match published.version.is_empty() {
            true => table.row(&[&shown(&published.since), "none: the site was taken out of crawlgate", "", ""]),
            false => {
                let file = format!("robots/{}.txt", published.sha256);
                table.row(&[&shown(&published.since), &published.answer.to_string(), &published.version, &file]);
            }
        }
    }
    table.end();
}

fn copies(page: &mut String, findings: &Findings) {
    let name = escaped(&findings.crawler);
    let _ = writeln!(page, "<h2>When clients that call themselves {name} were served robots.txt</h2>");
    if findings.served.is_empty() {
        page.push_str("<p>Never in this case.</p>\n");
        return;
    }
    page.push_str(
        "<p>304 is the word that the copy of the client is good. If-None-Match is the \
         client's own statement of which copy it has.</p>\n",
    );
    let mut table = Table::begin(page, &["time", "host", "status", "version", "If-None-Match", "name of the client"]);
    for copy in &findings.served {
        let validator = copy.if_none_match.as_deref().unwrap_or_default();
        let status = copy.status.to_string();
        table.row(&[&shown(&copy.time), &copy.host, &status, &copy.version, validator, &copy.identity]);
    }
    table.end();
}

/// What the page says of a request.
const REQUEST: [&str; 9] = [
    "time",
    "request",
    "client",
    "proof of the name",
    "rule",
    "a client of this kind was served this robots.txt at",
    "recorded",
    "judged again",
    "answer",
];

fn requests(page: &mut String, heading: &str, requests: &[&RequestFinding]) {
    let _ = writeln!(page, "<h2>{heading}</h2>");
    if requests.is_empty() {
        page.push_str("<p>None.</p>\n");
        return;
    }
    let mut table = Table::begin(page, &REQUEST);
    for request in requests {
        let target = request.target.as_deref().unwrap_or("(withdrawn)");
        let line = format!("{} {}{target}", request.method, request.host);
        let client = format!(
            "{} {}",
            request.client.as_deref().unwrap_or("(no address)"),
            request.user_agent.as_deref().unwrap_or("(no user agent)")
        );
        let rule = [request.rule.as_deref(), request.rule_source.as_deref()].into_iter().flatten();
        let proof = match request.proof_entry {
            Some(number) => format!("{} (entry {number})", request.proof),
            None => request.proof.clone(),
        };
        let mut served = request.served_at.as_deref().map_or_else(|| "not in this case".to_owned(), shown);
        if let Some(log) = &request.served_by {
            let _ = write!(served, ", by the instance with the log {log}");
        }
        let again = [Some(request.rejudged), request.remark.as_deref()];
        let again = again.into_iter().flatten().collect::<Vec<_>>().join("; ");
        table.row(&[
            &shown(&request.time),
            &line,
            &client,
            &proof,
            &rule.collect::<Vec<_>>().join(", "),
            &served,
            &request.kind,
            &again,
            &request.status.to_string(),
        ]);
    }
    table.end();
}

/// How the clients of a section were proven.
fn proofs(page: &mut String, findings: &Findings, identity: &str) {
    let of: Vec<&ProofFinding> = findings.proofs.iter().filter(|proof| proof.identity == identity).collect();
    if of.is_empty() {
        return;
    }
    page.push_str("<h3>What proves it</h3>\n");
    let mut table = Table::begin(page, &["entry", "client", "requests", "means", "what it rests on"]);
    for proof in of {
        let client = proof.client.as_deref().unwrap_or("(no address)");
        let (number, requests) = (proof.number.to_string(), proof.requests.to_string());
        table.row(&[&number, client, &requests, &proof.means, &proof.says.join("; ")]);
    }
    table.end();
}

fn how_to_check(page: &mut String, logs: usize) {
    let keys = " --key KEY".repeat(logs);
    let _ = write!(
        page,
        "<h2>How to check this</h2>\n<p>Get the public key of each log from the operator by another way than this file. Then:</p>\n\
         <pre>crawlgate evidence verify case.tar{keys}</pre>\n<p>Without crawlgate: the documentation page \
         <code>docs/evidence.md</code> has the steps for tar, sha256sum and openssl, and for any parser of robots.txt.</p>\n",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(requests: Vec<RequestFinding>) -> CaseFindings {
        let proofs = vec![ProofFinding { number: 7, identity: "verified".into(), ..ProofFinding::default() }];
        CaseFindings::of(vec![Findings { crawler: "gptbot".into(), requests, proofs, ..Findings::default() }])
    }

    fn request(identity: &str, proof_entry: Option<u64>, target: &str) -> RequestFinding {
        RequestFinding {
            identity: identity.into(),
            proof_entry,
            target: Some(target.into()),
            ..RequestFinding::default()
        }
    }

    #[test]
    fn what_is_not_proven_never_stands_under_the_name_alone() {
        let page = page(&case(vec![
            request("impostor", None, "/<script>"),
            request("unverified", None, "/claimed"),
            request("something else", None, "/odd"),
            request("verified", Some(3), "/asserted"),
            request("verified", Some(7), "/proven"),
        ]));
        let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
        let order = [
            place("proven to be of"),
            place("/proven"),
            place("that the operator says are of"),
            place("/asserted"),
            place("it is not proven that they are"),
            place("/claimed"),
            place("/odd"),
            place("Requests by impostors"),
            place("/&lt;script&gt;"),
        ];
        assert!(order.is_sorted(), "{order:?}");
        assert!(!page.contains("<script"));
    }
}
