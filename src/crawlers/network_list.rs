//! [`parse_network_list`] parses a list of IP networks that an operator publishes for a crawler.
//! Operators use several formats: JSON with `prefixes`, any other JSON, plain lines, geofeeds (RFC
//! 8805), or web pages that show JSON.

use super::network::parse_network;
use NetworkListError::*;
use ipnet::IpNet;
use serde_json::Value;

/// The longest list that is parsed.
pub const MAX_LIST_BYTES: usize = 4 * 1024 * 1024;
/// The most networks of one list.
const MAX_NETWORKS: usize = 100_000;
/// The shortest prefixes of IPv4 and IPv6 that are accepted. A wider network would verify everybody.
const MIN_PREFIX_BITS: (u8, u8) = (8, 19);
/// The most characters of the text that an error quotes.
const MAX_QUOTED_CHARS: usize = 60;
/// The keys of the usual JSON format. Their values must be networks.
const PREFIX_KEYS: [&str; 2] = ["ipv4Prefix", "ipv6Prefix"];

/// The reason why a list of networks was rejected.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkListError {
    /// It is longer than any list.
    #[error("it is longer than {MAX_LIST_BYTES} bytes")]
    TooLong,
    /// It is not text in UTF-8.
    #[error("it is not text")]
    NotText,
    /// It begins like JSON, and is not.
    #[error("it is not JSON: {0}")]
    NotJson(String),
    /// Something else stands where a network should.
    #[error("\"{0}\" is not a network")]
    NotANetwork(String),
    /// A network is so wide that it proves nothing.
    #[error("the network {0} is too large")]
    TooWide(IpNet),
    /// There are more networks than any operator has.
    #[error("it has more than {MAX_NETWORKS} networks")]
    TooMany,
    /// There is no network in it.
    #[error("it has no networks")]
    Empty,
}

/// Parses a list of networks.
///
/// # Errors
/// The text is not a list of networks. A list that is partly wrong is rejected as a whole.
pub fn parse_network_list(bytes: &[u8]) -> Result<Vec<IpNet>, NetworkListError> {
    if bytes.len() > MAX_LIST_BYTES {
        return Err(TooLong);
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|_| NotText)?
        .trim_start_matches('\u{feff}')
        .trim();
    let mut networks = Vec::new();
    if text.starts_with(['{', '[']) {
        let value = serde_json::from_str(text).map_err(|error| NotJson(error.to_string()))?;
        collect_from_json(&value, &mut networks)?;
    } else if text.starts_with('<') {
        collect_from_html(text, &mut networks)?;
    } else {
        for line in text.lines() {
            // A geofeed has a location behind the network.
            let line = line.split(['#', ',']).next().unwrap_or_default().trim();
            if !line.is_empty() {
                push_network(line, &mut networks)?;
            }
        }
    }
    if networks.is_empty() {
        Err(Empty)
    } else {
        Ok(networks)
    }
}

/// Adds every string of a JSON value that is a network, at any depth. The values of `PREFIX_KEYS`
/// must be networks. `serde_json` bounds the depth.
fn collect_from_json(value: &Value, networks: &mut Vec<IpNet>) -> Result<(), NetworkListError> {
    match value {
        Value::String(text) if parse_network(text).is_some() => push_network(text, networks),
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| collect_from_json(item, networks)),
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| match value {
            Value::String(text) if PREFIX_KEYS.contains(&key.as_str()) => {
                push_network(text, networks)
            }
            _ => collect_from_json(value, networks),
        }),
        _ => Ok(()),
    }
}

/// Adds the values of `PREFIX_KEYS` in the JSON that a web page shows.
///
/// # Errors
/// A value is no network, or the page has none of these keys with a value.
fn collect_from_html(page: &str, networks: &mut Vec<IpNet>) -> Result<(), NetworkListError> {
    let page = page
        .replace("&quot;", "\"")
        .replace("&#34;", "\"")
        .replace("\\\"", "\"");
    for key in PREFIX_KEYS {
        for (at, _) in page.match_indices(key) {
            let value = page[at + key.len()..]
                .strip_prefix('"')
                .and_then(|rest| rest.trim_start().strip_prefix(':'));
            if let Some(value) = value.and_then(|rest| rest.trim_start().strip_prefix('"')) {
                push_network(value.split('"').next().unwrap_or_default(), networks)?;
            }
        }
    }
    if networks.is_empty() {
        let first = page.lines().next().unwrap_or_default();
        return Err(not_a_network(first));
    }
    Ok(())
}

