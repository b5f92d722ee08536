//! Signatures of a client of our own: in the forms that are in use, and wrong in each way; the
//! examples of the RFC and the drafts; and what another reader of such signatures says.

use super::keys::{PublicKey, read_keys, thumbprint};
use super::signature::verify;
use super::signed::{SignatureProblem, Signed, VerifiedSignature};
use crate::heads::SignatureFields;
use crate::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use web_bot_auth::WebBotAuthVerifier;
use web_bot_auth::components::{CoveredComponent, DerivedComponent, HTTPField};
use web_bot_auth::keyring::{Algorithm, KeyRing};
use web_bot_auth::message_signatures::SignedMessage;

const NOW: i64 = 1_800_000_000;
const ORIGIN: &str = "https://agent.example";

fn pair(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).expect("a key")
}

fn keys() -> Vec<PublicKey> {
    let x = URL_SAFE_NO_PAD.encode(pair(1).public_key());
    let set = format!("{{\"keys\": [{{\"kty\": \"OKP\", \"crv\": \"Ed25519\", \"x\": \"{x}\"}}]}}");
    read_keys(set.as_bytes()).expect("keys")
}

/// When a good signature expires, or why it is not good.
type Answer = Result<Timestamp, SignatureProblem>;

/// A request, as it is signed and as it arrives.
struct Client {
    label: &'static str,
    seed: u8,
    /// What is covered, with the values that are signed.
    covered: Vec<(String, String)>,
    agent: String,
    times: (i64, i64),
    more: &'static str,
    host: &'static str,
}

impl Client {
    fn new(agent: &str, component: &str, value: &str) -> Client {
        let covered = [("\"@authority\"", "shop.example"), (component, value)];
        Client {
            label: "sig1",
            seed: 1,
            covered: covered
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            agent: agent.to_owned(),
            times: (NOW - 10, NOW + 300),
            more: ";tag=\"web-bot-auth\"",
            host: "Shop.example:443",
        }
    }

    fn of_dictionary() -> Client {
        Client::new(
            "a=1, sig1=\"https://agent.example\"",
            "\"signature-agent\";key=\"sig1\"",
            "\"https://agent.example\"",
        )
    }

    /// Signature-Input and Signature.
    fn sign(&self) -> (String, String) {
        let pair = pair(self.seed);
        let names: Vec<&str> = self.covered.iter().map(|(name, _)| name.as_str()).collect();
        let params = format!(
            "({});created={};expires={};keyid=\"{}\"{}",
            names.join(" "),
            self.times.0,
            self.times.1,
            thumbprint(pair.public_key().as_ref()),
            self.more
        );
        let lines: String = self
            .covered
            .iter()
            .map(|(name, value)| format!("{name}: {value}\n"))
            .collect();
        let base = format!("{lines}\"@signature-params\": {params}");
        let octets = STANDARD.encode(pair.sign(base.as_bytes()));
        (
            format!("{}={params}", self.label),
            format!("{}=:{octets}:", self.label),
        )
    }

    fn ask(&self) -> Answer {
        ask(&[self], &self.agent)
    }
}

/// A request with several signatures.
fn ask(clients: &[&Client], agent: &str) -> Answer {
    let (inputs, signatures): (Vec<_>, Vec<_>) = clients.iter().map(|client| client.sign()).unzip();
    let fields = SignatureFields {
        input: &inputs.join(", "),
        signature: &signatures.join(", "),
        agent,
    };
    let host = clients[0].host.as_bytes();
    let signed = Signed {
        host,
        target: b"/a?b=c",
        method: b"GET",
        user_agent: b"Agent/1.0",
        fields,
    };
    answer(verify(&signed, ORIGIN, &keys(), Timestamp(NOW)))
}

fn answer(verified: Result<VerifiedSignature, SignatureProblem>) -> Answer {
    let VerifiedSignature { expires, signature } = verified?;
    assert_eq!((signature.octets.len(), signature.key.len()), (64, 32));
    Ok(expires)
}

const VERIFIED: Answer = Ok(Timestamp(NOW + 300));

#[test]
fn all_forms_of_signature_agent_are_verified() {
    assert_eq!(Client::of_dictionary().ask(), VERIFIED);
    let quoted = "\"https://agent.example/.well-known/http-message-signatures-directory\"";
    assert_eq!(
        Client::new(quoted, "\"signature-agent\"", quoted).ask(),
        VERIFIED
    );
    assert_eq!(
        Client::new(
            "https://agent.example/",
            "\"signature-agent\"",
            "https://agent.example/"
        )
        .ask(),
        VERIFIED
    );
}

