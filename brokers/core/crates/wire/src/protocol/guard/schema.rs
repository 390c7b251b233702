//! What a request's body looks like on the wire: enough to find every length in it.

use kafka_protocol::messages::ApiKey;

/// A request of one API, in all its versions.
#[derive(Debug)]
pub(super) struct Request {
    /// The API.
    pub api: ApiKey,
    /// The first version with compact lengths and tagged fields; `i16::MAX` where there is none.
    pub flexible_from: i16,
    /// The fields, in order.
    pub fields: &'static [Field],
}

/// A field and the versions that have it.
#[derive(Debug)]
pub(super) struct Field {
    pub kind: Kind,
    pub oldest: i16,
    pub newest: i16,
}

/// The type of a field.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// A number of bytes.
    Fixed(usize),
    /// A string, perhaps null.
    String,
    /// Bytes, perhaps null.
    Bytes,
    /// An array, perhaps null.
    Array(&'static Kind),
    /// A structure.
    Structure(&'static [Field]),
    /// A structure behind a byte that says whether it is there.
    Nullable(&'static [Field]),
}

impl Field {
    pub(super) fn exists_in(&self, version: i16) -> bool {
        (self.oldest..=self.newest).contains(&version)
    }
}

impl Kind {
    /// The fewest bytes that a value takes.
    pub(super) fn bytes_min(self, version: i16, flexible: bool) -> usize {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Nullable(_) => 1,
            Self::String | Self::Bytes | Self::Array(_) if flexible => 1,
            Self::String => 2,
            Self::Bytes | Self::Array(_) => 4,
            Self::Structure(fields) => {
                let present = fields.iter().filter(|field| field.exists_in(version));
                let bytes = present.map(|field| field.kind.bytes_min(version, flexible));
                bytes.sum::<usize>() + usize::from(flexible)
            }
        }
    }
}

/// A list of fields: `name: Kind [from version] [to version]`. The names are Kafka's, for the
/// reader. A kind is a primitive, `[Primitive]` or `[{ fields }]` for an array, or `{ fields }` for
/// a structure that may be absent.
macro_rules! fields {
    ($($name:ident: $kind:tt $(from $oldest:literal)? $(to $newest:literal)?),* $(,)?) => {
        &[$($crate::protocol::guard::schema::Field {
            kind: $crate::protocol::guard::schema::kind!($kind),
            oldest: [$($oldest,)? 0][0],
            newest: [$($newest,)? i16::MAX][0],
        }),*]
    };
}

/// The kind of one field.
macro_rules! kind {
    (Bool) => { $crate::protocol::guard::schema::Kind::Fixed(1) };
    (Int8) => { $crate::protocol::guard::schema::Kind::Fixed(1) };
    (Int16) => { $crate::protocol::guard::schema::Kind::Fixed(2) };
    (Int32) => { $crate::protocol::guard::schema::Kind::Fixed(4) };
    (Float64) => { $crate::protocol::guard::schema::Kind::Fixed(8) };
    (Int64) => { $crate::protocol::guard::schema::Kind::Fixed(8) };
    (Uuid) => { $crate::protocol::guard::schema::Kind::Fixed(16) };
    (String) => { $crate::protocol::guard::schema::Kind::String };
    (Bytes) => { $crate::protocol::guard::schema::Kind::Bytes };
    ([{ $($fields:tt)* }]) => {
        $crate::protocol::guard::schema::Kind::Array(
            &$crate::protocol::guard::schema::Kind::Structure(
                $crate::protocol::guard::schema::fields!($($fields)*)
            )
        )
    };
    ([$element:tt]) => {
        $crate::protocol::guard::schema::Kind::Array(
            &$crate::protocol::guard::schema::kind!($element)
        )
    };
    ({ $($fields:tt)* }) => {
        $crate::protocol::guard::schema::Kind::Nullable(
            $crate::protocol::guard::schema::fields!($($fields)*)
        )
    };
}

/// A request: `Api, flexible from version, { fields }`.
macro_rules! request {
    ($api:ident, $flexible_from:expr, { $($fields:tt)* }) => {
        $crate::protocol::guard::schema::Request {
            api: kafka_protocol::messages::ApiKey::$api,
            flexible_from: $flexible_from,
            fields: $crate::protocol::guard::schema::fields!($($fields)*),
        }
    };
}

pub(super) use {fields, kind, request};
