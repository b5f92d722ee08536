//! [`ForwardingFields`]: the fields of a request by which a proxy speaks for its client. Only those
//! of a trusted proxy are believed.

use std::ops::BitOrAssign;

/// Fields with the address of a client: the standard one (RFC 7239), those that proxies made usual,
/// and those of CDNs, by the operators' own pages. Behind them stands what else a proxy says of the
/// request that it got.
const NAMES: [&str; 39] = [
    "x-forwarded-for",
    "forwarded",
    "forwarded-for",
    "x-forwarded",
    "ali-cdn-real-ip",
    "x-real-ip",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-pseudo-ipv4",
    "true-client-ip",
    "fastly-client-ip",
    "cloudfront-viewer-address",
    "fly-client-ip",
    "do-connecting-ip",
    "cdn-src-ip",
    "client-ip",
    "incap-client-ip",
    "proxy-client-ip",
    "wl-proxy-client-ip",
    "x-appengine-user-ip",
    "x-azure-clientip",
    "x-azure-socketip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
    "x-nf-client-connection-ip",
    "x-original-forwarded-for",
    "x-remote-ip",
    "x-sucuri-clientip",
    "x-vercel-forwarded-for",
    "x-original-url",
    "x-original-host",
    "x-rewrite-url",
    "x-scheme",
    "front-end-https",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-port",
    "via",
];
/// The beginning of more such fields. They count as one.
const PREFIX: &str = "x-forwarded-";

/// The first 30 have the address of a client.
const ADDRESS_BITS: u64 = (1 << 30) - 1;
const PREFIX_BIT: u64 = 1 << NAMES.len();
/// Proxies add to this field and never replace it (RFC 9110 section 7.6.3).
const VIA_BIT: u64 = PREFIX_BIT >> 1;

/// The names that begin with each letter, and those of each length: a bit each. A field is compared
/// with few of them.
const BY_LETTER: [u64; 26] = {
    let mut names = [0; 26];
    let mut place = 0;
    while place < NAMES.len() {
        names[(NAMES[place].as_bytes()[0] - b'a') as usize] |= 1 << place;
        place += 1;
    }
    names
};
const BY_LENGTH: [u64; 32] = {
    let mut names = [0; 32];
    let mut place = 0;
    while place < NAMES.len() {
        names[NAMES[place].len()] |= 1 << place;
        place += 1;
    }
    names
};

/// A set of forwarding fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardingFields(u64);

impl ForwardingFields {
    /// The set of the field with this name, in upper or lower case. All names that begin with
    /// `x-forwarded-` and are not known count as one field; the set is empty for any other name.
    pub fn named(name: &str) -> ForwardingFields {
        let letter = name.as_bytes().first().map_or(0, u8::to_ascii_lowercase);
        let by_letter = BY_LETTER
            .get(usize::from(letter.wrapping_sub(b'a')))
            .copied()
            .unwrap_or_default();
        let mut alike = by_letter & BY_LENGTH.get(name.len()).copied().unwrap_or_default();
        while alike != 0 {
            let place = alike.trailing_zeros();
            if name.eq_ignore_ascii_case(NAMES[place as usize]) {
                return ForwardingFields(1 << place);
            }
            alike &= alike - 1;
        }
        let begins = name.as_bytes().get(..PREFIX.len());
        let begins = letter == b'x'
            && begins.is_some_and(|begins| begins.eq_ignore_ascii_case(PREFIX.as_bytes()));
        ForwardingFields(if begins { PREFIX_BIT } else { 0 })
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those that no origin gets from a client that is no trusted proxy: all but Via.
    pub fn dropped(self) -> ForwardingFields {
        ForwardingFields(self.0 & !VIA_BIT)
    }

    /// Those of these fields that have the address of a client, without the one with this name.
    pub fn other_addresses(self, name: &str) -> ForwardingFields {
        ForwardingFields(self.0 & ADDRESS_BITS & !ForwardingFields::named(name).0)
    }

    /// Their names; `x-forwarded-...` for those that count as one.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let all = NAMES.into_iter().chain(["x-forwarded-..."]);
        all.enumerate()
            .filter(move |(place, _)| self.0 >> place & 1 == 1)
            .map(|(_, name)| name)
    }
}

impl BitOrAssign for ForwardingFields {
    fn bitor_assign(&mut self, other: ForwardingFields) {
        self.0 |= other.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarding_fields_are_known_in_any_case() {
        for (place, name) in NAMES.into_iter().enumerate() {
            let found = ForwardingFields::named(&name.to_ascii_uppercase());
            assert_eq!(found, ForwardingFields(1 << place), "{name}");
            assert_eq!(found.names().collect::<Vec<_>>(), [name]);
        }
        for name in [
            "X-Forwarded-Ssl",
            "x-forwarded-",
            &format!("x-forwarded-{}", "a".repeat(60)),
        ] {
            assert_eq!(
                ForwardingFields::named(name),
                ForwardingFields(PREFIX_BIT),
                "{name}"
            );
        }
        for name in [
            "",
            "host",
            "cookie",
            "cache-control",
            "x-forwarder",
            "x-requested-with",
            "vi\u{e1}",
        ] {
            assert!(ForwardingFields::named(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn via_is_a_sign_of_a_proxy_and_is_passed_on() {
        let mut fields = ForwardingFields::named("Via");
        assert!(!fields.is_empty() && fields.dropped().is_empty());
        for name in ["X-Forwarded-For", "Forwarded", "X-Rewrite-URL"] {
            fields |= ForwardingFields::named(name);
        }
        assert_eq!(
            fields.dropped().names().collect::<Vec<_>>(),
            ["x-forwarded-for", "forwarded", "x-rewrite-url"]
        );
        assert_eq!(
            fields
                .other_addresses("x-forwarded-for")
                .names()
                .collect::<Vec<_>>(),
            ["forwarded"]
        );
        assert_eq!(
            (NAMES[29], NAMES[30]),
            ("x-vercel-forwarded-for", "x-original-url")
        );
    }
}
