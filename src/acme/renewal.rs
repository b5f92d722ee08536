//! [`due`]: the time at which a certificate is to be renewed. It lies in the window that the
//! authority suggests (RFC 9773), or without a suggestion after two thirds of the certificate's
//! lifetime. It is not later than nine tenths of that lifetime. A new certificate is kept for a day
//! in any case, or for a twentieth of its lifetime if that is shorter. [`is_to_be_asked`]: whether
//! crawlgate is to ask the authority for a suggestion now.

use super::certificate::IssuedCertificate;
use super::progress::Suggestion;
use crate::time::Timestamp;
use std::time::Duration;

/// How often crawlgate asks for a suggestion where the authority does not say it, and the bounds
/// for what it says.
const ASK: Duration = Duration::from_secs(6 * 3_600);
const ASK_LEAST: Duration = Duration::from_secs(3_600);
const ASK_MOST: Duration = Duration::from_secs(86_400);

/// How long a new certificate is kept at least, or a twentieth of its life if that is shorter:
/// authorities limit how often they issue the same certificate.
const KEPT: Duration = Duration::from_secs(86_400);

/// When the certificate is to be renewed (see the module). A suggestion for another certificate is
/// ignored. The least time applies only to a certificate obtained since the start.
pub fn due(certificate: &IssuedCertificate, suggestion: Option<&Suggestion>) -> Timestamp {
    let two_thirds = certificate.not_before.plus(certificate.lifetime() * 2 / 3);
    let window = suggestion
        .filter(|suggestion| is_for(suggestion, certificate))
        .and_then(|suggestion| suggestion.window);
    let due = match window {
        // A moment of the window that stays the same: RFC 9773 section 4.2 wants a random one.
        Some((from, until)) => {
            let span = until.saturating_sub(from).max(1);
            Timestamp(from.saturating_add(i64::from(fraction(certificate)) * (span / 256)))
        }
        None => two_thirds,
    };
    // A suggestion may come early, but never so late that the certificate could end meanwhile.
    let due = due.min(certificate.not_before.plus(certificate.lifetime() * 9 / 10));
    // A new certificate is kept for a while, whatever is said of it.
    let least = certificate
        .obtained
        .map(|obtained| obtained.plus((certificate.lifetime() / 20).min(KEPT)));
    least.map_or(due, |least| due.max(least))
}

/// Whether the authority is to be asked for a suggestion: nothing is known for this certificate, or
/// the time to ask again has come (or lies more than a day ahead, after the clock was set back).
/// Never for a certificate without an `id`.
pub fn is_to_be_asked(
    certificate: &IssuedCertificate,
    known: Option<&Suggestion>,
    now: Timestamp,
) -> bool {
    certificate.id.is_some()
        && known
            .filter(|known| is_for(known, certificate))
            .is_none_or(|known| {
                // A clock that was set back.
                now >= known.next || known.next.since(now) > ASK_MOST
            })
}

/// Makes a suggestion from the answer of the authority. `window` is kept if its start is before its
/// end. `again` is when to ask again: within one hour and a day, six hours if `None`.
pub fn suggestion(
    certificate: &IssuedCertificate,
    window: Option<(i64, i64)>,
    again: Option<Duration>,
    now: Timestamp,
) -> Suggestion {
    let again = again.unwrap_or(ASK).clamp(ASK_LEAST, ASK_MOST);
    let window = window.filter(|(from, until)| from < until);
    Suggestion {
        certificate: name(certificate),
        window,
        next: now.plus(again),
    }
}

fn is_for(suggestion: &Suggestion, certificate: &IssuedCertificate) -> bool {
    suggestion.certificate == name(certificate)
}

