//! Where Kafka's frames begin and end in a direction of bytes: a length in four bytes, big-endian,
//! then so many bytes.

/// Bytes of a length.
const LENGTH_BYTES: usize = 4;

/// Counts the frames of a direction. A length that makes no sense ends the connection at the
/// broker, so a wrong count of such bytes does not matter.
#[derive(Debug, Default)]
pub(super) struct Frames {
    length: [u8; LENGTH_BYTES],
    /// Bytes of the next length that have passed.
    known: usize,
    /// Bytes that are missing of the frame whose length is known.
    missing: usize,
    ended: u64,
}

impl Frames {
    /// Frames that ended.
    pub(super) fn ended(&self) -> u64 {
        self.ended
    }

    /// Whether the last frame that began has ended.
    pub(super) fn is_between(&self) -> bool {
        self.known == 0
    }

    /// Notes bytes that passed.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let passed = self.pass_rest(bytes);
            bytes = &bytes[passed..];
        }
    }

    /// Notes bytes up to the end of the frame that they begin or continue; returns how many.
    pub(super) fn pass_rest(&mut self, bytes: &[u8]) -> usize {
        let mut passed = 0;
        while passed < bytes.len() && self.known < LENGTH_BYTES {
            self.length[self.known] = bytes[passed];
            self.known += 1;
            passed += 1;
            if self.known == LENGTH_BYTES {
                let length = i32::from_be_bytes(self.length);
                self.missing = usize::try_from(length).unwrap_or_default();
            }
        }
        let body = self.missing.min(bytes.len() - passed);
        self.missing -= body;
        if self.known == LENGTH_BYTES && self.missing == 0 {
            self.known = 0;
            self.ended += 1;
        }
        passed + body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: usize) -> Vec<u8> {
        let length = i32::try_from(bytes).unwrap().to_be_bytes();
        [&length[..], &vec![7; bytes]].concat()
    }

    #[test]
    fn frames_are_counted_however_they_are_cut() {
        let stream = [frame(0), frame(1), frame(300), frame(5)].concat();
        for piece in 1..=stream.len() {
            let mut frames = Frames::default();
            for bytes in stream.chunks(piece) {
                frames.pass(bytes);
            }
            assert_eq!((frames.ended(), frames.is_between()), (4, true), "pieces of {piece}");
            frames.pass(&stream[..3]);
            assert!(!frames.is_between());
        }
    }

    #[test]
    fn the_rest_of_a_frame_ends_with_it() {
        let stream = [frame(10), frame(3)].concat();
        let mut frames = Frames::default();
        frames.pass(&stream[..6]);
        assert_eq!(frames.pass_rest(&stream[6..]), 8);
        assert!(frames.is_between() && frames.ended() == 1);
        assert_eq!(frames.pass_rest(&stream[14..]), 7);
        assert_eq!(frames.ended(), 2);
    }

    #[test]
    fn a_length_below_zero_is_an_empty_frame() {
        let mut frames = Frames::default();
        frames.pass(&[0xff; 8]);
        assert_eq!(frames.ended(), 2);
    }
}
