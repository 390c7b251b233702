//! Secrets that are derived from the cell's: HMAC-SHA256 over a label, as in `brokers/secrets.py`.

use std::fmt;

use hmac::{Hmac, Mac};
use sha2::Sha256;

use freshet_link::LinkSecret;
use freshet_wire::text::decode_hex;

/// Bytes of a cell's secret.
const SECRET_BYTES: usize = 32;

/// The secret of a cell.
#[derive(Clone)]
pub struct CellSecret([u8; SECRET_BYTES]);

impl fmt::Debug for CellSecret {
    /// Leaves the secret out, so that it gets into no log.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CellSecret")
    }
}

impl CellSecret {
    /// The secret of a text of 64 hexadecimal digits; `None` where it is something else.
    pub fn from_text(text: &str) -> Option<Self> {
        decode_hex(text.trim())?.try_into().ok().map(Self)
    }

    fn derive(&self, label: &str) -> [u8; SECRET_BYTES] {
        let mac = <Hmac<Sha256> as Mac>::new_from_slice(&self.0);
        let mut mac = mac.expect("HMAC takes keys of any length");
        mac.update(label.as_bytes());
        mac.finalize().into_bytes().into()
    }

    /// The secret that gateways and brokers of a cluster prove to each other that they know.
    pub(super) fn link(&self, cluster: &str) -> LinkSecret {
        LinkSecret::new(&self.derive(&format!("link:{cluster}"))).expect("it is long enough")
    }

    /// The secret from which the salts of users that do not exist are derived.
    pub(super) fn decoy(&self, cluster: &str) -> [u8; SECRET_BYTES] {
        self.derive(&format!("decoy:{cluster}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_derived_as_the_control_plane_does() {
        let text = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";
        let secret = CellSecret::from_text(text).unwrap();
        // `brokers.secrets.link_secret(bytes(range(32)), "cl_1")`
        let expected = "2d0f12eb68ddb8a32cdafc052bd4175d97fd0a90e97c882d6ec37770fcb2a444";
        assert_eq!(secret.link("cl_1"), LinkSecret::from_hex(expected).unwrap());
        assert_ne!(secret.link("cl_2"), secret.link("cl_1"));
        assert_ne!(secret.decoy("cl_1"), secret.decoy("cl_2"));
        assert_eq!(format!("{secret:?}"), "CellSecret");
        for wrong in ["", "00", &text[..62], "zz"] {
            assert!(CellSecret::from_text(wrong).is_none(), "{wrong}");
        }
    }
}
