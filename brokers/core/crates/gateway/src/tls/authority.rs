//! A gateway's own certificate authority, for machines that have no certificate. It is made at the
//! first start, with one certificate for all names of the domain. Its key is used once and stored
//! nowhere: whoever reads the folder later cannot sign certificates that its clients would trust.

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

use super::{Contents, Files, is_for};
use freshet_world::env::Clock;
use freshet_world::env::files::{self, FileError};

const DAY_MS: i64 = 24 * 3600 * 1000;
/// Days for which authority and certificate are valid.
const LIFE_DAYS: i64 = 3650;

/// Why there is no authority.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A certificate cannot be made.
    #[error("cannot make a certificate for *.{domain}: {reason}")]
    Certificate {
        /// The domain that it was for.
        domain: String,
        /// Why.
        reason: String,
    },
}

/// Makes `ca.pem`, `cert.pem` and `key.pem` in a folder unless they are there, for this domain.
///
/// # Errors
/// [`AuthorityError`].
pub(crate) async fn ensure(
    folder: &Path,
    domain: &str,
    clock: &dyn Clock,
) -> Result<Files, AuthorityError> {
    let files = Files { certificate: folder.join("cert.pem"), key: folder.join("key.pem") };
    let authority = folder.join("ca.pem");
    if let Ok(contents) = files.read().await
        && files::read(&authority).await.is_ok()
        && files.parse(&contents).is_ok_and(|key| is_for(&key, domain))
    {
        return Ok(files);
    }
    let made = make_certificates(domain, clock.now_ms()).map_err(|error| {
        AuthorityError::Certificate { domain: domain.to_owned(), reason: error.to_string() }
    })?;
    // The certificate is written last: where it is missing, all files are made again.
    files::write_private(&files.key, made.contents.key).await?;
    files::write_public(&authority, made.authority).await?;
    files::write_public(&files.certificate, made.contents.certificate).await?;
    tracing::info!(
        authority = %authority.display(), domain,
        "made a certificate authority: give its file to clients as the one to trust"
    );
    Ok(files)
}

struct Made {
    authority: Vec<u8>,
    contents: Contents,
}

fn make_certificates(domain: &str, now_ms: i64) -> Result<Made, rcgen::Error> {
    let authority_key = KeyPair::generate()?;
    let mut params =
        certificate_params(Vec::new(), &format!("Freshet gateway of {domain}"), now_ms)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority = params.self_signed(&authority_key)?;
    let issuer = Issuer::new(params, authority_key);

    let key = KeyPair::generate()?;
    let names = vec![format!("*.{domain}"), domain.to_owned()];
    let mut params = certificate_params(names, &format!("*.{domain}"), now_ms)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Made {
        authority: authority.pem().into_bytes(),
        contents: Contents {
            certificate: certificate.pem().into_bytes(),
            key: key.serialize_pem().into_bytes(),
        },
    })
}

fn certificate_params(
    names: Vec<String>,
    common_name: &str,
    now_ms: i64,
) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    params.distinguished_name = name;
    // Valid since yesterday, because the clocks of some clients are slow.
    (params.not_before, params.not_after) =
        (date_of(now_ms - DAY_MS), date_of(now_ms + LIFE_DAYS * DAY_MS));
    Ok(params)
}

/// A moment as a certificate's date.
fn date_of(at_ms: i64) -> time::OffsetDateTime {
    time::OffsetDateTime::from_unix_timestamp(at_ms.div_euclid(1000))
        .unwrap_or(time::OffsetDateTime::UNIX_EPOCH)
}