#[test]
fn all_components_of_a_request_are_known() {
    let mut client = Client::of_dictionary();
    for (name, value) in [
        ("@method", "GET"),
        ("@path", "/a"),
        ("@query", "?b=c"),
        ("@target-uri", "https://shop.example/a?b=c"),
        ("@request-target", "/a?b=c"),
        ("@scheme", "https"),
        ("user-agent", "Agent/1.0"),
    ] {
        client
            .covered
            .push((format!("\"{name}\""), value.to_owned()));
    }
    assert_eq!(client.ask(), VERIFIED);
    client
        .covered
        .push(("\"content-digest\"".into(), "x".into()));
    assert_eq!(client.ask(), Err(SignatureProblem::UnknownComponent));
}

#[test]
fn a_signature_out_of_its_time_is_invalid() {
    for (times, problem) in [
        ((NOW - 600, NOW), SignatureProblem::Expired),
        ((NOW - 600, NOW - 1), SignatureProblem::Expired),
        ((NOW + 120, NOW + 600), SignatureProblem::NotYetValid),
        ((NOW + 30, NOW + 20), SignatureProblem::Expired),
        ((NOW - 2 * 86_400, NOW + 300), SignatureProblem::Expired),
    ] {
        let client = Client {
            times,
            ..Client::of_dictionary()
        };
        assert_eq!(client.ask(), Err(problem), "{times:?}");
    }
    let ahead = Client {
        times: (NOW + 30, NOW + 300),
        ..Client::of_dictionary()
    };
    assert_eq!(ahead.ask(), VERIFIED, "clocks differ");
}

#[test]
fn a_signature_of_something_else_is_invalid() {
    let elsewhere = Client {
        host: "other.example",
        ..Client::of_dictionary()
    };
    assert_eq!(elsewhere.ask(), Err(SignatureProblem::Mismatch));
    let mut without_host = Client::of_dictionary();
    without_host.covered.remove(0);
    assert_eq!(without_host.ask(), Err(SignatureProblem::HostNotCovered));
    let mut without_agent = Client::of_dictionary();
    without_agent.covered.pop();
    assert_eq!(without_agent.ask(), Err(SignatureProblem::AgentNotCovered));
    let mut twice = Client::of_dictionary();
    twice.covered.push(twice.covered[0].clone());
    assert_eq!(twice.ask(), Err(SignatureProblem::CoversTwice));
    let unreadable = Client {
        agent: "sig1=(".into(),
        ..Client::of_dictionary()
    };
    assert_eq!(unreadable.ask(), Err(SignatureProblem::NoAgentMember));
}

#[test]
fn signatures_of_others_prove_nothing() {
    let untagged = Client {
        more: "",
        ..Client::of_dictionary()
    };
    assert_eq!(untagged.ask(), Err(SignatureProblem::NoTag));
    let rsa = Client {
        more: ";alg=\"rsa-pss-sha512\";tag=\"web-bot-auth\"",
        ..Client::of_dictionary()
    };
    assert_eq!(rsa.ask(), Err(SignatureProblem::OtherAlgorithm));
    let unknown = Client {
        seed: 2,
        ..Client::of_dictionary()
    };
    assert_eq!(unknown.ask(), Err(SignatureProblem::UnknownKey));
    for agent in [
        "\"https://agent.example.evil.example\"",
        "\"http://agent.example\"",
        "\"https://evil.example\"",
    ] {
        let other = Client::new(agent, "\"signature-agent\"", agent);
        assert_eq!(other.ask(), Err(SignatureProblem::OtherAgent), "{agent}");
    }
    let long = format!("\"https://agent.example/{}\"", "a".repeat(9_000));
    let long = Client::new(&long, "\"signature-agent\"", &long);
    assert_eq!(long.ask(), Err(SignatureProblem::TooLong));
}

#[test]
fn members_with_parameters_are_ignored() {
    let client = Client::of_dictionary();
    for beside in [
        "x=\"https://agent.example\";v=1, ",
        "x=1, ",
        "x=(\"https://agent.example\"), ",
        "x, ",
    ] {
        assert_eq!(
            ask(
                &[&client],
                &format!("{beside}sig1=\"https://agent.example\"")
            ),
            VERIFIED,
            "{beside}"
        );
    }
    let value = "\"https://agent.example\";v=1";
    let client = Client::new(
        &format!("sig1={value}"),
        "\"signature-agent\";key=\"sig1\"",
        value,
    );
    assert_eq!(client.ask(), Err(SignatureProblem::NoAgentMember));
    let other = format!("sig1={value}, a=\"https://agent.example\"");
    let client = Client::new(
        &other,
        "\"signature-agent\";key=\"a\"",
        "\"https://agent.example\"",
    );
    assert_eq!(
        client.ask(),
        VERIFIED,
        "the member under its label is ignored, too"
    );
}

