//! The entries of a status record: their keys, and their texts, which are JSON arrays.
//!
//! An array begins with its kind and the numbers that name the entry. Names are in the entries of
//! topics, groups and members alone, and these have numbers that are never used again within an
//! incarnation. A reader ignores kinds that it does not know, and what follows the fields it knows.

use std::fmt::Write;

/// The most bytes of a name that an entry holds; a longer one is cut.
const NAME_BYTES_MAX: usize = 1024;

/// Names an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// `["t", topic, name, id or null]`; `id` is that of the topic that has the name now, as Kafka
    /// writes it, and null where there is none
    Topic(u32),
    /// `["p", topic, partition, log start, end, bytes, damaged offset or null]`
    Partition(u32, i32),
    /// `["c", topic, bytes in, bytes out, records in]`, since the incarnation began
    Counters(u32),
    /// `["g", group, name, state, protocol type, protocol, cut]`; `cut` is 1 where some of its
    /// members or partitions are left out
    Group(u32),
    /// `["m", group, member, member id, client id, host, instance id or null]`
    Member(u32, u32),
    /// `["o", group, topic, partition, committed or -1, time or null, member or 0]`; `time` is when
    /// the first record was made that is not committed, in ms since 1970, where that is known
    Offset(u32, u32, i32),
    /// `["u", number, principal, bytes in, bytes out, seconds of a thread, bytes not billed]`,
    /// since the incarnation began
    Principal(u32),
    /// `["l", number, client id, bytes in, bytes out, seconds of a thread, bytes not billed]`,
    /// likewise
    Client(u32),
}

impl Key {
    /// The beginning of its array.
    fn put(self, text: &mut String) {
        let put = match self {
            Self::Topic(topic) => write!(text, "[\"t\",{topic}"),
            Self::Partition(topic, index) => write!(text, "[\"p\",{topic},{index}"),
            Self::Counters(topic) => write!(text, "[\"c\",{topic}"),
            Self::Group(group) => write!(text, "[\"g\",{group}"),
            Self::Member(group, member) => write!(text, "[\"m\",{group},{member}"),
            Self::Offset(group, topic, index) => write!(text, "[\"o\",{group},{topic},{index}"),
            Self::Principal(number) => write!(text, "[\"u\",{number}"),
            Self::Client(number) => write!(text, "[\"l\",{number}"),
        };
        put.expect("a string takes text");
    }

    /// The array that says it was removed: its kind and numbers, in an array of their own.
    pub(super) fn removal(self) -> String {
        let mut text = "[\"-\",".to_owned();
        self.put(&mut text);
        text + "]]"
    }

    /// An array to which fields are added.
    pub(super) fn entry(self) -> Fields {
        let mut text = String::with_capacity(64);
        self.put(&mut text);
        Fields(text)
    }
}

/// The text of an entry while it is put together.
pub(super) struct Fields(String);

impl Fields {
    pub(super) fn number(mut self, number: impl std::fmt::Display) -> Self {
        write!(self.0, ",{number}").expect("a string takes text");
        self
    }

    pub(super) fn number_or_null(self, number: Option<impl std::fmt::Display>) -> Self {
        match number {
            Some(number) => self.number(number),
            None => self.number("null"),
        }
    }

    pub(super) fn name(mut self, name: &str) -> Self {
        self.0.push(',');
        self.0.push_str(&quoted(name));
        self
    }

    pub(super) fn name_or_null(self, name: Option<&str>) -> Self {
        match name {
            Some(name) => self.name(name),
            None => self.number("null"),
        }
    }

    pub(super) fn text(self) -> String {
        self.0 + "]"
    }
}

/// A name as JSON, cut to [`NAME_BYTES_MAX`].
pub(super) fn quoted(name: &str) -> String {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let name = &name[..end];
    serde_json::to_string(name).expect("text is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_an_array_that_begins_with_its_name() {
        let group = Key::Group(3).entry().name("a\"\0é").name("Stable").number(1).text();
        assert_eq!(group, "[\"g\",3,\"a\\\"\\u0000é\",\"Stable\",1]");
        let offset = Key::Offset(3, 12, 0).entry().number(-1).number_or_null(None::<i64>);
        assert_eq!(offset.number_or_null(Some(7)).text(), r#"["o",3,12,0,-1,null,7]"#);
        assert_eq!(Key::Partition(12, 1).removal(), r#"["-",["p",12,1]]"#);
        assert_eq!(Key::Topic(1).entry().name_or_null(None).text(), r#"["t",1,null]"#);
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let long = format!("x{}", "é".repeat(40_000));
        let text = quoted(&long);
        let name: String = serde_json::from_str(&text).unwrap();
        assert!(long.starts_with(&name));
        assert_eq!(name.len(), NAME_BYTES_MAX - 1);
        let worst = quoted(&"\0".repeat(40_000));
        assert_eq!(worst.len(), 6 * NAME_BYTES_MAX + 2);
    }
}
