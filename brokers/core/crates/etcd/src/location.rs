//! How settings name a metadata store: the path of an SQLite file, or an address of etcd.
//!
//! `etcd://host:port[,host:port…][/root][?option=value[&option=value…]]`; with `etcds://` by TLS.
//! Options: `user`, `password_file`; for TLS `ca` (the authority to trust), `cert` and `key` (the
//! client's own), all files in PEM, and `server_name` where the certificate names another host.
//! Nothing is escaped, so no name may hold `&`, `?` or `,`.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use etcd_client::{Certificate, Identity, TlsOptions};

use super::{EtcdOptions, EtcdStore};
use freshet_metadata::sqlite::SqliteStore;
use freshet_metadata::store::{MetadataError, MetadataStore};
use freshet_world::env::files;

const ETCD: &str = "etcd://";
const ETCD_TLS: &str = "etcds://";
const SQLITE: &str = "sqlite://";
/// The character between a root and the keys below it.
const SEPARATOR: char = '/';

/// The result of opening a store.
pub type Opened = Result<Arc<dyn MetadataStore>, MetadataError>;

/// Opens the store that `location` names. The future is boxed, so that etcd's client is compiled in
/// this crate and not again in each caller's.
///
/// # Errors
/// [`MetadataError::Invalid`] where it names none; else as the store.
pub fn open_store(location: &str) -> Pin<Box<dyn Future<Output = Opened> + Send + '_>> {
    Box::pin(open_location(location))
}

async fn open_location(location: &str) -> Opened {
    let Some(address) = Address::parse(location)? else {
        let path = location.strip_prefix(SQLITE).unwrap_or(location);
        return Ok(Arc::new(SqliteStore::open(Path::new(path)).await?));
    };
    Ok(Arc::new(EtcdStore::open(address.options().await?).await?))
}

/// An address of etcd, as it is written in the settings.
#[derive(Debug, Default, PartialEq, Eq)]
struct Address<'a> {
    tls: bool,
    members: Vec<&'a str>,
    root: &'a str,
    user: Option<&'a str>,
    password_file: Option<&'a str>,
    ca: Option<&'a str>,
    cert: Option<&'a str>,
    key: Option<&'a str>,
    server_name: Option<&'a str>,
}

impl<'a> Address<'a> {
    /// Parses an address; `None` where the location is of another store.
    fn parse(location: &'a str) -> Result<Option<Self>, MetadataError> {
        let (tls, rest) = match (location.strip_prefix(ETCD), location.strip_prefix(ETCD_TLS)) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Ok(None),
        };
        let invalid = |what: &str| MetadataError::Invalid(format!("{location}: {what}"));
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (members, root) = place.split_once(SEPARATOR).unwrap_or((place, ""));
        let members: Vec<&str> = members.split(',').collect();
        let named = |member: &&str| {
            let port = member.rsplit_once(':').and_then(|(host, port)| {
                (!host.is_empty()).then(|| port.parse::<u16>().ok()).flatten()
            });
            port.is_some()
        };
        if !members.iter().all(named) {
            return Err(invalid("each member of etcd is a host:port"));
        }
        let root = root.trim_end_matches(SEPARATOR);
        let mut address = Self { tls, members, root, ..Self::default() };
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let place = match name {
                "user" => &mut address.user,
                "password_file" => &mut address.password_file,
                "ca" => &mut address.ca,
                "cert" => &mut address.cert,
                "key" => &mut address.key,
                "server_name" => &mut address.server_name,
                _ => return Err(invalid(&format!("there is no option {name:?}"))),
            };
            if value.is_empty() || place.replace(value).is_some() {
                return Err(invalid(&format!("{name} wants one value")));
            }
        }
        if address.user.is_some() != address.password_file.is_some() {
            return Err(invalid("user and password_file go together"));
        }
        if address.cert.is_some() != address.key.is_some() {
            return Err(invalid("cert and key go together"));
        }
        let of_tls = [address.ca, address.cert, address.server_name];
        if !tls && of_tls.iter().any(Option::is_some) {
            return Err(invalid("ca, cert, key and server_name want etcds://"));
        }
        Ok(Some(address))
    }

    async fn options(&self) -> Result<EtcdOptions, MetadataError> {
        let scheme = if self.tls { "https" } else { "http" };
        let endpoints = self.members.iter().map(|member| format!("{scheme}://{member}")).collect();
        let root =
            if self.root.is_empty() { String::new() } else { format!("{}{SEPARATOR}", self.root) };
        let user = match (self.user, self.password_file) {
            (Some(user), Some(file)) => {
                let password = text_of(&file_contents(file).await?, file)?;
                Some((user.to_owned(), password.trim_end().to_owned()))
            }
            _ => None,
        };
        let tls = if self.tls { Some(self.tls_options().await?) } else { None };
        let request_timeout = EtcdOptions::REQUEST_TIMEOUT;
        Ok(EtcdOptions { endpoints, root, user, tls, request_timeout })
    }

    async fn tls_options(&self) -> Result<TlsOptions, MetadataError> {
        let mut options = TlsOptions::new();
        if let Some(ca) = self.ca {
            options = options.ca_certificate(Certificate::from_pem(file_contents(ca).await?));
        }
        if let (Some(cert), Some(key)) = (self.cert, self.key) {
            let identity =
                Identity::from_pem(file_contents(cert).await?, file_contents(key).await?);
            options = options.identity(identity);
        }
        Ok(match self.server_name {
            Some(name) => options.domain_name(name),
            None => options,
        })
    }
}

