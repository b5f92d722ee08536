//! [`OrderAttempt`]: one attempt to get or renew the TLS certificate of one host by ACME.
//! [`OrderAttempt::run`] asks the certificate authority when to renew, and orders a certificate
//! when the time has come. The attempt writes each order, certificate and failure to disk before it
//! goes on. So a new process can continue the order after a restart or an upgrade.

use super::authority::AuthorityClient;
use super::certificate::IssuedCertificate;
use super::failure::{OrderError, problem_text};
use super::issued::{ChallengeGuard, IssuedCertificates};
use super::progress::{ChallengeKind, HostProgress, UnfinishedOrder};
use super::reach::{ChallengeEndpoints, usable_challenges};
use super::renewal;
use super::storage::{AcmeStorage, StoredAccount};
use crate::clock::Clock;
use crate::settings::{AcmeSettings, ChallengeChoice};
use crate::time::Timestamp;
use ChallengeKind::{Http, TlsAlpn};
use OrderError::{RateLimited, Refused, Storage, Unavailable, UnknownAccount};
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, ChallengeStatus, ChallengeType, Error,
    Identifier, NewAccount, NewOrder, Order, OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(600);
/// How long the authority may take to check, and to issue.
const POLL_POLICY: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(250))
    .backoff(1.5)
    .timeout(Duration::from_secs(180));

/// The settings and state that all attempts share.
pub struct AcmeContext {
    pub settings: AcmeSettings,
    pub storage: AcmeStorage,
    pub issued: Arc<IssuedCertificates>,
    /// Locked while the account is opened, so that two hosts do not create two.
    pub account_lock: Mutex<()>,
    pub clock: Clock,
    pub reachable: ChallengeEndpoints,
}

/// A running attempt.
pub struct OrderAttempt {
    pub shared: Arc<AcmeContext>,
    pub host: String,
    pub progress: HostProgress,
    pub http: AuthorityClient,
}

/// The result of an attempt.
pub struct FinishedAttempt {
    pub host: String,
    pub progress: HostProgress,
    /// After a failure the progress has the pause.
    pub outcome: Result<AttemptOutcome, OrderError>,
}

pub enum AttemptOutcome {
    /// A certificate was issued, is stored and in use.
    Obtained,
    /// No certificate is due.
    NotDue,
}

impl OrderAttempt {
    /// Runs the attempt for at most ten minutes, and stores the progress. A timeout is a failure
    /// `Unavailable`.
    pub async fn run(mut self) -> FinishedAttempt {
        let attempt = timeout(ATTEMPT_TIMEOUT, self.attempt()).await;
        let outcome =
            attempt.unwrap_or_else(|_| Err(Unavailable("it took longer than ten minutes".into())));
        if let Err(error) = &outcome {
            let now = self.now();
            self.progress
                .record_failure(error, self.http.retry_after(), now);
        }
        if let Err(error) = self
            .shared
            .storage
            .write_progress(&self.host, &self.progress)
        {
            tracing::warn!(
                host = self.host,
                "cannot store the state of the order: {error}"
            );
        }
        FinishedAttempt {
            host: self.host,
            progress: self.progress,
            outcome,
        }
    }

    fn now(&self) -> Timestamp {
        self.shared.clock.moment().now
    }

    /// Updates the renewal suggestion, and obtains a certificate if none is in use, an order is
    /// running, or the renewal is due. If the authority does not know the account, tries once more
    /// with a new one.
    async fn attempt(&mut self) -> Result<AttemptOutcome, OrderError> {
        self.shared.storage.create_directory()?;
        let certificate = self.shared.issued.get(&self.host);
        if let Some(certificate) = &certificate {
            self.update_suggestion(certificate).await;
            if self.progress.order.is_none()
                && self.now()
                    < renewal::renewal_time(certificate, self.progress.suggestion.as_ref())
            {
                return Ok(AttemptOutcome::NotDue);
            }
        }
        match self.obtain_certificate(certificate.as_deref()).await {
            Err(UnknownAccount(_)) => {
                // Test authorities lose their accounts at each start.
                self.shared.storage.remove_account();
                self.progress.order = None;
                self.obtain_certificate(certificate.as_deref()).await
            }
            outcome => outcome,
        }
        .map(|()| AttemptOutcome::Obtained)
    }