#[test]
fn the_member_under_the_signatures_label_is_its_agent() {
    let of = |agent: &str, others: &[(&str, &str)]| {
        let mut client = Client::of_dictionary();
        client.covered.pop();
        let covered = |(key, url): &(&str, &str)| {
            (
                format!("\"signature-agent\";key=\"{key}\""),
                format!("\"{url}\""),
            )
        };
        client.covered.extend(others.iter().map(covered));
        ask(&[&client], agent)
    };
    let ours = "https://agent.example";
    let evil = "https://evil.example";
    let both = format!("sig1=\"{evil}\", a=\"{ours}\"");
    let not_covered = Err(SignatureProblem::AgentNotCovered);
    assert_eq!(of(&both, &[("a", ours)]), not_covered);
    assert_eq!(
        of(&both, &[("a", ours), ("sig1", evil)]),
        Err(SignatureProblem::OtherAgent)
    );
    let both = format!("sig1=\"{ours}\", a=\"{evil}\"");
    assert_eq!(
        of(&both, &[("a", evil), ("sig1", ours)]),
        VERIFIED,
        "others may be covered, too"
    );
    let relabelled = format!("a=\"{ours}\", b=\"{ours}\"");
    assert_eq!(of(&relabelled, &[("a", ours)]), VERIFIED);
    assert_eq!(of(&relabelled, &[("a", ours), ("b", ours)]), not_covered);
    assert_eq!(of(&both, &[]), not_covered);
    let whole = Client::new(&both, "\"signature-agent\"", &both);
    assert_eq!(whole.ask(), Err(SignatureProblem::CoversWholeAgent));
}

#[test]
fn each_signature_with_the_tag_is_tried() {
    let good = Client::of_dictionary();
    let labelled = |label: &'static str, seed: u8, host: &str, url: &str| {
        let mut client = Client {
            label,
            seed,
            ..Client::of_dictionary()
        };
        client.covered[0].1 = host.to_owned();
        client.covered[1] = (
            format!("\"signature-agent\";key=\"{label}\""),
            format!("\"{url}\""),
        );
        client
    };
    let agents = "sig1=\"https://agent.example\", a=\"https://agent.example\", b=\"https://agent.example\", \
                  c=\"https://agent.example\", x=\"https://evil.example\"";
    let other_agent = labelled("x", 3, "shop.example", "https://evil.example");
    let wrong = ["a", "b", "c"].map(|label| labelled(label, 1, "wrong.example", ORIGIN));
    let unknown = ["a", "b", "c"].map(|label| labelled(label, 2, "shop.example", ORIGIN));
    let untagged = Client {
        label: "a",
        more: "",
        ..labelled("a", 1, "shop.example", ORIGIN)
    };
    assert_eq!(ask(&[&other_agent, &good], agents), VERIFIED);
    assert_eq!(ask(&[&untagged, &good], agents), VERIFIED);
    assert_eq!(ask(&[&wrong[0], &good], agents), VERIFIED);
    assert_eq!(
        ask(&[&unknown[0], &unknown[1], &unknown[2], &good], agents),
        VERIFIED
    );
    // No more than two by keys that are known.
    assert_eq!(
        ask(&[&wrong[0], &wrong[1], &good], agents),
        Err(SignatureProblem::Mismatch)
    );
    for beside in [&other_agent, &wrong[1]] {
        assert_eq!(
            ask(&[beside, &unknown[0]], agents),
            Err(SignatureProblem::UnknownKey),
            "its key is to be fetched"
        );
        assert_eq!(
            ask(&[&unknown[0], beside], agents),
            Err(SignatureProblem::UnknownKey)
        );
    }
}

#[test]
fn a_signature_may_cover_another_one() {
    let mut inner = Client::of_dictionary();
    inner.label = "a";
    inner.covered[1] = (
        "\"signature-agent\";key=\"a\"".into(),
        "\"https://evil.example\"".into(),
    );
    inner.seed = 3;
    let (input, signature) = inner.sign();
    let mut outer = Client::of_dictionary();
    for (name, value) in [("signature-input", input), ("signature", signature)] {
        outer.covered.push((
            format!("\"{name}\";key=\"a\""),
            value.trim_start_matches("a=").to_owned(),
        ));
    }
    let agents = "a=\"https://evil.example\", sig1=\"https://agent.example\"";
    assert_eq!(ask(&[&inner, &outer], agents), VERIFIED);
    outer.covered[3].1 = ":AAAA:".into();
    assert_eq!(
        ask(&[&inner, &outer], agents),
        Err(SignatureProblem::Mismatch)
    );
}

