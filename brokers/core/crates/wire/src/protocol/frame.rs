//! Frames: a four-byte length, then so many bytes, which [`super::arriving`] reads.

/// The largest frame from a client that has not authenticated, in bytes.
pub const UNAUTHENTICATED_BYTES_MAX: usize = 512 * 1024;
/// The largest frame by default (Kafka's `socket.request.max.bytes`).
pub const REQUEST_BYTES_MAX: usize = 100 * 1024 * 1024;

/// Why a frame cannot be read. The connection is of no use after any of these.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The connection failed, or ended inside a frame.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A length that is negative or beyond what the connection may send.
    #[error("a frame of {length} bytes, at most {limit} are allowed")]
    Length {
        /// What the client announced.
        length: i32,
        /// What it may send, in bytes.
        limit: usize,
    },
}

/// The length that a frame's first four bytes announce.
///
/// # Errors
/// [`FrameError::Length`].
pub fn announced_length(prefix: [u8; 4], limit: usize) -> Result<usize, FrameError> {
    let length = i32::from_be_bytes(prefix);
    match usize::try_from(length) {
        Ok(bytes) if bytes <= limit => Ok(bytes),
        _ => Err(FrameError::Length { length, limit }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lengths_within_the_limit_are_believed() {
        assert_eq!(announced_length(100_i32.to_be_bytes(), 100).unwrap(), 100);
        for length in [101, -1, i32::MAX, i32::MIN] {
            let length_result = announced_length(length.to_be_bytes(), 100);
            assert!(matches!(length_result, Err(FrameError::Length { .. })));
        }
    }
}
