//! The account at the authority: made once, kept in the state directory. Hosts share one, and it is made by one of them.

use super::authority::BoundedHttp;
use super::failure::OrderError;
use super::storage::{Storage, StoredAccount};
use crate::settings::AcmeSettings;
use instant_acme::{Account, AccountCredentials, NewAccount};
use tokio::sync::Mutex;

/// Opens the account.
#[derive(Default)]
pub(super) struct Accounts {
    /// Held while an account is opened, so that two hosts do not make two.
    opening: Mutex<()>,
}

impl Accounts {
    /// The stored account, or a new one.
    pub(super) async fn open(
        &self,
        settings: &AcmeSettings,
        storage: &Storage,
        http: &BoundedHttp,
    ) -> Result<Account, OrderError> {
        let _one = self.opening.lock().await;
        let builder = Account::builder_with_http(Box::new(http.clone()));
        let contact = settings.email.as_ref().map(|email| format!("mailto:{email}"));
        let contact: Vec<&str> = contact.as_deref().into_iter().collect();
        if let Some(stored) = storage.account()?
            && let Ok(credentials) = serde_json::from_value::<AccountCredentials>(stored.credentials.clone())
        {
            let account = builder.from_credentials(credentials).await?;
            if stored.email != settings.email {
                account.update_contacts(&contact).await?;
                let email = settings.email.clone();
                storage.write_account(&StoredAccount { email, credentials: stored.credentials })?;
            }
            return Ok(account);
        }
        // Who writes `acme` into the settings agrees; docs/settings.md says so.
        let new = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
        let (account, credentials) = builder.create(&new, settings.directory.clone(), None).await?;
        let credentials = serde_json::to_value(credentials).map_err(|error| OrderError::Away(error.to_string()))?;
        storage.write_account(&StoredAccount { email: settings.email.clone(), credentials })?;
        tracing::info!(account = account.id(), "made an account at the authority");
        Ok(account)
    }
}
