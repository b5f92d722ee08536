//! [`sentences`]: the summary at the top of the overview, for readers who are not engineers. It
//! says which crawlers obeyed the rules, which broke them and since when, and what was refused. A
//! crawler that broke rules is always named together with what is proven of its identity.

use super::format::thousands;
use super::rows::{CrawlerRow, claims_nothing};
use crate::record::ByIdentity;
use crate::verdict::KnownIdentity;
use std::borrow::Borrow;

/// The most names in a sentence.
const NAMED: usize = 3;

/// The sentences of the summary, in their order: how many requests, who obeyed, who broke the
/// rules, what does not count, impostors, suspected requests, what was refused. If no crawler came,
/// only that.
pub fn sentences(by_identity: &ByIdentity, crawlers: &[CrawlerRow]) -> Vec<String> {
    let own = by_identity.own();
    if by_identity.all().requests() == 0 {
        return vec!["No crawler came in this time.".to_owned()];
    }
    let mut out = vec![format!("Crawlers sent {}.", requests(own.requests()))];
    out.extend(kept(crawlers));
    out.extend(broke(crawlers));
    out.extend(uncounted(own.uncounted()));
    out.extend(impostors(crawlers));
    out.extend(suspected(crawlers));
    out.push(refused(by_identity));
    out
}

fn requests(number: u64) -> String {
    if number == 1 {
        "1 request".to_owned()
    } else {
        format!("{} requests", thousands(number))
    }
}

/// `a`, `a and b`, `a, b, c and 4 others`. Names three at most.
fn list<S: Borrow<str>>(names: &[S]) -> String {
    let shown = &names[..names.len().min(NAMED)];
    match (names.len() - shown.len(), shown) {
        (0, [first @ .., last]) if !first.is_empty() => {
            format!("{} and {}", first.join(", "), last.borrow())
        }
        (0, _) => shown.concat(),
        (1, _) => format!("{} and 1 other", shown.join(", ")),
        (others, _) => format!("{} and {others} others", shown.join(", ")),
    }
}

/// The sentence about disallowed requests that count neither as obeyed nor as broken. `None` if
/// there are none.
fn uncounted(number: u64) -> Option<String> {
    let does_not_count = match number {
        0 => return None,
        1 => "1 disallowed request does not count".to_owned(),
        number => format!("{} disallowed requests do not count", thousands(number)),
    };
    Some(format!(
        "{does_not_count}: the crawlers may use an older robots.txt, and crawlgate cannot know which."
    ))
}

/// Sentences about the crawlers that certainly obeyed: verified ones, then unverified ones. A
/// crawler with a disallowed request that does not count may have obeyed or not, so it is not
/// named.
fn kept(crawlers: &[CrawlerRow]) -> Vec<String> {
    let mut out = Vec::new();
    let mut verified = Vec::new();
    let mut unverified = Vec::new();
    for CrawlerRow {
        id,
        identity,
        name,
        counts,
        ..
    } in crawlers
    {
        let obeyed = counts.broke() == 0 && counts.uncounted() == 0 && counts.kept() > 0;
        match *identity {
            _ if !obeyed || claims_nothing(id) => {}
            KnownIdentity::Verified => verified.push(name.as_str()),
            KnownIdentity::Unverified => unverified.push(name.as_str()),
            KnownIdentity::Impostor => {}
        }
    }
    if !verified.is_empty() {
        out.push(format!("{} obeyed the rules (verified).", list(&verified)));
    }
    match unverified[..] {
        [] => {}
        [name] => {
            out.push(format!(
                "A client that claims to be {name} obeyed the rules; nothing is proven."
            ));
        }
        _ => out.push(format!(
            "Clients that claim to be {} obeyed the rules; nothing is proven.",
            list(&unverified)
        )),
    }
    out
}

/// Sentences about the crawlers that broke rules: all verified ones, then three others, then how
/// many more there are. If none did, it says so, unless requests that do not count leave it open.
fn broke(crawlers: &[CrawlerRow]) -> Vec<String> {
    let rows = crawlers.iter().filter(|row| row.counts.broke() > 0);
    let (verified, others): (Vec<_>, Vec<_>) =
        rows.partition(|row| row.identity == KnownIdentity::Verified);
    if verified.is_empty() && others.is_empty() {
        let is_certain = crawlers.iter().all(|row| row.counts.uncounted() == 0);
        return is_certain
            .then(|| "No crawler broke the rules.".to_owned())
            .into_iter()
            .collect();
    }
    let named = verified.iter().chain(others.iter().take(NAMED));
    let mut out: Vec<String> = named.map(|row| offence(row)).collect();
    if let more @ 1.. = others.len().saturating_sub(NAMED) {
        out.push(format!(
            "{more} more of which nothing is proven broke rules; the table has them."
        ));
    }
    if others
        .iter()
        .any(|row| row.identity == KnownIdentity::Unverified && !claims_nothing(&row.id))
    {
        out.push(
            "To see what is proven of an address: `crawlgate crawlers --verify ADDRESS --as NAME`."
                .to_owned(),
        );
    }
    out
}

/// The sentence about an offender.
fn offence(row: &CrawlerRow) -> String {
    let CrawlerRow {
        name,
        counts,
        broke,
        ..
    } = row;
    let since = broke.as_ref().map_or("", |(first, _)| first);
    let number = requests(counts.broke());
    match row.identity {
        _ if claims_nothing(&row.id) => {
            format!("{number} of {name} broke the rules, the first on {since}.")
        }
        KnownIdentity::Verified => {
            format!("{name} broke the rules (verified): {number}, the first on {since}.")
        }
        _ => format!(
            "{number} broke the rules, the first on {since}, of a client that claims to be {name}; nothing is proven."
        ),
    }
}