/// A request as the other reader asks for its parts.
struct Arrived<'a> {
    client: &'a Client,
    input: String,
    signature: String,
}

impl SignedMessage for Arrived<'_> {
    fn lookup_component(&self, name: &CoveredComponent) -> Vec<String> {
        let of = |name: &str| {
            let found = self
                .client
                .covered
                .iter()
                .find(|(covered, _)| covered.starts_with(&format!("\"{name}\"")));
            found.map(|(_, value)| value.clone()).into_iter().collect()
        };
        match name {
            CoveredComponent::HTTP(HTTPField { name, parameters }) => match name.as_str() {
                "signature" => vec![self.signature.clone()],
                "signature-input" => vec![self.input.clone()],
                "signature-agent" if parameters.0.is_empty() => vec![self.client.agent.clone()],
                name => of(name),
            },
            CoveredComponent::Derived(DerivedComponent::Authority { .. }) => {
                vec![
                    self.client
                        .host
                        .to_ascii_lowercase()
                        .trim_end_matches(":443")
                        .to_owned(),
                ]
            }
            CoveredComponent::Derived(DerivedComponent::Method { .. }) => of("@method"),
            CoveredComponent::Derived(DerivedComponent::Path { .. }) => of("@path"),
            CoveredComponent::Derived(DerivedComponent::Query { .. }) => of("@query"),
            CoveredComponent::Derived(DerivedComponent::TargetUri { .. }) => of("@target-uri"),
            CoveredComponent::Derived(DerivedComponent::RequestTarget { .. }) => {
                of("@request-target")
            }
            CoveredComponent::Derived(DerivedComponent::Scheme { .. }) => of("@scheme"),
            CoveredComponent::Derived(_) => Vec::new(),
        }
    }
}

/// Whether the other reader verifies the request.
fn is_verified_elsewhere(client: &Client) -> bool {
    let (input, signature) = client.sign();
    let arrived = Arrived {
        client,
        input,
        signature,
    };
    let mut ring = KeyRing::default();
    for key in keys() {
        ring.import_raw(key.names[0].clone(), Algorithm::Ed25519, key.octets);
    }
    WebBotAuthVerifier::parse(&arrived)
        .and_then(|verifier| verifier.verify(&ring, None))
        .is_ok()
}

#[test]
fn another_reader_agrees_but_on_time_and_algorithm() {
    let quoted = "\"https://agent.example/.well-known/http-message-signatures-directory\"";
    let mut all = Client::of_dictionary();
    for (name, value) in [
        ("@method", "GET"),
        ("@path", "/a"),
        ("@query", "?b=c"),
        ("@target-uri", "https://shop.example/a?b=c"),
        ("@request-target", "/a?b=c"),
        ("user-agent", "Agent/1.0"),
    ] {
        all.covered.push((format!("\"{name}\""), value.to_owned()));
    }
    let mut without_host = Client::of_dictionary();
    without_host.covered.remove(0);
    let mut without_agent = Client::of_dictionary();
    without_agent.covered.pop();
    for (client, is_verified) in [
        (Client::of_dictionary(), true),
        (Client::new(quoted, "\"signature-agent\"", quoted), true),
        (all, true),
        (
            Client {
                seed: 2,
                ..Client::of_dictionary()
            },
            false,
        ),
        (
            Client {
                host: "other.example",
                ..Client::of_dictionary()
            },
            false,
        ),
        (
            Client {
                more: "",
                ..Client::of_dictionary()
            },
            false,
        ),
        (without_host, false),
        (without_agent, false),
    ] {
        let says = (client.ask() == VERIFIED, is_verified_elsewhere(&client));
        assert_eq!(says, (is_verified, is_verified), "{:?}", client.sign());
    }
    // It leaves both to its caller.
    let expired = Client {
        times: (NOW - 600, NOW - 300),
        ..Client::of_dictionary()
    };
    assert_eq!(expired.ask(), Err(SignatureProblem::Expired));
    assert!(is_verified_elsewhere(&expired));
    let other = Client {
        more: ";alg=\"rsa-pss-sha512\";tag=\"web-bot-auth\"",
        ..Client::of_dictionary()
    };
    assert_eq!(other.ask(), Err(SignatureProblem::OtherAlgorithm));
    assert!(is_verified_elsewhere(&other));
}