    /// The stored account, updated if the settings have another email address, or a new one.
    async fn open_account(&self) -> Result<Account, OrderError> {
        let AcmeContext {
            settings,
            storage,
            account_lock,
            ..
        } = &*self.shared;
        let _one = account_lock.lock().await;
        let builder = Account::builder_with_http(Box::new(self.http.clone()));
        let email = settings.email.clone();
        let contact = email.as_ref().map(|email| format!("mailto:{email}"));
        let contact: Vec<&str> = contact.as_deref().into_iter().collect();
        if let Some(stored) = storage.read_account()?
            && let Ok(credentials) =
                serde_json::from_value::<AccountCredentials>(stored.credentials.clone())
        {
            let account = builder.from_credentials(credentials).await?;
            if stored.email != email {
                account.update_contacts(&contact).await?;
                storage.write_account(&StoredAccount { email, ..stored })?;
            }
            return Ok(account);
        }
        // By the setting `acme` the operator agrees; docs/settings.md says so.
        let new = NewAccount {
            contact: &contact,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let (account, credentials) = builder
            .create(&new, settings.directory.clone(), None)
            .await?;
        let credentials =
            serde_json::to_value(credentials).map_err(|error| Unavailable(error.to_string()))?;
        storage.write_account(&StoredAccount { email, credentials })?;
        tracing::info!(
            account = account.id(),
            "registered an account with the certificate authority"
        );
        Ok(account)
    }

    /// Asks the authority when to renew the certificate, if it is time to ask. A failure is stored as
    /// a suggestion without a window: then two thirds of the lifetime decide.
    async fn update_suggestion(&mut self, certificate: &IssuedCertificate) {
        let now = self.now();
        let Some(id) = &certificate.id else { return };
        if !renewal::should_ask_suggestion(certificate, self.progress.suggestion.as_ref(), now) {
            return;
        }
        let answer = match self.open_account().await {
            Ok(account) => account.renewal_info(id).await.map_err(OrderError::from),
            Err(error) => Err(error),
        };
        let (window, again) = match answer {
            Ok((info, again)) => {
                let window = (
                    info.suggested_window.start.unix_timestamp(),
                    info.suggested_window.end.unix_timestamp(),
                );
                (Some(window), Some(again))
            }
            Err(error) => {
                tracing::debug!(host = self.host, %error, "the authority suggests no time for the renewal");
                (None, None)
            }
        };
        self.progress.suggestion = Some(renewal::new_suggestion(certificate, window, again, now));
    }

    /// Obtains a certificate by the stored order. Without one, or if the authority refuses it or does
    /// not know it, makes a new order for each usable challenge in turn, as long as they are refused.
    /// `former` is the certificate in use.
    async fn obtain_certificate(
        &mut self,
        former: Option<&IssuedCertificate>,
    ) -> Result<(), OrderError> {
        if let Some(running) = self.progress.order.clone() {
            let account = self.open_account().await?;
            match account.order(running.url.clone()).await {
                Ok(order) => match self.complete_order(order, &running).await {
                    // Perhaps crawlgate was not running when the authority checked.
                    Err(Refused(reason)) => {
                        tracing::info!(
                            host = self.host,
                            "the earlier order failed: {reason}; crawlgate makes a new one"
                        );
                    }
                    outcome => return outcome,
                },
                Err(error @ Error::Api(_)) => {
                    tracing::debug!(host = self.host, %error, "the authority no longer knows the order");
                    self.store_order(None)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let challenges = self.usable_challenges().await?;
        let account = self.open_account().await?;
        let last = challenges.len().saturating_sub(1);
        for (place, kind) in challenges.into_iter().enumerate() {
            let (order, running) = self.create_order(&account, former, kind).await?;
            match self.complete_order(order, &running).await {
                Err(Refused(reason)) if place < last => {
                    tracing::warn!(host = self.host, challenge = ?kind, "{reason}; crawlgate tries the other challenge");
                }
                outcome => return outcome,
            }
        }
        Err(Refused("there is no challenge left to try".into()))
    }

    /// The challenges by which the authority can reach this crawlgate, the most likely one first.
    async fn usable_challenges(&self) -> Result<Vec<ChallengeKind>, OrderError> {
        let AcmeContext {
            settings,
            issued,
            reachable,
            ..
        } = &*self.shared;
        let kinds: &[ChallengeKind] = match (settings.challenge, reachable.has_clear_text) {
            (ChallengeChoice::Any, true) => &[Http, TlsAlpn],
            (ChallengeChoice::Http, _) => &[Http],
            _ => &[TlsAlpn],
        };
        usable_challenges(&self.host, kinds, &settings.resolvers, *reachable, issued).await
    }

    /// Creates a key and an order, and stores both. The order replaces `former` if the authority
    /// suggested a window for its renewal.
    async fn create_order(
        &mut self,
        account: &Account,
        former: Option<&IssuedCertificate>,
        challenge: ChallengeKind,
    ) -> Result<(Order, UnfinishedOrder), OrderError> {
        let key = KeyPair::generate()?.serialize_pem();
        let identifiers = [Identifier::Dns(self.host.clone())];
        let has_suggestion = self
            .progress
            .suggestion
            .as_ref()
            .is_some_and(|suggestion| suggestion.window.is_some());
        let replaced = former
            .filter(|_| has_suggestion)
            .and_then(|former| former.id.clone());
        let order = match replaced {
            // An authority may refuse `replaces` for a certificate that was replaced already.
            Some(id) => match account
                .new_order(&NewOrder::new(&identifiers).replaces(id))
                .await
            {
                Ok(order) => order,
                Err(error) => match OrderError::from(error) {
                    error @ RateLimited(_) => return Err(error),
                    _ => account.new_order(&NewOrder::new(&identifiers)).await?,
                },
            },
            None => account.new_order(&NewOrder::new(&identifiers)).await?,
        };
        let running = UnfinishedOrder {
            url: order.url().to_owned(),
            key,
            challenge,
        };
        self.store_order(Some(running.clone()))?;
        Ok((order, running))
    }

    /// Finishes an order, stores the certificate and takes it into use. The next attempt continues the
    /// order after a failure `Unavailable`, `RateLimited` or `Storage`; other failures drop it.
    async fn complete_order(
        &mut self,
        mut order: Order,
        running: &UnfinishedOrder,
    ) -> Result<(), OrderError> {
        let host = &self.host;
        let finished = finish_order(&mut order, running, host, &self.shared.issued).await;
        let obtained = finished.and_then(|pem| {
            let storage = &self.shared.storage;
            let now = self.now();
            let mut certificate =
                IssuedCertificate::from_pem(host, &pem, storage.certificate_file(host))?
                    .check_not_expired(now)?;
            storage.write_certificate(host, &pem)?;
            certificate.obtained = Some(now);
            Ok(certificate)
        });
        match obtained {
            Ok(certificate) => {
                self.shared.issued.insert(certificate);
                self.progress = HostProgress::default();
                Ok(())
            }
            Err(error @ (Unavailable(_) | RateLimited(_) | Storage(_))) => Err(error),
            Err(error) => {
                self.store_order(None)?;
                Err(error)
            }
        }
    }

    fn store_order(&mut self, order: Option<UnfinishedOrder>) -> Result<(), OrderError> {
        self.progress.order = order;
        Ok(self
            .shared
            .storage
            .write_progress(&self.host, &self.progress)?)
    }
}

/// Takes an order from its present status to the issued certificate. Returns the private key and the
/// chain in PEM.
async fn finish_order(
    order: &mut Order,
    running: &UnfinishedOrder,
    host: &str,
    issued: &Arc<IssuedCertificates>,
) -> Result<String, OrderError> {
    use OrderStatus::*;
    if order.state().status == Pending {
        let answering = answer_challenges(order, running.challenge, host, issued).await?;
        let ready = order.poll_ready(&POLL_POLICY).await;
        drop(answering);
        if !matches!(ready, Ok(Ready)) {
            let refused = challenge_failure(order).await;
            return Err(refused.unwrap_or_else(|| match ready {
                Err(error) => error.into(),
                Ok(_) => Refused("the order became invalid".into()),
            }));
        }
    }
    if order.state().status == Ready {
        let key = KeyPair::from_pem(&running.key)?;
        let mut params = CertificateParams::new(vec![host.to_owned()])?;
        params.distinguished_name = DistinguishedName::new();
        order
            .finalize_csr(params.serialize_request(&key)?.der())
            .await?;
    }
    if order.state().status == Invalid {
        return Err(challenge_failure(order)
            .await
            .unwrap_or_else(|| Refused("the order is invalid".into())));
    }
    let chain = order.poll_certificate(&POLL_POLICY).await?;
    Ok(format!("{}{chain}", running.key))
}

/// Answers the challenges of one kind for each pending authorization, and asks the authority to check
/// them. The answers stay until the returned values are dropped.
///
/// # Errors
/// An earlier check of the order failed, or the authority does not offer this kind of challenge.
async fn answer_challenges(
    order: &mut Order,
    kind: ChallengeKind,
    host: &str,
    issued: &Arc<IssuedCertificates>,
) -> Result<Vec<ChallengeGuard>, OrderError> {
    let mut answering = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        match authorization.status {
            AuthorizationStatus::Pending => {}
            AuthorizationStatus::Valid => continue,
            _ => {
                return Err(Refused("an earlier check of this order failed".into()));
            }
        }
        let mut challenge = authorization
            .challenge(match kind {
                Http => ChallengeType::Http01,
                TlsAlpn => ChallengeType::TlsAlpn01,
            })
            .ok_or_else(|| Refused("the authority does not offer this challenge".into()))?;
        let proof = challenge.key_authorization().as_str().to_owned();
        let name = if kind == Http { &challenge.token } else { host };
        answering.push(issued.open_challenge(kind, name, proof)?);
        // A continued order may be past this step.
        if challenge.status == ChallengeStatus::Pending {
            challenge.set_ready().await?;
        }
    }
    Ok(answering)
}

/// The problem of the failed challenge, fetched from the authority: the order does not have it.
/// `None` if no challenge has a problem, or the authority does not answer.
async fn challenge_failure(order: &mut Order) -> Option<OrderError> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.ok()?;
        let state = authorization.refresh().await.ok()?;
        let problem = state
            .challenges
            .iter()
            .find_map(|challenge| challenge.error.as_ref());
        if let Some(problem) = problem {
            return Some(Refused(problem_text(problem)));
        }
    }
    None
}
