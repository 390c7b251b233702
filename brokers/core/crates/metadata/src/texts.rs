//! Texts that clients chose, as records and an audit log hold them. Kafka bounds the names of
//! groups and clients by nothing but the 16 bits of their length.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// Bytes of the digest that stands for what was cut off.
const DIGEST_BYTES: usize = 8;
/// Characters of the ellipsis and of the digest.
const ENDING_CHARACTERS: usize = 1 + 2 * DIGEST_BYTES;

/// The text, or what stands for it where it has more characters. That ends with an ellipsis and a
/// digest of the text, so that two texts stay two. `characters_max` is above 17.
#[must_use]
pub fn cut(text: &str, characters_max: usize) -> String {
    let ended_at = |count: usize| text.char_indices().nth(count).map(|(at, _)| at);
    if text.len() <= characters_max || ended_at(characters_max).is_none() {
        return text.to_owned();
    }
    let kept = ended_at(characters_max.saturating_sub(ENDING_CHARACTERS)).unwrap_or(0);
    let mut short = format!("{}…", &text[..kept]);
    for byte in &Sha256::digest(text)[..DIGEST_BYTES] {
        let _ = write!(short, "{byte:02x}");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_and_two_stay_two() {
        for fits in ["", "abc", &"é".repeat(20)] {
            assert_eq!(cut(fits, 20), fits);
        }
        let (one, other) = ("é".repeat(30_000), format!("{}x", "é".repeat(29_999)));
        let (one, other) = (cut(&one, 20), cut(&other, 20));
        assert_eq!((one.chars().count(), other.chars().count()), (20, 20));
        assert!(one.starts_with("ééé…") && other.starts_with("ééé…"), "{one}");
        assert_ne!(one, other);
    }
}
