//! The report of a case: one HTML page for people who are no engineers, with everything in it. Requests of clients whose name is
//! not proven, or refuted, never stand under the crawler's name alone.

use super::findings::{Findings, ProofFinding, RequestFinding};
use std::fmt::Write;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b}\
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2rem}h3{font-size:1rem}table{border-collapse:collapse;width:100%;font-size:.85rem}\
th,td{text-align:left;vertical-align:top;padding:.3rem .5rem;border-bottom:1px solid #ccc;overflow-wrap:anywhere}\
code{font-size:.9em}.fault{border:2px solid #b00020;padding:.5rem 1rem}.fine{border:2px solid #1b6e3c;padding:.5rem 1rem}";

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
pub fn page(findings: &Findings) -> String {
    let Findings { site, crawler, from, to, log, .. } = findings;
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0} on {1}</title><style>{STYLE}</style></head>\
         <body>\n<h1>What clients that call themselves {0} did on {1}</h1>\n<p>From {2} to {3}. Log: <code>{4}</code>.</p>\n",
        escaped(crawler),
        escaped(site),
        escaped(from),
        escaped(to),
        escaped(log)
    );
    if findings.faults.is_empty() {
        page.push_str("<p class=\"fine\">When this page was written, every check of the case held. Check it again: the page proves nothing by itself.</p>\n");
    } else {
        list(&mut page, "What does not hold", &findings.faults, " class=\"fault\"");
    }
    publications(&mut page, findings);
    copies(&mut page, findings);
    let name = escaped(crawler);
    for (identity, heading) in [
        ("verified", format!("Requests against the rules, proven to be of {name}")),
        ("unverified", format!("Requests by clients that call themselves {name}; it is not proven that they are")),
        ("impostor", format!("Requests by impostors: clients that call themselves {name} and are proven to be others")),
    ] {
        let of: Vec<&RequestFinding> =
            findings.requests.iter().filter(|request| request.identity == identity).collect();
        requests(&mut page, &heading, &of);
        proofs(&mut page, findings, identity);
    }
    list(&mut page, "What was checked and holds", &findings.holds, "");
    list(&mut page, "What cannot be known", &findings.unknown, "");
    how_to_check(&mut page);
    page.push_str("</body></html>\n");
    page
}

fn list(page: &mut String, heading: &str, items: &[String], class: &str) {
    let _ = writeln!(page, "<h2>{heading}</h2><ul{class}>");
    for item in items {
        let _ = writeln!(page, "<li>{}</li>", escaped(item));
    }
    page.push_str("</ul>\n");
}

fn row(page: &mut String, cells: &[&str]) {
    page.push_str("<tr>");
    for cell in cells {
        let _ = write!(page, "<td>{}</td>", escaped(cell));
    }
    page.push_str("</tr>\n");
}

fn publications(page: &mut String, findings: &Findings) {
    page.push_str("<h2>What the site published as robots.txt</h2>\n<table><tr><th>since</th><th>answer</th><th>version</th><th>file in the case</th></tr>\n");
    for published in &findings.published {
        match published.version.is_empty() {
            true => row(page, &[&published.since, "none: the site was taken out of crawlgate", "", ""]),
            false => {
                let file = format!("robots/{}.txt", published.sha256);
                row(page, &[&published.since, &published.answer.to_string(), &published.version, &file]);
            }
        }
    }
    page.push_str("</table>\n");
}

fn copies(page: &mut String, findings: &Findings) {
    page.push_str(
        "<h2>When it was served robots.txt</h2>\n<p>304 is the word that the copy of the client is good. If-None-Match is the \
         client's own statement of which copy it has.</p>\n<table><tr><th>time</th><th>host</th><th>status</th>\
         <th>version</th><th>If-None-Match</th><th>name of the client</th></tr>\n",
    );
    for copy in &findings.served {
        let validator = copy.if_none_match.as_deref().unwrap_or_default();
        row(page, &[&copy.time, &copy.host, &copy.status.to_string(), &copy.version, validator, &copy.identity]);
    }
    page.push_str("</table>\n");
}

fn requests(page: &mut String, heading: &str, requests: &[&RequestFinding]) {
    let _ = writeln!(page, "<h2>{heading}</h2>");
    if requests.is_empty() {
        page.push_str("<p>None.</p>\n");
        return;
    }
    page.push_str(
        "<table><tr><th>time</th><th>request</th><th>client</th><th>proof of the name</th><th>rule</th>\
         <th>this robots.txt was served to it</th><th>recorded</th><th>judged again</th><th>answer</th></tr>\n",
    );
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
            Some(number) => format!("{}, entry {number}", request.proof),
            None => request.proof.clone(),
        };
        let again = format!("{} {}", request.rejudged, request.remark.as_deref().unwrap_or_default());
        row(
            page,
            &[
                &request.time,
                &line,
                &client,
                &proof,
                &rule.collect::<Vec<_>>().join(", "),
                request.served_at.as_deref().unwrap_or("not in this case"),
                &request.kind,
                again.trim(),
                &request.status.to_string(),
            ],
        );
    }
    page.push_str("</table>\n");
}

/// How the clients of a section were proven.
fn proofs(page: &mut String, findings: &Findings, identity: &str) {
    let of: Vec<&ProofFinding> = findings.proofs.iter().filter(|proof| proof.identity == identity).collect();
    if of.is_empty() {
        return;
    }
    page.push_str(
        "<h3>What proves it</h3>\n<table><tr><th>entry</th><th>client</th><th>requests</th><th>means</th>\
         <th>what it rests on</th></tr>\n",
    );
    for proof in of {
        let client = proof.client.as_deref().unwrap_or("(no address)");
        let (number, requests) = (proof.number.to_string(), proof.requests.to_string());
        row(page, &[&number, client, &requests, &proof.means, &proof.says.join("; ")]);
    }
    page.push_str("</table>\n");
}

fn how_to_check(page: &mut String) {
    page.push_str(
        "<h2>How to check this</h2>\n<p>Get the public key of the log from the operator by another way than this file. Then:</p>\n\
         <pre>crawlgate evidence verify case.tar --key KEY</pre>\n<p>Without crawlgate: the documentation page \
         <code>docs/evidence.md</code> has the steps for tar, sha256sum and openssl, and for any parser of robots.txt.</p>\n",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impostor_never_stands_under_the_name_alone() {
        let request =
            RequestFinding { identity: "impostor".into(), target: Some("/<script>".into()), ..Default::default() };
        let page = page(&Findings { crawler: "gptbot".into(), requests: vec![request], ..Findings::default() });
        let impostors = page.find("Requests by impostors").expect("a section");
        assert!(page.find("/&lt;script&gt;").expect("the request") > impostors);
        assert!(!page.contains("<script"));
    }
}
