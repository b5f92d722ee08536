//! [`renewal_time`] computes when to renew a TLS certificate. If the certificate authority suggests
//! a window (RFC 9773), the time is in this window. Otherwise it is after two thirds of the
//! certificate's lifetime. Nine tenths of the lifetime are the limit, whatever the authority
//! suggests. A new certificate is kept for at least one day (or a twentieth of its lifetime, if
//! that is shorter), because authorities limit how often they issue the same certificate.
//! [`should_ask_suggestion`] says whether to ask the authority for a new suggestion now.

use super::certificate::IssuedCertificate;
use super::progress::RenewalSuggestion;
use crate::time::Timestamp;
use std::time::Duration;

/// How often crawlgate asks for a suggestion if the authority does not say it.
const DEFAULT_ASK_INTERVAL: Duration = Duration::from_secs(6 * 3_600);
const MIN_ASK_INTERVAL: Duration = Duration::from_secs(3_600);
const MAX_ASK_INTERVAL: Duration = Duration::from_secs(86_400);

/// The least age of a certificate that is renewed: authorities limit how often they issue the same
/// one.
const MIN_AGE: Duration = Duration::from_secs(86_400);

/// Ignores a suggestion for another certificate. The least age applies only to a certificate that was
/// obtained since the start.
pub fn renewal_time(
    certificate: &IssuedCertificate,
    suggestion: Option<&RenewalSuggestion>,
) -> Timestamp {
    let two_thirds = certificate.not_before.plus(certificate.lifetime() * 2 / 3);
    let window = suggestion
        .filter(|suggestion| is_suggestion_for(suggestion, certificate))
        .and_then(|suggestion| suggestion.window);
    let due = match window {
        // RFC 9773 section 4.2 wants a random time in the window. This one is always the same.
        Some((from, until)) => {
            let span = until.saturating_sub(from).max(1);
            Timestamp(from.saturating_add(i64::from(window_fraction(certificate)) * (span / 256)))
        }
        None => two_thirds,
    };
    // A suggestion must not let the certificate expire.
    let due = due.min(certificate.not_before.plus(certificate.lifetime() * 9 / 10));
    let least = certificate
        .obtained
        .map(|obtained| obtained.plus((certificate.lifetime() / 20).min(MIN_AGE)));
    least.map_or(due, |least| due.max(least))
}

/// Whether there is no suggestion for this certificate yet, or it is time to ask again (or that time
/// is more than a day ahead, after the clock was set back). Never for a certificate without an `id`.
pub fn should_ask_suggestion(
    certificate: &IssuedCertificate,
    known: Option<&RenewalSuggestion>,
    now: Timestamp,
) -> bool {
    certificate.id.is_some()
        && known
            .filter(|known| is_suggestion_for(known, certificate))
            .is_none_or(|known| now >= known.next || known.next.since(now) > MAX_ASK_INTERVAL)
}

/// The suggestion in an answer of the authority. A window that ends before it begins is ignored.
/// `again` is when to ask again, clamped to one hour and one day.
pub fn new_suggestion(
    certificate: &IssuedCertificate,
    window: Option<(i64, i64)>,
    again: Option<Duration>,
    now: Timestamp,
) -> RenewalSuggestion {
    let again = again
        .unwrap_or(DEFAULT_ASK_INTERVAL)
        .clamp(MIN_ASK_INTERVAL, MAX_ASK_INTERVAL);
    let window = window.filter(|(from, until)| from < until);
    RenewalSuggestion {
        certificate: renewal_id(certificate),
        window,
        next: now.plus(again),
    }
}

fn is_suggestion_for(suggestion: &RenewalSuggestion, certificate: &IssuedCertificate) -> bool {
    suggestion.certificate == renewal_id(certificate)
}

/// The RFC 9773 identifier of a certificate as text; empty if it has none.
fn renewal_id(certificate: &IssuedCertificate) -> String {
    certificate
        .id
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// A constant that is as good as random: the last byte of the certificate's signature. The renewal is
/// at this many 256ths of the window.
fn window_fraction(certificate: &IssuedCertificate) -> u8 {
    certificate
        .key
        .cert
        .first()
        .and_then(|certificate| certificate.last().copied())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{MAX_ASK_INTERVAL, new_suggestion, renewal_time, should_ask_suggestion};
    use crate::acme::certificate::{CertificateError, IssuedCertificate};
    use crate::time::Timestamp;
    use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
    use std::path::PathBuf;
    use std::time::Duration;

    const DAY: i64 = 86_400;

    /// A certificate of ninety days, and its PEM.
    fn test_certificate() -> (IssuedCertificate, String) {
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
            IssuedCertificate::from_pem("shop.example", &pem, PathBuf::new()).expect("readable"),
            pem,
        )
    }

    fn days_after_start(certificate: &IssuedCertificate, days: i64) -> Timestamp {
        Timestamp(certificate.not_before.0 + days * DAY)
    }

    #[test]
    fn renewal_is_after_two_thirds_or_in_the_window() {
        let (mut certificate, _) = test_certificate();
        let day = |days| days_after_start(&certificate, days);
        assert_eq!(renewal_time(&certificate, None), day(60));
        let suggested = |window: (Timestamp, Timestamp)| {
            new_suggestion(&certificate, Some((window.0.0, window.1.0)), None, day(0))
        };
        let early = suggested((day(20), day(22)));
        let moment = renewal_time(&certificate, Some(&early));
        assert!(day(20) <= moment && moment < day(22), "{moment}");
        assert_eq!(
            renewal_time(&certificate, Some(&early)),
            moment,
            "the same each time"
        );
        let late = suggested((day(200), day(300)));
        assert_eq!(
            renewal_time(&certificate, Some(&late)),
            day(81),
            "before it ends"
        );
        let turned = suggested((day(22), day(20)));
        assert_eq!(renewal_time(&certificate, Some(&turned)), day(60));
        let obtained = day(30);
        certificate.obtained = Some(obtained);
        let at_once = renewal_time(&certificate, Some(&early));
        assert!(
            at_once > obtained,
            "a new certificate is not renewed at once: {at_once}"
        );
    }

    #[test]
    fn old_or_foreign_suggestion_is_asked_again() {
        let (first, _) = test_certificate();
        let (second, _) = test_certificate();
        let now = days_after_start(&first, 1);
        let known = new_suggestion(&first, None, Some(Duration::ZERO), now);
        assert!(
            should_ask_suggestion(&first, None, now)
                && !should_ask_suggestion(&first, Some(&known), now)
        );
        assert!(
            should_ask_suggestion(&first, Some(&known), now.plus(Duration::from_secs(3_600))),
            "not more often than hourly"
        );
        assert!(should_ask_suggestion(&second, Some(&known), now));
        let rare = new_suggestion(&first, None, Some(Duration::MAX), now);
        assert!(should_ask_suggestion(
            &first,
            Some(&rare),
            now.plus(MAX_ASK_INTERVAL)
        ));
    }

    #[test]
    fn certificate_of_another_host_or_key_is_rejected() {
        let (certificate, pem) = test_certificate();
        let read = |host: &str, pem: &str| {
            IssuedCertificate::from_pem(host, pem, PathBuf::new()).map(drop)
        };
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
            certificate.check_not_expired(end),
            Err(CertificateError::Expired(_))
        ));
    }
}