async fn file_contents(file: &str) -> Result<Vec<u8>, MetadataError> {
    let read = files::read(Path::new(file)).await;
    read.map_err(|error| MetadataError::Invalid(error.to_string()))
}

fn text_of(bytes: &[u8], file: &str) -> Result<String, MetadataError> {
    let text = std::str::from_utf8(bytes).map(str::to_owned);
    text.map_err(|_| MetadataError::Invalid(format!("{file}: no text")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(location: &str) -> Address<'_> {
        Address::parse(location).unwrap().unwrap()
    }

    #[test]
    fn an_address_names_members_root_and_options() {
        let plain = Address { members: vec!["a:1"], ..Address::default() };
        for location in ["etcd://a:1", "etcd://a:1/", "etcd://a:1?"] {
            assert_eq!(parsed(location), plain, "{location}");
        }
        let all = "etcds://a:1,b:2,[::1]:3/cell/one/?ca=/c&cert=/d&key=/e&server_name=f&user=u\
                   &password_file=/p";
        let expected = Address {
            tls: true,
            members: vec!["a:1", "b:2", "[::1]:3"],
            root: "cell/one",
            user: Some("u"),
            password_file: Some("/p"),
            ca: Some("/c"),
            cert: Some("/d"),
            key: Some("/e"),
            server_name: Some("f"),
        };
        assert_eq!(parsed(all), expected);
    }

    #[test]
    fn what_is_no_address_is_a_path() {
        for path in ["metadata.sqlite", "/a/b", "sqlite:///a/b", "./etcd:"] {
            assert_eq!(Address::parse(path).unwrap(), None, "{path}");
        }
    }

    #[test]
    fn bad_addresses_are_refused_with_the_reason() {
        for (location, reason) in [
            ("etcd://", "host:port"),
            ("etcd://a", "host:port"),
            ("etcd://a:1,", "host:port"),
            ("etcd://:1", "host:port"),
            ("etcd://a:70000", "host:port"),
            ("etcd://a:1?colour=red", "no option \"colour\""),
            ("etcd://a:1?user=u", "go together"),
            ("etcds://a:1?cert=c", "go together"),
            ("etcd://a:1?ca=c", "want etcds://"),
            ("etcds://a:1?ca=", "one value"),
            ("etcds://a:1?ca=a&ca=b", "one value"),
        ] {
            let error = Address::parse(location).unwrap_err();
            assert!(matches!(error, MetadataError::Invalid(_)), "{location}");
            assert!(error.to_string().contains(reason), "{location}: {error}");
        }
    }
}
