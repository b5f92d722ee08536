//! Tests of verifying signatures of requests (Web Bot Auth). They verify signatures in all forms in
//! use, signatures with each mistake, and the examples of the RFC and the drafts. The results are
//! compared with another implementation.

use super::keys::{PublicKey, read_keys, thumbprint};
use super::signature::verify_signature;
use super::signed::{SignatureProblem, SignedRequest, VerifiedSignature};
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

fn key_pair(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).expect("a key")
}

fn agent_keys() -> Vec<PublicKey> {
    let x = URL_SAFE_NO_PAD.encode(key_pair(1).public_key());
    let set = format!("{{\"keys\": [{{\"kty\": \"OKP\", \"crv\": \"Ed25519\", \"x\": \"{x}\"}}]}}");
    read_keys(set.as_bytes()).expect("keys")
}

/// When a good signature expires, or why it is not good.
type SignatureResult = Result<Timestamp, SignatureProblem>;

/// A signed request.
struct TestClient {
    label: &'static str,
    seed: u8,
    /// The covered components with the signed values.
    covered: Vec<(String, String)>,
    agent: String,
    times: (i64, i64),
    more: &'static str,
    host: &'static str,
}

impl TestClient {
    fn new(agent: &str, component: &str, value: &str) -> TestClient {
        let covered = [("\"@authority\"", "shop.example"), (component, value)];
        TestClient {
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

    fn with_dictionary() -> TestClient {
        TestClient::new(
            "a=1, sig1=\"https://agent.example\"",
            "\"signature-agent\";key=\"sig1\"",
            "\"https://agent.example\"",
        )
    }

    /// The values of Signature-Input and Signature.
    fn sign(&self) -> (String, String) {
        let pair = key_pair(self.seed);
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
        let bytes = STANDARD.encode(pair.sign(base.as_bytes()));
        (
            format!("{}={params}", self.label),
            format!("{}=:{bytes}:", self.label),
        )
    }

    fn verify(&self) -> SignatureResult {
        verify_request(&[self], &self.agent)
    }
}

/// A request with several signatures.
fn verify_request(clients: &[&TestClient], agent: &str) -> SignatureResult {
    let (inputs, signatures): (Vec<_>, Vec<_>) = clients.iter().map(|client| client.sign()).unzip();
    let fields = SignatureFields {
        input: &inputs.join(", "),
        signature: &signatures.join(", "),
        agent,
    };
    let host = clients[0].host.as_bytes();
    let signed = SignedRequest {
        host,
        target: b"/a?b=c",
        method: b"GET",
        user_agent: b"Agent/1.0",
        fields,
    };
    expiry(verify_signature(
        &signed,
        ORIGIN,
        &agent_keys(),
        Timestamp(NOW),
    ))
}

fn expiry(verified: Result<VerifiedSignature, SignatureProblem>) -> SignatureResult {
    let VerifiedSignature { expires, signature } = verified?;
    assert_eq!((signature.bytes.len(), signature.key.len()), (64, 32));
    Ok(expires)
}

const VERIFIED: SignatureResult = Ok(Timestamp(NOW + 300));

#[test]
fn all_forms_of_signature_agent_are_verified() {
    assert_eq!(TestClient::with_dictionary().verify(), VERIFIED);
    let quoted = "\"https://agent.example/.well-known/http-message-signatures-directory\"";
    assert_eq!(
        TestClient::new(quoted, "\"signature-agent\"", quoted).verify(),
        VERIFIED
    );
    assert_eq!(
        TestClient::new(
            "https://agent.example/",
            "\"signature-agent\"",
            "https://agent.example/"
        )
        .verify(),
        VERIFIED
    );
}

#[test]
fn all_components_of_a_request_are_known() {
    let mut client = TestClient::with_dictionary();
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
    assert_eq!(client.verify(), VERIFIED);
    client
        .covered
        .push(("\"content-digest\"".into(), "x".into()));
    assert_eq!(client.verify(), Err(SignatureProblem::UnknownComponent));
}

#[test]
fn signature_outside_its_time_is_invalid() {
    for (times, problem) in [
        ((NOW - 600, NOW), SignatureProblem::Expired),
        ((NOW - 600, NOW - 1), SignatureProblem::Expired),
        ((NOW + 120, NOW + 600), SignatureProblem::NotYetValid),
        ((NOW + 30, NOW + 20), SignatureProblem::Expired),
        ((NOW - 2 * 86_400, NOW + 300), SignatureProblem::Expired),
    ] {
        let client = TestClient {
            times,
            ..TestClient::with_dictionary()
        };
        assert_eq!(client.verify(), Err(problem), "{times:?}");
    }
    let ahead = TestClient {
        times: (NOW + 30, NOW + 300),
        ..TestClient::with_dictionary()
    };
    assert_eq!(ahead.verify(), VERIFIED, "clocks differ");
}

#[test]
fn signature_of_another_request_is_invalid() {
    let elsewhere = TestClient {
        host: "other.example",
        ..TestClient::with_dictionary()
    };
    assert_eq!(elsewhere.verify(), Err(SignatureProblem::Mismatch));
    let mut without_host = TestClient::with_dictionary();
    without_host.covered.remove(0);
    assert_eq!(without_host.verify(), Err(SignatureProblem::HostNotCovered));
    let mut without_agent = TestClient::with_dictionary();
    without_agent.covered.pop();
    assert_eq!(
        without_agent.verify(),
        Err(SignatureProblem::AgentNotCovered)
    );
    let mut twice = TestClient::with_dictionary();
    twice.covered.push(twice.covered[0].clone());
    assert_eq!(twice.verify(), Err(SignatureProblem::CoversTwice));
    let unreadable = TestClient {
        agent: "sig1=(".into(),
        ..TestClient::with_dictionary()
    };
    assert_eq!(unreadable.verify(), Err(SignatureProblem::NoAgentMember));
}

#[test]
fn signatures_of_others_prove_nothing() {
    let untagged = TestClient {
        more: "",
        ..TestClient::with_dictionary()
    };
    assert_eq!(untagged.verify(), Err(SignatureProblem::NoTag));
    let rsa = TestClient {
        more: ";alg=\"rsa-pss-sha512\";tag=\"web-bot-auth\"",
        ..TestClient::with_dictionary()
    };
    assert_eq!(rsa.verify(), Err(SignatureProblem::OtherAlgorithm));
    let unknown = TestClient {
        seed: 2,
        ..TestClient::with_dictionary()
    };
    assert_eq!(unknown.verify(), Err(SignatureProblem::UnknownKey));
    for agent in [
        "\"https://agent.example.evil.example\"",
        "\"http://agent.example\"",
        "\"https://evil.example\"",
    ] {
        let other = TestClient::new(agent, "\"signature-agent\"", agent);
        assert_eq!(other.verify(), Err(SignatureProblem::OtherAgent), "{agent}");
    }
    let long = format!("\"https://agent.example/{}\"", "a".repeat(9_000));
    let long = TestClient::new(&long, "\"signature-agent\"", &long);
    assert_eq!(long.verify(), Err(SignatureProblem::TooLong));
}

#[test]
fn members_with_parameters_are_ignored() {
    let client = TestClient::with_dictionary();
    for beside in [
        "x=\"https://agent.example\";v=1, ",
        "x=1, ",
        "x=(\"https://agent.example\"), ",
        "x, ",
    ] {
        assert_eq!(
            verify_request(
                &[&client],
                &format!("{beside}sig1=\"https://agent.example\"")
            ),
            VERIFIED,
            "{beside}"
        );
    }
    let value = "\"https://agent.example\";v=1";
    let client = TestClient::new(
        &format!("sig1={value}"),
        "\"signature-agent\";key=\"sig1\"",
        value,
    );
    assert_eq!(client.verify(), Err(SignatureProblem::NoAgentMember));
    let other = format!("sig1={value}, a=\"https://agent.example\"");
    let client = TestClient::new(
        &other,
        "\"signature-agent\";key=\"a\"",
        "\"https://agent.example\"",
    );
    assert_eq!(
        client.verify(),
        VERIFIED,
        "the member under its label is ignored, too"
    );
}

#[test]
fn member_with_the_signatures_label_is_its_agent() {
    let of = |agent: &str, others: &[(&str, &str)]| {
        let mut client = TestClient::with_dictionary();
        client.covered.pop();
        let covered = |(key, url): &(&str, &str)| {
            (
                format!("\"signature-agent\";key=\"{key}\""),
                format!("\"{url}\""),
            )
        };
        client.covered.extend(others.iter().map(covered));
        verify_request(&[&client], agent)
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
    let whole = TestClient::new(&both, "\"signature-agent\"", &both);
    assert_eq!(whole.verify(), Err(SignatureProblem::CoversWholeAgent));
}

#[test]
fn all_signatures_with_the_tag_are_tried() {
    let good = TestClient::with_dictionary();
    let labelled = |label: &'static str, seed: u8, host: &str, url: &str| {
        let mut client = TestClient {
            label,
            seed,
            ..TestClient::with_dictionary()
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
    let untagged = TestClient {
        label: "a",
        more: "",
        ..labelled("a", 1, "shop.example", ORIGIN)
    };
    assert_eq!(verify_request(&[&other_agent, &good], agents), VERIFIED);
    assert_eq!(verify_request(&[&untagged, &good], agents), VERIFIED);
    assert_eq!(verify_request(&[&wrong[0], &good], agents), VERIFIED);
    assert_eq!(
        verify_request(&[&unknown[0], &unknown[1], &unknown[2], &good], agents),
        VERIFIED
    );
    // No more than two by keys that are known.
    assert_eq!(
        verify_request(&[&wrong[0], &wrong[1], &good], agents),
        Err(SignatureProblem::Mismatch)
    );
    for beside in [&other_agent, &wrong[1]] {
        assert_eq!(
            verify_request(&[beside, &unknown[0]], agents),
            Err(SignatureProblem::UnknownKey),
            "its key is to be fetched"
        );
        assert_eq!(
            verify_request(&[&unknown[0], beside], agents),
            Err(SignatureProblem::UnknownKey)
        );
    }
}

#[test]
fn signature_may_cover_another_one() {
    let mut inner = TestClient::with_dictionary();
    inner.label = "a";
    inner.covered[1] = (
        "\"signature-agent\";key=\"a\"".into(),
        "\"https://evil.example\"".into(),
    );
    inner.seed = 3;
    let (input, signature) = inner.sign();
    let mut outer = TestClient::with_dictionary();
    for (name, value) in [("signature-input", input), ("signature", signature)] {
        outer.covered.push((
            format!("\"{name}\";key=\"a\""),
            value.trim_start_matches("a=").to_owned(),
        ));
    }
    let agents = "a=\"https://evil.example\", sig1=\"https://agent.example\"";
    assert_eq!(verify_request(&[&inner, &outer], agents), VERIFIED);
    outer.covered[3].1 = ":AAAA:".into();
    assert_eq!(
        verify_request(&[&inner, &outer], agents),
        Err(SignatureProblem::Mismatch)
    );
}

/// A request for the other implementation.
struct ArrivedMessage<'a> {
    client: &'a TestClient,
    input: String,
    signature: String,
}

impl SignedMessage for ArrivedMessage<'_> {
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

/// Whether the other implementation verifies the request.
fn other_reader_verifies(client: &TestClient) -> bool {
    let (input, signature) = client.sign();
    let arrived = ArrivedMessage {
        client,
        input,
        signature,
    };
    let mut ring = KeyRing::default();
    for key in agent_keys() {
        ring.import_raw(key.names[0].clone(), Algorithm::Ed25519, key.bytes);
    }
    WebBotAuthVerifier::parse(&arrived)
        .and_then(|verifier| verifier.verify(&ring, None))
        .is_ok()
}

#[test]
fn another_reader_agrees_but_on_time_and_algorithm() {
    let quoted = "\"https://agent.example/.well-known/http-message-signatures-directory\"";
    let mut all = TestClient::with_dictionary();
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
    let mut without_host = TestClient::with_dictionary();
    without_host.covered.remove(0);
    let mut without_agent = TestClient::with_dictionary();
    without_agent.covered.pop();
    for (client, is_verified) in [
        (TestClient::with_dictionary(), true),
        (TestClient::new(quoted, "\"signature-agent\"", quoted), true),
        (all, true),
        (
            TestClient {
                seed: 2,
                ..TestClient::with_dictionary()
            },
            false,
        ),
        (
            TestClient {
                host: "other.example",
                ..TestClient::with_dictionary()
            },
            false,
        ),
        (
            TestClient {
                more: "",
                ..TestClient::with_dictionary()
            },
            false,
        ),
        (without_host, false),
        (without_agent, false),
    ] {
        let says = (client.verify() == VERIFIED, other_reader_verifies(&client));
        assert_eq!(says, (is_verified, is_verified), "{:?}", client.sign());
    }
    // It leaves both to its caller.
    let expired = TestClient {
        times: (NOW - 600, NOW - 300),
        ..TestClient::with_dictionary()
    };
    assert_eq!(expired.verify(), Err(SignatureProblem::Expired));
    assert!(other_reader_verifies(&expired));
    let other = TestClient {
        more: ";alg=\"rsa-pss-sha512\";tag=\"web-bot-auth\"",
        ..TestClient::with_dictionary()
    };
    assert_eq!(other.verify(), Err(SignatureProblem::OtherAlgorithm));
    assert!(other_reader_verifies(&other));
}

/// The key of the examples (RFC 9421 appendix B.1.4). No directory may have it.
fn example_key() -> PublicKey {
    let bytes = URL_SAFE_NO_PAD
        .decode("JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs")
        .expect("a key");
    let names = vec![
        "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U".to_owned(),
        "test-key-ed25519".to_owned(),
    ];
    PublicKey {
        bytes,
        names,
        not_before: None,
        expires: None,
    }
}

/// Verifies an example ten seconds after it was signed.
fn verify_example(input: &str, signature: &str, agent: &str, created: i64) -> SignatureResult {
    let fields = SignatureFields {
        input,
        signature,
        agent,
    };
    let signed = SignedRequest {
        host: b"example.com",
        target: b"/",
        method: b"GET",
        user_agent: b"",
        fields,
    };
    let keys = [example_key()];
    expiry(verify_signature(
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
        verify_example(input, signature, dictionary, created),
        verified(4_889_289_600)
    );
    assert_eq!(
        verify_example(input, signature, dictionary, created + 90_000),
        Err(SignatureProblem::Expired),
        "a day later"
    );
    let other = "agent2=\"https://signature-agent.test/\"";
    assert_eq!(
        verify_example(input, signature, other, created),
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
        verify_example(input, signature, quoted, created),
        verified(1_735_693_200)
    );
    assert_eq!(
        verify_example(input, signature, quoted, created + 3_590),
        Err(SignatureProblem::Expired)
    );
    // Appendix A.2.1: no Signature-Agent, so nothing says whose key it is.
    let input = "sig1=(\"@authority\");created=1735689600;keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";\
                 alg=\"ed25519\";expires=1735693200;\
                 nonce=\"gubxywVx7hzbYKatLgzuKDllDAIXAkz41PydU7aOY7vT+Mb3GJNxW0qD4zJ+IOQ1NVtg+BNbTCRUMt1Ojr5BgA==\";\
                 tag=\"web-bot-auth\"";
    let signature = "sig1=:uz2SAv+VIemw+Oo890bhYh6Xf5qZdLUgv6/PbiQfCFXcX/vt1A8Pf7OcgL2yUDUYXFtffNpkEr5W6dldqFrkDg==:";
    assert_eq!(
        verify_example(input, signature, "", created),
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
        let says = verify_example(
            input,
            signature,
            "\"https://signature-agent.test\"",
            1_618_884_473,
        );
        assert_eq!(says, Err(SignatureProblem::NoTag), "{input}");
    }
}
