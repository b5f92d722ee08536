//! [`Attempt`]: one attempt to get or to renew the certificate of a host. [`Attempt::run`] asks the
//! certificate authority when it suggests to renew, and orders a certificate if one is due. Orders,
//! certificates and failures are stored before crawlgate acts on them, so that crawlgate continues
//! from there after a restart.

use super::authority::BoundedHttp;
use super::certificate::IssuedCertificate;
use super::failure::{OrderError, text};
use super::issued::{Answering, Issued};
use super::progress::{ChallengeKind, Progress, RunningOrder};
use super::reach::{Reach, Reachable};
use super::renewal;
use super::storage::{Storage, StoredAccount};
use crate::clock::Clock;
use crate::settings::{AcmeSettings, ChallengeChoice};
use crate::time::Timestamp;
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, ChallengeStatus, ChallengeType, Error,
    Identifier, NewAccount, NewOrder, Order, OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// The limit for an attempt.
const TIME: Duration = Duration::from_secs(600);
/// How long the authority may take to check, and to issue.
const PATIENCE: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(250))
    .backoff(1.5)
    .timeout(Duration::from_secs(180));

/// What all attempts share.
pub struct Shared {
    pub settings: AcmeSettings,
    pub storage: Storage,
    pub issued: Arc<Issued>,
    /// Held while the account is opened, so that two hosts do not make two.
    pub opening: Mutex<()>,
    pub clock: Clock,
    pub reachable: Reachable,
}

/// A running attempt.
pub struct Attempt {
    shared: Arc<Shared>,
    host: String,
    progress: Progress,
    http: BoundedHttp,
}

pub struct EndedAttempt {
    pub host: String,
    pub progress: Progress,
    /// After a failure, the pause is in the progress.
    pub outcome: Result<Attempted, OrderError>,
}

pub enum Attempted {
    /// A certificate was issued, is stored and in use.
    Obtained,
    /// No certificate is due.
    Asked,
}

impl Attempt {
    pub fn new(shared: Arc<Shared>, host: String, progress: Progress) -> Attempt {
        Attempt {
            shared,
            host,
            progress,
            http: BoundedHttp::new(),
        }
    }

    /// Runs the attempt for ten minutes at most; longer counts as a failure `Away`. After a failure
    /// the progress has the pause. Stores the progress; if that fails, only the log says so.
    pub async fn run(mut self) -> EndedAttempt {
        let taken = timeout(TIME, self.work()).await;
        let outcome = taken.unwrap_or_else(|_| Err(OrderError::Away("it takes too long".into())));
        if let Err(error) = &outcome {
            let now = self.now();
            self.progress.fail(error, self.http.retry_after(), now);
        }
        if let Err(error) = self
            .shared
            .storage
            .write_progress(&self.host, &self.progress)
        {
            tracing::warn!(
                host = self.host,
                "cannot store how the order stands: {error}"
            );
        }
        EndedAttempt {
            host: self.host,
            progress: self.progress,
            outcome,
        }
    }

    fn now(&self) -> Timestamp {
        self.shared.clock.moment().now
    }

    /// Asks for a suggestion if the host has a certificate, and obtains a certificate if none is in
    /// use, an order is running, or the renewal is due; else returns `Asked`. If the authority does
    /// not know the account, forgets the account and the order and tries once more with a new
    /// account.
    async fn work(&mut self) -> Result<Attempted, OrderError> {
        self.shared.storage.prepare()?;
        let certificate = self.shared.issued.get(&self.host);
        if let Some(certificate) = &certificate {
            self.ask_for_suggestion(certificate).await;
            if self.progress.order.is_none()
                && self.now() < renewal::due(certificate, self.progress.suggestion.as_ref())
            {
                return Ok(Attempted::Asked);
            }
        }
        match self.obtain(certificate.as_deref()).await {
            Err(OrderError::NoAccount(_)) => {
                // An authority that lost its accounts, as a test authority does at each start.
                self.shared.storage.remove_account();
                self.progress.order = None;
                self.obtain(certificate.as_deref()).await
            }
            outcome => outcome,
        }
        .map(|()| Attempted::Obtained)
    }

