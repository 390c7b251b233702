//! The certificate by which a gateway proves itself to clients: its files and their reload.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::time::{MissedTickBehavior, interval};
use tokio_rustls::TlsAcceptor;

use freshet_world::env::files::{self, FileError};

mod authority;
mod stream;

pub(super) use authority::{AuthorityError, ensure as ensure_authority};
pub(super) use stream::Decrypted;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The files do not hold a certificate with its key.
    #[error("{path}: {reason}")]
    Unusable {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// An own authority could not be made.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

/// The files of a certificate and its key.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

#[derive(PartialEq, Eq, Clone)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Files {
    async fn read(&self) -> Result<Contents, FileError> {
        let certificate = files::read(&self.certificate).await?;
        Ok(Contents { certificate, key: files::read_private(&self.key).await? })
    }

    /// The certificate with its key.
    fn parse(&self, contents: &Contents) -> Result<CertifiedKey, TlsError> {
        let unusable = |path: &PathBuf, reason: String| TlsError::Unusable {
            path: path.display().to_string(),
            reason,
        };
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(&contents.certificate).collect();
        let chain = chain.map_err(|error| unusable(&self.certificate, error.to_string()))?;
        if chain.is_empty() {
            return Err(unusable(&self.certificate, "no certificate in PEM".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(&contents.key)
            .map_err(|error| unusable(&self.key, error.to_string()))?;
        CertifiedKey::from_der(chain, key, &crypto_provider())
            .map_err(|error| unusable(&self.certificate, error.to_string()))
    }
}

fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The certificate that is in use.
#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read()))
    }
}

/// A certificate that is reloaded when its files change.
pub(super) struct Certificate {
    files: Files,
    contents: Contents,
    current: Arc<Current>,
}

impl Certificate {
    /// Reads the certificate.
    ///
    /// # Errors
    /// [`TlsError`].
    pub(super) async fn load(files: Files, domain: &str) -> Result<Self, TlsError> {
        let contents = files.read().await?;
        let key = files.parse(&contents)?;
        if !is_for(&key, domain) {
            let path = files.certificate.display();
            tracing::warn!(%path, domain, "the certificate is not for names of this domain");
        }
        Ok(Self { files, contents, current: Arc::new(Current(RwLock::new(Arc::new(key)))) })
    }

    /// The acceptor of connections, which presents the certificate that is in use.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let config = ServerConfig::builder_with_provider(crypto_provider())
            .with_safe_default_protocol_versions()
            .expect("the provider has what TLS 1.2 and 1.3 need")
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.current) as _);
        TlsAcceptor::from(Arc::new(config))
    }

    /// Checks the files for changes until it is dropped. Files that cannot be used are reported
    /// once in the log, and the certificate in use stays.
    pub(super) async fn follow(mut self, every: Duration) {
        let mut rounds = interval(every);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut said = String::new();
        loop {
            rounds.tick().await;
            match self.reload().await {
                Ok(true) => {
                    tracing::info!("another certificate is in use now");
                    said.clear();
                }
                Ok(false) => said.clear(),
                Err(error) => {
                    let text = error.to_string();
                    if text != said {
                        tracing::error!(
                            error = text,
                            "cannot use the new certificate: the earlier one stays in use"
                        );
                        said = text;
                    }
                }
            }
        }
    }

    async fn reload(&mut self) -> Result<bool, TlsError> {
        let contents = self.files.read().await?;
        if contents == self.contents {
            return Ok(false);
        }
        let key = self.files.parse(&contents)?;
        *self.current.0.write() = Arc::new(key);
        self.contents = contents;
        Ok(true)
    }
}

/// Whether a certificate is valid for the names of clusters in a domain.
fn is_for(key: &CertifiedKey, domain: &str) -> bool {
    let Some(Ok(certificate)) = key.cert.first().map(ParsedCertificate::try_from) else {
        return false;
    };
    ServerName::try_from(format!("b0-any.{domain}"))
        .is_ok_and(|name| rustls::client::verify_server_name(&certificate, &name).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Clock(i64);

    impl freshet_world::env::Clock for Clock {
        fn now_ms(&self) -> i64 {
            self.0
        }
    }

    async fn made(folder: &std::path::Path, domain: &str) -> Files {
        ensure_authority(folder, domain, &Clock(1_700_000_000_000)).await.unwrap()
    }

    #[tokio::test]
    async fn an_authority_is_made_once_for_a_domain_and_its_key_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let files = made(folder.path(), "kafka.localhost").await;
        let first = files.read().await.unwrap();
        assert!(is_for(&files.parse(&first).unwrap(), "kafka.localhost"));
        assert!(!is_for(&files.parse(&first).unwrap(), "kafka.example"));
        made(folder.path(), "kafka.localhost").await;
        assert!(files.read().await.unwrap() == first, "it stays");
        assert_eq!(files::mode(&files.key).await.unwrap(), 0o600);
        made(folder.path(), "kafka.example").await;
        let second = files.read().await.unwrap();
        assert!(is_for(&files.parse(&second).unwrap(), "kafka.example"));
    }

    #[tokio::test]
    async fn another_certificate_is_shown_once_it_can_be_used() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let files = made(folder.path(), "kafka.localhost").await;
        let others = made(other.path(), "kafka.localhost").await;
        let mut certificate = Certificate::load(files.clone(), "kafka.localhost").await.unwrap();
        let shown = |certificate: &Certificate| certificate.current.0.read().cert.clone();
        let first = shown(&certificate);
        assert!(!certificate.reload().await.unwrap());
        // The certificate is there before its key: the two do not belong together yet.
        let chain = files::read(&others.certificate).await.unwrap();
        files::write_private(&files.certificate, chain).await.unwrap();
        assert!(matches!(certificate.reload().await, Err(TlsError::Unusable { .. })));
        assert_eq!(shown(&certificate), first);
        let key = files::read_private(&others.key).await.unwrap();
        files::write_private(&files.key, key).await.unwrap();
        assert!(certificate.reload().await.unwrap());
        assert_ne!(shown(&certificate), first);
        files::write_private(&files.certificate, b"nothing".to_vec()).await.unwrap();
        assert!(certificate.reload().await.is_err());
    }
}
