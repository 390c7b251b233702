//! Checks a request's body before the crate `kafka-protocol` decodes it.
//!
//! That crate allocates room for as many elements as the client announces. The guard walks the
//! same bytes first, by a schema of each request, and verifies every length and count against what
//! remains. Produce and Fetch have decoders of their own.

mod requests;
mod schema;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;

use self::schema::{Field, Kind, Request};
use super::decode::Decoder;
use crate::codec::WireError;

/// Checks the body of a request. Bytes that follow the body are ignored, as in Kafka. Whether text
/// is UTF-8 and whether null is allowed at a place is left to the decoder, which allocates nothing
/// for these checks.
///
/// # Errors
/// Any [`WireError`] for lengths and counts that cannot be, or more elements than
/// [`ELEMENTS_MAX`](super::decode::ELEMENTS_MAX); [`WireError::Length`] at position 0 for an API
/// without a schema.
pub fn check(api: ApiKey, version: i16, body: &Bytes) -> Result<(), WireError> {
    let Some(request) = requests::schema(api) else {
        return Err(WireError::Length { position: 0, length: body.len() as i64 });
    };
    walk_body(request, version, body.clone()).map(drop)
}

/// Walks a body; returns the bytes that follow it.
fn walk_body(request: &Request, version: i16, body: Bytes) -> Result<Bytes, WireError> {
    let mut input = Decoder::new(body, version >= request.flexible_from);
    walk_structure(&mut input, request.fields, version)?;
    Ok(input.rest())
}

fn walk_structure(input: &mut Decoder, fields: &[Field], version: i16) -> Result<(), WireError> {
    for field in fields.iter().filter(|field| field.exists_in(version)) {
        walk_value(input, field.kind, version)?;
    }
    input.skip_tagged()
}

fn walk_value(input: &mut Decoder, kind: Kind, version: i16) -> Result<(), WireError> {
    match kind {
        Kind::Fixed(bytes) => input.skip(bytes),
        Kind::String => input.nullable_text().map(drop),
        Kind::Bytes => input.nullable_bytes().map(drop),
        Kind::Nullable(fields) => match input.i8()? {
            -1 => Ok(()),
            1 => walk_structure(input, fields, version),
            other => Err(WireError::Length { position: 0, length: other.into() }),
        },
        Kind::Array(&Kind::Fixed(bytes)) => {
            let count = input.nullable_count(bytes)?.unwrap_or(0);
            input.skip(count * bytes)
        }
        Kind::Array(element) => {
            let bytes_each = element.bytes_min(version, input.is_flexible());
            for _ in 0..input.nullable_count(bytes_each)?.unwrap_or(0) {
                walk_value(input, *element, version)?;
            }
            Ok(())
        }
        Kind::Structure(fields) => walk_structure(input, fields, version),
    }
}
