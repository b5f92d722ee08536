//! [`ForwardingFieldSet`] says which header fields about the client a request has, such as
//! X-Forwarded-For. Proxies add such fields to describe their client, but a client can send them,
//! too. So crawlgate believes them only if a trusted proxy sent them.

use std::ops::BitOrAssign;

/// The first 30 have the address of a client: the standard field (RFC 7239), those of common
/// proxies, and those of CDNs by the operators' documentation. The others describe the request that
/// a proxy got.
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
/// Other fields with this prefix count as one field.
const PREFIX: &str = "x-forwarded-";

const ADDRESS_BITS: u64 = (1 << 30) - 1;
const PREFIX_BIT: u64 = 1 << NAMES.len();
/// Proxies add to this field and never replace it (RFC 9110 section 7.6.3).
const VIA_BIT: u64 = PREFIX_BIT >> 1;

/// For each length, the bits of the names that have it: so a field is compared with few names.
const BY_LENGTH: [u64; 32] = {
    let mut names = [0; 32];
    let mut index = 0;
    while index < NAMES.len() {
        names[NAMES[index].len()] |= 1 << index;
        index += 1;
    }
    names
};

/// A set of forwarding fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardingFieldSet(u64);

impl ForwardingFieldSet {
    /// The set of the field with this name, in any case; empty if it is not a forwarding field.
    pub fn from_name(name: &str) -> ForwardingFieldSet {
        let mut alike = BY_LENGTH.get(name.len()).copied().unwrap_or_default();
        while alike != 0 {
            let index = alike.trailing_zeros();
            if name.eq_ignore_ascii_case(NAMES[index as usize]) {
                return ForwardingFieldSet(1 << index);
            }
            alike &= alike - 1;
        }
        let prefix = name.as_bytes().get(..PREFIX.len());
        let has_prefix =
            prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX.as_bytes()));
        ForwardingFieldSet(if has_prefix { PREFIX_BIT } else { 0 })
    }

    /// Whether the set has no field.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The fields that are dropped if the client is not a trusted proxy: all but Via.
    pub fn without_via(self) -> ForwardingFieldSet {
        ForwardingFieldSet(self.0 & !VIA_BIT)
    }

    /// The fields with the address of a client, without the field with this name.
    pub fn other_address_fields(self, name: &str) -> ForwardingFieldSet {
        ForwardingFieldSet(self.0 & ADDRESS_BITS & !ForwardingFieldSet::from_name(name).0)
    }

    /// The names of the fields; `x-forwarded-...` for those that count as one.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let all = NAMES.into_iter().chain(["x-forwarded-..."]);
        all.enumerate()
            .filter(move |(index, _)| self.0 >> index & 1 == 1)
            .map(|(_, name)| name)
    }
}

impl BitOrAssign for ForwardingFieldSet {
    fn bitor_assign(&mut self, other: ForwardingFieldSet) {
        self.0 |= other.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarding_fields_match_in_any_case() {
        for (index, name) in NAMES.into_iter().enumerate() {
            let found = ForwardingFieldSet::from_name(&name.to_ascii_uppercase());
            assert_eq!(found, ForwardingFieldSet(1 << index), "{name}");
            assert_eq!(found.names().collect::<Vec<_>>(), [name]);
        }
        for name in [
            "X-Forwarded-Ssl",
            "x-forwarded-",
            &format!("x-forwarded-{}", "a".repeat(60)),
        ] {
            assert_eq!(
                ForwardingFieldSet::from_name(name),
                ForwardingFieldSet(PREFIX_BIT),
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
            assert!(ForwardingFieldSet::from_name(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn via_is_a_forwarding_field_and_is_not_dropped() {
        let mut fields = ForwardingFieldSet::from_name("Via");
        assert!(!fields.is_empty() && fields.without_via().is_empty());
        for name in ["X-Forwarded-For", "Forwarded", "X-Rewrite-URL"] {
            fields |= ForwardingFieldSet::from_name(name);
        }
        assert_eq!(
            fields.without_via().names().collect::<Vec<_>>(),
            ["x-forwarded-for", "forwarded", "x-rewrite-url"]
        );
        assert_eq!(
            fields
                .other_address_fields("x-forwarded-for")
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
