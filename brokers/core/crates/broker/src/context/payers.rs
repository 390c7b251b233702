//! For whom the service makes requests: which names it may give, and how many are counted apart.
//!
//! Records that people read and write by REST go through the service's own user. It names in each
//! request's header who asked, and that principal pays.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use freshet_storage::payers::OTHERS;

/// So many names are counted apart in one incarnation, and further ones together: keys can be made
/// and deleted all day, and each name costs a counter for every topic that is read.
const NAMES_MAX: usize = 512;
/// The longest type and the longest name of a principal, in bytes.
const TYPE_BYTES_MAX: usize = 16;
const NAME_BYTES_MAX: usize = 64;
/// The type that all clients of a broker have, so that nobody else pays under a client's name.
const CLIENT_TYPE: &str = "User";

/// The principals for whom the service has made requests.
#[derive(Default)]
pub(crate) struct Payers(Mutex<BTreeSet<Arc<str>>>);

impl Payers {
    /// The principal that pays; `None` where the text is none that the service may name: a type of
    /// letters other than that of clients, a colon, and a name of letters, digits, `_` and `-`.
    pub(crate) fn find(&self, text: &[u8]) -> Option<Arc<str>> {
        let text = std::str::from_utf8(text).ok().filter(|text| may_be_named(text))?;
        let mut known = self.0.lock();
        if let Some(payer) = known.get(text) {
            return Some(Arc::clone(payer));
        }
        let is_full = known.len() >= NAMES_MAX;
        let payer: Arc<str> = if is_full { OTHERS } else { text }.into();
        known.insert(Arc::clone(&payer));
        Some(payer)
    }
}

fn may_be_named(text: &str) -> bool {
    let Some((kind, name)) = text.split_once(':') else { return false };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=TYPE_BYTES_MAX).contains(&kind.len())
        && kind.bytes().all(|byte| byte.is_ascii_alphabetic())
        && !kind.eq_ignore_ascii_case(CLIENT_TYPE)
        && (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_principals_that_no_client_can_have_are_named() {
        let payers = Payers::default();
        for text in ["ApiKey:key_2a7", "Member:usr-B", "T:n"] {
            assert_eq!(payers.find(text.as_bytes()).as_deref(), Some(text));
        }
        let long = [format!("{}:n", "T".repeat(17)), format!("T:{}", "n".repeat(65))];
        let not_named = ["", "a", ":a", "T:", "User:a", "user:a", "T:a:b", "T:a b", "T:*", "T1:a"];
        for text in not_named.into_iter().chain(long.iter().map(String::as_str)) {
            assert_eq!(payers.find(text.as_bytes()), None, "{text}");
        }
        assert_eq!(payers.find(b"T:\xff"), None);
        assert_eq!(payers.find(OTHERS.as_bytes()), None);
    }

    #[test]
    fn the_ten_thousandth_name_is_counted_with_the_others() {
        let payers = Payers::default();
        let find = |number: usize| payers.find(format!("ApiKey:key_{number}").as_bytes()).unwrap();
        for number in 0..10_000 {
            let payer = find(number);
            assert_eq!(&*payer == OTHERS, number >= NAMES_MAX, "{number}");
        }
        assert_eq!(payers.0.lock().len(), NAMES_MAX + 1);
        assert_eq!(&*find(1), "ApiKey:key_1");
    }
}