    /// The account at the authority, which all hosts share: the stored one, whose contact is
    /// updated if the settings have another email address, or a new one, which is stored.
    async fn account(&self) -> Result<Account, OrderError> {
        let Shared {
            settings,
            storage,
            opening,
            ..
        } = &*self.shared;
        let _one = opening.lock().await;
        let builder = Account::builder_with_http(Box::new(self.http.clone()));
        let contact = settings
            .email
            .as_ref()
            .map(|email| format!("mailto:{email}"));
        let contact: Vec<&str> = contact.as_deref().into_iter().collect();
        if let Some(stored) = storage.account()?
            && let Ok(credentials) =
                serde_json::from_value::<AccountCredentials>(stored.credentials.clone())
        {
            let account = builder.from_credentials(credentials).await?;
            if stored.email != settings.email {
                account.update_contacts(&contact).await?;
                storage.write_account(&StoredAccount {
                    email: settings.email.clone(),
                    credentials: stored.credentials,
                })?;
            }
            return Ok(account);
        }
        // Who writes `acme` into the settings agrees; docs/settings.md says so.
        let new = NewAccount {
            contact: &contact,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let (account, credentials) = builder
            .create(&new, settings.directory.clone(), None)
            .await?;
        let credentials = serde_json::to_value(credentials)
            .map_err(|error| OrderError::Away(error.to_string()))?;
        storage.write_account(&StoredAccount {
            email: settings.email.clone(),
            credentials,
        })?;
        tracing::info!(account = account.id(), "made an account at the authority");
        Ok(account)
    }

    /// Asks the authority when it suggests to renew the certificate, if it is time to ask. A
    /// failure is stored as a suggestion without a window: two thirds of the lifetime decide then,
    /// and crawlgate asks again in six hours.
    async fn ask_for_suggestion(&mut self, certificate: &IssuedCertificate) {
        let now = self.now();
        let Some(id) = &certificate.id else { return };
        if !renewal::is_to_be_asked(certificate, self.progress.suggestion.as_ref(), now) {
            return;
        }
        let answer = match self.account().await {
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
                tracing::debug!(host = self.host, %error, "the authority suggests no renewal");
                (None, None)
            }
        };
        self.progress.suggestion = Some(renewal::suggestion(certificate, window, again, now));
    }

