//! Signatures of a client of our own: in the forms that are in use, and wrong in each way.

use super::keys::{PublicKey, read_keys, thumbprint};
use super::signature::{SignatureSays, Signed, verify};
use crate::heads::SignatureFields;
use crate::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{Ed25519KeyPair, KeyPair as _};

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

/// A request, as it is signed and as it arrives.
struct Client {
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
            seed: 1,
            covered: covered.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
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

    fn ask(&self) -> SignatureSays {
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
        let lines: String = self.covered.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        let base = format!("{lines}\"@signature-params\": {params}");
        let octets = STANDARD.encode(pair.sign(base.as_bytes()));
        let (input, signature) = (format!("sig1={params}"), format!("sig1=:{octets}:"));
        let fields = SignatureFields { input: &input, signature: &signature, agent: &self.agent };
        let (host, target) = (self.host.as_bytes(), b"/a?b=c".as_slice());
        let signed = Signed { host, target, method: b"GET", user_agent: b"Agent/1.0", fields };
        verify(&signed, ORIGIN, &keys(), Timestamp(NOW))
    }
}

const VERIFIED: SignatureSays = SignatureSays::Verified { expires: Timestamp(NOW + 300) };

fn is_invalid(client: &Client) -> bool {
    matches!(client.ask(), SignatureSays::Invalid(_))
}

fn is_nothing(client: &Client) -> bool {
    matches!(client.ask(), SignatureSays::Nothing(_))
}

#[test]
fn all_forms_of_signature_agent_are_verified() {
    assert_eq!(Client::of_dictionary().ask(), VERIFIED);
    let quoted = "\"https://agent.example/.well-known/http-message-signatures-directory\"";
    assert_eq!(Client::new(quoted, "\"signature-agent\"", quoted).ask(), VERIFIED);
    assert_eq!(Client::new("https://agent.example/", "\"signature-agent\"", "https://agent.example/").ask(), VERIFIED);
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
        client.covered.push((format!("\"{name}\""), value.to_owned()));
    }
    assert_eq!(client.ask(), VERIFIED);
    client.covered.push(("\"content-digest\"".into(), "x".into()));
    assert!(is_nothing(&client), "a component that is not known proves nothing");
}

#[test]
fn a_signature_out_of_its_time_is_invalid() {
    for times in [
        (NOW - 600, NOW),
        (NOW - 600, NOW - 1),
        (NOW + 120, NOW + 600),
        (NOW + 30, NOW + 20),
        (NOW - 2 * 86_400, NOW + 300),
    ] {
        assert!(is_invalid(&Client { times, ..Client::of_dictionary() }), "{times:?}");
    }
    let ahead = Client { times: (NOW + 30, NOW + 300), ..Client::of_dictionary() };
    assert_eq!(ahead.ask(), VERIFIED, "clocks differ");
}

#[test]
fn a_signature_of_something_else_is_invalid() {
    assert!(is_invalid(&Client { host: "other.example", ..Client::of_dictionary() }));
    let mut without_host = Client::of_dictionary();
    without_host.covered.remove(0);
    assert!(is_invalid(&without_host));
    let mut without_agent = Client::of_dictionary();
    without_agent.covered.pop();
    assert!(is_invalid(&without_agent));
    let mut twice = Client::of_dictionary();
    twice.covered.push(twice.covered[0].clone());
    assert!(is_invalid(&twice));
    assert!(is_invalid(&Client { agent: "sig1=(".into(), ..Client::of_dictionary() }));
}

#[test]
fn signatures_of_others_prove_nothing() {
    assert!(is_nothing(&Client { more: "", ..Client::of_dictionary() }), "another kind of signature");
    assert!(is_nothing(&Client { more: ";alg=\"rsa-pss-sha512\";tag=\"web-bot-auth\"", ..Client::of_dictionary() }));
    assert_eq!(Client { seed: 2, ..Client::of_dictionary() }.ask(), SignatureSays::UnknownKey);
    for agent in ["\"https://agent.example.evil.example\"", "\"http://agent.example\"", "\"https://evil.example\""] {
        assert!(is_nothing(&Client::new(agent, "\"signature-agent\"", agent)), "{agent}");
    }
    let long = format!("\"https://agent.example/{}\"", "a".repeat(9_000));
    assert!(is_nothing(&Client::new(&long, "\"signature-agent\"", &long)));
}