/// The RFC 9773 identifier of the certificate as text; empty if it has none.
fn name(certificate: &IssuedCertificate) -> String {
    certificate
        .id
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// A number that is as good as random and stays the same for a certificate: the last octet of its
/// signature. Its 256ths of the window are the time to renew.
fn fraction(certificate: &IssuedCertificate) -> u8 {
    certificate
        .key
        .cert
        .first()
        .and_then(|certificate| certificate.last().copied())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{ASK_MOST, due, is_to_be_asked, suggestion};
    use crate::acme::certificate::{CertificateError, IssuedCertificate};
    use crate::time::Timestamp;
    use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
    use std::path::PathBuf;
    use std::time::Duration;

    const DAY: i64 = 86_400;

    /// A certificate of ninety days, and its PEM.
    fn certificate() -> (IssuedCertificate, String) {
        let authority = CertificateParams::new(Vec::new()).expect("no names");
        let authority =
            CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key"))
                .expect("an authority");
        let mut params = CertificateParams::new(vec!["shop.example".into()]).expect("a name");
        params.use_authority_key_identifier_extension = true;
        params.not_after = params.not_before + Duration::from_secs(90 * 86_400);
        let key = KeyPair::generate().expect("a key");
        let pem = params
            .signed_by(&key, &authority)
            .expect("a certificate")
            .pem();
        let pem = format!("{}{pem}", key.serialize_pem());
        (
            IssuedCertificate::read("shop.example", &pem, PathBuf::new()).expect("readable"),
            pem,
        )
    }

    fn after(certificate: &IssuedCertificate, days: i64) -> Timestamp {
        Timestamp(certificate.not_before.0 + days * DAY)
    }

    #[test]
    fn certificate_is_renewed_after_two_thirds_or_in_the_suggested_window() {
        let (mut certificate, _) = certificate();
        let day = |days| after(&certificate, days);
        assert_eq!(due(&certificate, None), day(60));
        let suggested = |window: (Timestamp, Timestamp)| {
            suggestion(&certificate, Some((window.0.0, window.1.0)), None, day(0))
        };
        let early = suggested((day(20), day(22)));
        let moment = due(&certificate, Some(&early));
        assert!(day(20) <= moment && moment < day(22), "{moment}");
        assert_eq!(
            due(&certificate, Some(&early)),
            moment,
            "the same each time"
        );
        let late = suggested((day(200), day(300)));
        assert_eq!(due(&certificate, Some(&late)), day(81), "before it ends");
        let turned = suggested((day(22), day(20)));
        assert_eq!(due(&certificate, Some(&turned)), day(60));
        let obtained = day(30);
        certificate.obtained = Some(obtained);
        let at_once = due(&certificate, Some(&early));
        assert!(
            at_once > obtained,
            "a new certificate is not renewed at once: {at_once}"
        );
    }

    #[test]
    fn suggestion_is_asked_for_again_when_it_is_old_or_of_another_certificate() {
        let (first, _) = certificate();
        let (second, _) = certificate();
        let now = after(&first, 1);
        let known = suggestion(&first, None, Some(Duration::ZERO), now);
        assert!(is_to_be_asked(&first, None, now) && !is_to_be_asked(&first, Some(&known), now));
        assert!(
            is_to_be_asked(&first, Some(&known), now.plus(Duration::from_secs(3_600))),
            "not more often than hourly"
        );
        assert!(is_to_be_asked(&second, Some(&known), now));
        let rare = suggestion(&first, None, Some(Duration::MAX), now);
        assert!(is_to_be_asked(&first, Some(&rare), now.plus(ASK_MOST)));
    }

    #[test]
    fn certificate_of_another_host_or_key_is_refused() {
        let (certificate, pem) = certificate();
        let read =
            |host: &str, pem: &str| IssuedCertificate::read(host, pem, PathBuf::new()).map(drop);
        assert!(matches!(
            read("blog.example", &pem),
            Err(CertificateError::OtherHost)
        ));
        let other = format!(
            "{}{}",
            KeyPair::generate().expect("a key").serialize_pem(),
            &pem[pem.find("-----BEGIN CERT").expect("PEM")..]
        );
        assert!(matches!(
            read("shop.example", &other),
            Err(CertificateError::Key(_))
        ));
        for garbage in [
            "",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "{}",
        ] {
            assert!(
                matches!(
                    read("shop.example", garbage),
                    Err(CertificateError::Unreadable)
                ),
                "{garbage}"
            );
        }
        let end = certificate.not_after.plus(Duration::from_secs(1));
        assert!(matches!(
            certificate.valid_at(end),
            Err(CertificateError::Expired(_))
        ));
    }
}