/// The key of RFC 9421 appendix B.1.4, which the examples are signed with. No directory may have
/// it.
fn key_of_the_examples() -> PublicKey {
    let octets = URL_SAFE_NO_PAD
        .decode("JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs")
        .expect("a key");
    let names = vec![
        "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U".to_owned(),
        "test-key-ed25519".to_owned(),
    ];
    PublicKey {
        octets,
        names,
        not_before: None,
        expires: None,
    }
}

/// An example, ten seconds after it was signed.
fn example(input: &str, signature: &str, agent: &str, created: i64) -> Answer {
    let fields = SignatureFields {
        input,
        signature,
        agent,
    };
    let signed = Signed {
        host: b"example.com",
        target: b"/",
        method: b"GET",
        user_agent: b"",
        fields,
    };
    let keys = [key_of_the_examples()];
    answer(verify(
        &signed,
        "https://signature-agent.test",
        &keys,
        Timestamp(created + 10),
    ))
}

#[test]
fn examples_of_the_drafts_are_verified_in_both_forms() {
    // draft-ietf-webbotauth-httpsig-protocol-00 appendix E.2.1: a member of a dictionary.
    let created = 1_735_689_600;
    let input = "sig2=(\"@authority\" \"signature-agent\";key=\"agent2\");created=1735689600;\
                 keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";alg=\"ed25519\";expires=4889289600;\
                 nonce=\"n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==\";\
                 tag=\"web-bot-auth\"";
    let signature = "sig2=:RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==:";
    let dictionary = "agent2=\"https://signature-agent.test\"";
    let verified = |expires| Ok(Timestamp(expires));
    assert_eq!(
        example(input, signature, dictionary, created),
        verified(4_889_289_600)
    );
    assert_eq!(
        example(input, signature, dictionary, created + 90_000),
        Err(SignatureProblem::Expired),
        "a day later"
    );
    let other = "agent2=\"https://signature-agent.test/\"";
    assert_eq!(
        example(input, signature, other, created),
        Err(SignatureProblem::Mismatch),
        "another value"
    );
    // draft-meunier-web-bot-auth-architecture-03 appendix A.2.2: a text in quotes.
    let input = "sig1=(\"@authority\" \"signature-agent\");created=1735689600;\
                 keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";alg=\"ed25519\";expires=1735693200;\
                 nonce=\"e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==\";\
                 tag=\"web-bot-auth\"";
    let signature = "sig1=:jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==:";
    let quoted = "\"https://signature-agent.test\"";
    assert_eq!(
        example(input, signature, quoted, created),
        verified(1_735_693_200)
    );
    assert_eq!(
        example(input, signature, quoted, created + 3_590),
        Err(SignatureProblem::Expired)
    );
    // Appendix A.2.1: no Signature-Agent, so nothing says whose key it is.
    let input = "sig1=(\"@authority\");created=1735689600;keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";\
                 alg=\"ed25519\";expires=1735693200;\
                 nonce=\"gubxywVx7hzbYKatLgzuKDllDAIXAkz41PydU7aOY7vT+Mb3GJNxW0qD4zJ+IOQ1NVtg+BNbTCRUMt1Ojr5BgA==\";\
                 tag=\"web-bot-auth\"";
    let signature = "sig1=:uz2SAv+VIemw+Oo890bhYh6Xf5qZdLUgv6/PbiQfCFXcX/vt1A8Pf7OcgL2yUDUYXFtffNpkEr5W6dldqFrkDg==:";
    assert_eq!(
        example(input, signature, "", created),
        Err(SignatureProblem::AgentNotCovered)
    );
}

#[test]
fn signatures_for_other_uses_prove_nothing() {
    // RFC 9421 appendix B.2.6: Ed25519 without a tag. B.2.2: another algorithm, other components.
    for (input, signature) in [
        (
            "sig-b26=(\"date\" \"@method\" \"@path\" \"@authority\" \"content-type\" \"content-length\")\
             ;created=1618884473;keyid=\"test-key-ed25519\"",
            "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:",
        ),
        (
            "sig-b22=(\"@authority\" \"content-digest\" \"@query-param\";name=\"Pet\");created=1618884473;\
             keyid=\"test-key-rsa-pss\";tag=\"header-example\"",
            "sig-b22=:AAAA:",
        ),
    ] {
        let says = example(
            input,
            signature,
            "\"https://signature-agent.test\"",
            1_618_884_473,
        );
        assert_eq!(says, Err(SignatureProblem::NoTag), "{input}");
    }
}