    /// Obtains a certificate for the host: by the stored order if there is one, else (or if the
    /// authority refuses that order or does not know it) by a new order for each possible challenge
    /// in turn, until one succeeds or fails in another way than by a refusal. `former` is the
    /// certificate in use, which the new one replaces.
    async fn obtain(&mut self, former: Option<&IssuedCertificate>) -> Result<(), OrderError> {
        if let Some(running) = self.progress.order.clone() {
            let account = self.account().await?;
            match account.order(running.url.clone()).await {
                Ok(order) => match self.complete(order, &running).await {
                    // The authority may have asked while no crawlgate answered.
                    Err(OrderError::Refused(reason)) => {
                        tracing::info!(
                            host = self.host,
                            "the order of before failed: {reason}; crawlgate makes another one"
                        );
                    }
                    outcome => return outcome,
                },
                Err(error @ Error::Api(_)) => {
                    tracing::debug!(host = self.host, %error, "the authority does not know the order any more");
                    self.set_order(None)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let challenges = self.challenges().await?;
        let account = self.account().await?;
        let last = challenges.len().saturating_sub(1);
        for (place, kind) in challenges.into_iter().enumerate() {
            let (order, running) = self.order(&account, former, kind).await?;
            match self.complete(order, &running).await {
                Err(OrderError::Refused(reason)) if place < last => {
                    tracing::warn!(host = self.host, challenge = ?kind, "{reason}; crawlgate tries the other challenge");
                }
                outcome => return outcome,
            }
        }
        Err(OrderError::Refused("there is no challenge to try".into()))
    }

    /// The challenges by which the authority may reach this crawlgate, the most likely one first.
    async fn challenges(&self) -> Result<Vec<ChallengeKind>, OrderError> {
        let kinds: &[ChallengeKind] = match (
            self.shared.settings.challenge,
            self.shared.reachable.has_clear_text,
        ) {
            (ChallengeChoice::Any, true) => &[ChallengeKind::Http, ChallengeKind::TlsAlpn],
            (ChallengeChoice::Any, false) | (ChallengeChoice::TlsAlpn, _) => {
                &[ChallengeKind::TlsAlpn]
            }
            (ChallengeChoice::Http, _) => &[ChallengeKind::Http],
        };
        let Shared {
            settings,
            issued,
            reachable,
            ..
        } = &*self.shared;
        let reach = Reach {
            issued,
            resolvers: &settings.resolvers,
            ports: reachable.ports,
        };
        reach.challenges(&self.host, kinds).await
    }

    /// Makes a key and a new order at the authority, and stores both in the progress. The order
    /// says that it replaces `former` if the authority suggested a window for its renewal.
    async fn order(
        &mut self,
        account: &Account,
        former: Option<&IssuedCertificate>,
        challenge: ChallengeKind,
    ) -> Result<(Order, RunningOrder), OrderError> {
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
            // An authority may refuse this of a certificate that was replaced already, and then
            // takes the order without.
            Some(id) => match account
                .new_order(&NewOrder::new(&identifiers).replaces(id))
                .await
            {
                Ok(order) => order,
                Err(error) => match OrderError::from(error) {
                    error @ OrderError::Limited(_) => return Err(error),
                    _ => account.new_order(&NewOrder::new(&identifiers)).await?,
                },
            },
            None => account.new_order(&NewOrder::new(&identifiers)).await?,
        };
        let running = RunningOrder {
            url: order.url().to_owned(),
            key,
            challenge,
        };
        self.set_order(Some(running.clone()))?;
        Ok((order, running))
    }

    /// Brings an order to its end: the certificate is stored and taken into use, and the progress
    /// starts anew. After a failure `Away`, `Limited` or `Storage` the next attempt goes on with
    /// the order; after any other failure crawlgate forgets it.
    async fn complete(
        &mut self,
        mut order: Order,
        running: &RunningOrder,
    ) -> Result<(), OrderError> {
        let host = &self.host;
        let finished = finish(&mut order, running, host, &self.shared.issued).await;
        let taken = finished.and_then(|pem| {
            let storage = &self.shared.storage;
            let now = self.now();
            let mut certificate =
                IssuedCertificate::read(host, &pem, storage.certificate_file(host))?
                    .valid_at(now)?;
            storage.write_certificate(host, &pem)?;
            certificate.obtained = Some(now);
            Ok(certificate)
        });
        match taken {
            Ok(certificate) => {
                self.shared.issued.insert(certificate);
                self.progress = Progress::default();
                Ok(())
            }
            Err(
                error @ (OrderError::Away(_) | OrderError::Limited(_) | OrderError::Storage(_)),
            ) => Err(error),
            Err(error) => {
                self.set_order(None)?;
                Err(error)
            }
        }
    }

    fn set_order(&mut self, order: Option<RunningOrder>) -> Result<(), OrderError> {
        self.progress.order = order;
        Ok(self
            .shared
            .storage
            .write_progress(&self.host, &self.progress)?)
    }
}

/// Takes an order from its present status to the issued certificate: answers the challenges if it
/// is pending, sends the request for the certificate if it is ready, and waits for the chain.
/// Returns the private key and the chain, both in PEM.
async fn finish(
    order: &mut Order,
    running: &RunningOrder,
    host: &str,
    issued: &Arc<Issued>,
) -> Result<String, OrderError> {
    if order.state().status == OrderStatus::Pending {
        let answering = answer(order, running.challenge, host, issued).await?;
        let ready = order.poll_ready(&PATIENCE).await;
        drop(answering);
        if !matches!(ready, Ok(OrderStatus::Ready)) {
            let refused = refusal(order).await;
            return Err(refused.unwrap_or_else(|| match ready {
                Err(error) => error.into(),
                Ok(_) => OrderError::Refused("the order became invalid".into()),
            }));
        }
    }
    if order.state().status == OrderStatus::Ready {
        let key = KeyPair::from_pem(&running.key)?;
        let mut params = CertificateParams::new(vec![host.to_owned()])?;
        params.distinguished_name = DistinguishedName::new();
        order
            .finalize_csr(params.serialize_request(&key)?.der())
            .await?;
    }
    if order.state().status == OrderStatus::Invalid {
        return Err(refusal(order)
            .await
            .unwrap_or_else(|| OrderError::Refused("the order is invalid".into())));
    }
    let chain = order.poll_certificate(&PATIENCE).await?;
    Ok(format!("{}{chain}", running.key))
}

/// Answers the challenges of one kind, for each authorization of the order that is not valid yet,
/// and tells the authority to check them. The answers stay until the returned values are dropped.
///
/// # Errors
/// An earlier check of the order failed, or the authority does not offer this kind of challenge.
async fn answer(
    order: &mut Order,
    kind: ChallengeKind,
    host: &str,
    issued: &Arc<Issued>,
) -> Result<Vec<Answering>, OrderError> {
    let mut answering = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        match authorization.status {
            AuthorizationStatus::Pending => {}
            AuthorizationStatus::Valid => continue,
            _ => {
                return Err(OrderError::Refused(
                    "an earlier check of this order failed".into(),
                ));
            }
        }
        let mut challenge = authorization
            .challenge(match kind {
                ChallengeKind::Http => ChallengeType::Http01,
                ChallengeKind::TlsAlpn => ChallengeType::TlsAlpn01,
            })
            .ok_or_else(|| {
                OrderError::Refused("the authority does not offer this challenge".into())
            })?;
        let proof = challenge.key_authorization().as_str().to_owned();
        let name = if kind == ChallengeKind::Http {
            &challenge.token
        } else {
            host
        };
        answering.push(issued.answer(kind, name, proof)?.0);
        // Of an order that goes on, the authority may be told already.
        if challenge.status == ChallengeStatus::Pending {
            challenge.set_ready().await?;
        }
    }
    Ok(answering)
}

/// The problem of the challenge that failed, read anew from the authority: the order itself does
/// not say it. `None` if no challenge has a problem or the authority does not answer.
async fn refusal(order: &mut Order) -> Option<OrderError> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.ok()?;
        let state = authorization.refresh().await.ok()?;
        let problem = state
            .challenges
            .iter()
            .find_map(|challenge| challenge.error.as_ref());
        if let Some(problem) = problem {
            return Some(OrderError::Refused(text(problem)));
        }
    }
    None
}