fn not_a_network(text: &str) -> NetworkListError {
    NotANetwork(text.chars().take(MAX_QUOTED_CHARS).collect())
}

/// Parses a network and adds it.
///
/// # Errors
/// It is not a network, is too wide, or exceeds the maximum number.
fn push_network(written: &str, networks: &mut Vec<IpNet>) -> Result<(), NetworkListError> {
    let network = parse_network(written).ok_or_else(|| not_a_network(written))?;
    let widest = if network.addr().is_ipv4() {
        MIN_PREFIX_BITS.0
    } else {
        MIN_PREFIX_BITS.1
    };
    if network.prefix_len() < widest {
        return Err(TooWide(network));
    }
    if networks.len() == MAX_NETWORKS {
        return Err(TooMany);
    }
    networks.push(network);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{MAX_LIST_BYTES, NetworkListError, parse_network_list};

    fn parse_list(text: &str) -> Result<Vec<String>, NetworkListError> {
        parse_network_list(text.as_bytes())
            .map(|networks| networks.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn published_list_formats_are_parsed() {
        let common = "\n{\"creationTime\":\"2026-09-22T00:00:00\",\"prefixes\":[{\"ipv4Prefix\":\"192.0.2.0/24\"},\
                      {\"ipv6Prefix\":\"2001:db8::/32\"}]}";
        assert_eq!(
            parse_list(common).unwrap(),
            ["192.0.2.0/24", "2001:db8::/32"]
        );
        assert_eq!(
            parse_list(r#"["192.0.2.7", "198.51.100.0/24"]"#).unwrap(),
            ["192.0.2.7/32", "198.51.100.0/24"]
        );
        assert_eq!(
            parse_list(r#"{"ips": {"eu": [{"ip": "192.0.2.7", "name": "a"}]}, "n": 3}"#).unwrap(),
            ["192.0.2.7/32"]
        );
        let feed =
            "# prefix,country,region,city,\n192.0.2.0/24,US,US-CA,Menlo Park,\n2001:db8::/32,,,,\n";
        assert_eq!(parse_list(feed).unwrap(), ["192.0.2.0/24", "2001:db8::/32"]);
        for quote in ["\"", "&quot;", "&#34;", "\\\""] {
            let page = "<!doctype html>\n<p>Amazonbot comes from <pre>{'prefixes': [{'ipv4Prefix': '192.0.2.7'}, {'ipv6Prefix' \
                        :'2001:db8::/32'}]}</pre> (see ipv4Prefix)";
            assert_eq!(
                parse_list(&page.replace('\'', quote)).unwrap(),
                ["192.0.2.7/32", "2001:db8::/32"],
                "{quote}"
            );
        }
        let lines =
            "\u{feff}# monitors\r\n192.0.2.7\r\n\r\n2001:db8::1 # one\n::ffff:198.51.100.0/120\n";
        assert_eq!(
            parse_list(lines).unwrap(),
            ["192.0.2.7/32", "2001:db8::1/128", "198.51.100.0/24"]
        );
    }

    #[test]
    fn partly_wrong_list_is_rejected() {
        let wrong = |text: &str| parse_list(text).expect_err(text);
        assert_eq!(wrong(""), NetworkListError::Empty);
        assert_eq!(wrong("{\"prefixes\": []}"), NetworkListError::Empty);
        assert!(matches!(
            wrong("{\"prefixes\": [{\"ipv4Prefix\": \"192.0.2.0/24\""),
            NetworkListError::NotJson(_)
        ));
        assert!(matches!(
            wrong("{\"prefixes\": [{\"ipv4Prefix\": \"192.0.2\"}]}"),
            NetworkListError::NotANetwork(_)
        ));
        assert!(matches!(
            wrong("<!doctype html>\n192.0.2.1"),
            NetworkListError::NotANetwork(_)
        ));
        assert!(matches!(
            wrong("<p>\"ipv4Prefix\": \"192.0.2\"</p>"),
            NetworkListError::NotANetwork(_)
        ));
        assert!(matches!(
            wrong("192.0.2.1\n0.0.0.0/0"),
            NetworkListError::TooWide(_)
        ));
        assert!(matches!(
            wrong("[\"2000::/3\"]"),
            NetworkListError::TooWide(_)
        ));
        assert!(matches!(
            wrong(&"[".repeat(100_000)),
            NetworkListError::NotJson(_)
        ));
        assert_eq!(
            wrong(&" ".repeat(MAX_LIST_BYTES + 1)),
            NetworkListError::TooLong
        );
        assert_eq!(
            parse_network_list(b"\xff\xfe"),
            Err(NetworkListError::NotText)
        );
    }
}