fn impostors(crawlers: &[CrawlerRow]) -> Vec<String> {
    let rows = crawlers
        .iter()
        .filter(|row| row.identity == KnownIdentity::Impostor);
    rows.take(NAMED)
        .map(|row| {
            let name = &row.name;
            let number = requests(row.counts.requests());
            format!("{number} came from impostors, proven not to be {name}: they do not count against {name}.")
        })
        .collect()
}

/// The sentence about requests that would be impostors' if reverse DNS said so, too. `None` if
/// there are none.
fn suspected(crawlers: &[CrawlerRow]) -> Option<String> {
    let rows: Vec<&CrawlerRow> = crawlers.iter().filter(|row| row.suspected > 0).collect();
    let number: u64 = rows.iter().map(|row| row.suspected).sum();
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    (number > 0).then(|| {
        format!(
            "{} under the name of {} came from outside of all lists of its operator and are suspected. Only reverse DNS \
             could prove impostors, and it is not asked: write `identity: {{ outgoing: yes }}` in crawlgate.yaml.",
            requests(number),
            list(&names)
        )
    })
}

/// The sentence about what was refused, and what enforcement would refuse: of crawlers, and of
/// impostors.
fn refused(by: &ByIdentity) -> String {
    let of_impostors = by.impostor.would_refuse();
    let refused = by.all().refused();
    let would = by.own().would_refuse();
    let of = match refused {
        0 => "crawlgate refused no request".to_owned(),
        refused => format!("crawlgate refused {}", requests(refused)),
    };
    match (would, of_impostors) {
        (0, 0) => format!("{of}."),
        (would, 0) => format!("{of}; enforcement would refuse {} more.", thousands(would)),
        (0, impostors) => format!(
            "{of}; enforcement would refuse {} of impostors.",
            thousands(impostors)
        ),
        (would, impostors) => format!(
            "{of}; enforcement would refuse {} more, and {} of impostors.",
            thousands(would),
            thousands(impostors)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::CrawlerRow;
    use super::{list, sentences};
    use crate::record::{ByIdentity, CountedAction, Counts};
    use crate::verdict::{Kind, KnownIdentity};

    #[test]
    fn proven_offenders_come_first_and_impostors_are_apart() {
        let given = [
            ("AhrefsBot", KnownIdentity::Unverified, 12),
            ("bingbot", KnownIdentity::Unverified, 8),
            ("MySpider", KnownIdentity::Unverified, 7),
            ("Amazonbot", KnownIdentity::Unverified, 7),
            ("GPTBot", KnownIdentity::Verified, 6),
            ("Googlebot", KnownIdentity::Impostor, 14),
        ];
        let mut by_identity = ByIdentity::default();
        let row = |(name, identity, requests): (&str, KnownIdentity, u64)| {
            let kind = match identity {
                KnownIdentity::Impostor => Kind::Impostor,
                KnownIdentity::Verified | KnownIdentity::Unverified => Kind::Violation,
            };
            let mut counts = Counts::default();
            counts.add(kind, CountedAction::WouldBlock, requests);
            by_identity.add(identity, &counts);
            CrawlerRow {
                id: name.into(),
                name: name.into(),
                identity,
                counts,
                ..CrawlerRow::default()
            }
        };
        let crawlers = given.map(row);
        let said = sentences(&by_identity, &crawlers);
        assert!(said[0].contains("40 requests"), "{said:?}");
        let place = |name: &str| {
            said.iter()
                .position(|sentence| sentence.contains(name))
                .expect("a sentence")
        };
        assert!(
            place("GPTBot") < place("AhrefsBot") && place("AhrefsBot") < place("bingbot"),
            "{said:?}"
        );
        assert!(
            said.iter()
                .any(|sentence| sentence.contains("40 more") && sentence.contains("14 of")),
            "{said:?}"
        );
    }

    #[test]
    fn crawler_whose_requests_do_not_count_neither_obeyed_nor_broke() {
        for kind in [Kind::Unproven, Kind::StaleCopy] {
            let row = |(name, kind, requests): (&str, Kind, u64)| {
                let mut counts = Counts::default();
                counts.add(Kind::Allowed, CountedAction::Pass, 1);
                counts.add(kind, CountedAction::WouldBlock, requests);
                CrawlerRow {
                    id: name.into(),
                    name: name.into(),
                    identity: KnownIdentity::Unverified,
                    counts,
                    ..CrawlerRow::default()
                }
            };
            let crawlers = [("Bytespider", kind, 21), ("bingbot", Kind::Allowed, 5)].map(row);
            let mut by_identity = ByIdentity::default();
            crawlers
                .iter()
                .for_each(|row| by_identity.add(row.identity, &row.counts));
            let said = sentences(&by_identity, &crawlers);
            let of = |name: &str| {
                said.iter()
                    .filter(|sentence| sentence.contains(name))
                    .count()
            };
            assert_eq!((of("Bytespider"), of("bingbot")), (0, 1), "{said:?}");
            assert_eq!((of("21 "), of("No crawler broke")), (1, 0), "{said:?}");
        }
    }

    #[test]
    fn lists_of_names_end_with_and() {
        assert_eq!(list(&["a"]), "a");
        assert_eq!(list(&["a", "b"]), "a and b");
        assert_eq!(list(&["a", "b", "c"]), "a, b and c");
        assert_eq!(list(&["a", "b", "c", "d"]), "a, b, c and 1 other");
        assert_eq!(list(&["a", "b", "c", "d", "e"]), "a, b, c and 2 others");
    }
}
