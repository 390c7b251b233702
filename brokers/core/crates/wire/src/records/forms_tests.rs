//! What is not of the one form is refused, with a text that says why; what encoders write is not.

use std::io::Write;

use flate2::GzBuilder;
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use proptest::prelude::*;

use super::*;
use crate::records::compress;
use crate::records::unpack::{UnpackLimits, Unpacker};

fn content() -> Vec<u8> {
    (0..3_000_u32).flat_map(|n| (n % 300).to_le_bytes()).collect()
}

/// The content of a producer's payload, or why it is refused.
fn unpacked(compression: Compression, payload: &[u8]) -> Result<Vec<u8>, RecordsError> {
    let mut unpacker =
        Unpacker::of_producer(compression, payload, UnpackLimits::of_output(16 << 20))?;
    let mut all = Vec::new();
    while unpacker.advance()? {
        all.extend_from_slice(unpacker.piece());
    }
    Ok(all)
}

fn check_refused(compression: Compression, payload: &[u8], expected: Fault) {
    match unpacked(compression, payload) {
        Err(error @ RecordsError::Form { fault, .. }) => {
            assert_eq!(fault, expected);
            assert!(error.to_string().ends_with(", and nothing else"), "{error}");
        }
        other => panic!("{expected}: {other:?}"),
    }
}

fn changed(payload: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut changed = payload.to_vec();
    changed[at..at + bytes.len()].copy_from_slice(bytes);
    changed
}

#[test]
fn one_gzip_member_is_all_that_is_taken() {
    let check = |payload: &[u8], fault| check_refused(Compression::Gzip, payload, fault);
    let one = compress(Compression::Gzip, &content());
    let empty = compress(Compression::Gzip, b"");
    assert_eq!(unpacked(Compression::Gzip, &one).unwrap(), content());
    for more in [&one[..], &empty, b"\0", b"\x1f\x8b", &[0; 600]] {
        check(&[&one[..], more].concat(), "bytes follow the first member");
    }
    check(&[&empty[..], &one].concat(), "bytes follow the first member");
    check(b"\x1f\x8b\x08", "not a gzip member");
    check(&content(), "not a gzip member");
    let named = GzBuilder::new().filename("a".repeat(600)).comment("b").extra(vec![1; 20]);
    let mut named = named.write(Vec::new(), flate2::Compression::default());
    named.write_all(&content()).unwrap();
    check(&named.finish().unwrap(), "optional fields in the header");
}

#[test]
fn one_snappy_stream_is_all_that_is_taken() {
    let check = |payload: &[u8], fault| check_refused(Compression::Snappy, payload, fault);
    let framed = compress(Compression::Snappy, &content());
    let bare = snap::raw::Encoder::new().compress_vec(&content()).unwrap();
    assert_eq!(unpacked(Compression::Snappy, &framed).unwrap(), content());
    assert_eq!(unpacked(Compression::Snappy, &bare).unwrap(), content());
    check(&[&framed[..], &framed].concat(), "more than one xerial stream");
    for cut in [&[0][..], &[0, 0, 0], &[0, 0, 0, 9, 1], &[0xff; 4]] {
        check(&[&framed[..], cut].concat(), "the last block is cut off");
    }
    for at in [8, 11, 15] {
        check(&changed(&framed, at, &[2]), "a version of xerial's format other than 1");
    }
    check(&framed[..12], "a version of xerial's format other than 1");
    let blocks = |block: &[u8]| [&framed[..], &[0, 0, 0, 5][..], block].concat();
    check(&blocks(&[0, 0, 0, 0, 0]), "a block without content");
    check(&[&framed[..], &[0; 4]].concat(), "a block's length that is no number of 32 bits");
    let length = "a block's length that is no number of 32 bits";
    check(&blocks(&[0x81, 0x00, 0, b'a', 0]), length);
    check(&[0xff, 0xff, 0xff, 0xff, 0x1f, 0, 0, 0], length);
    check(&[0xe0, 0xdd, 0x80, 0x80, 0x80, 0x00, 0, 0], length);
    check(&[5, 0x10, b'a', b'b', b'c', b'd'], "too few bytes for a batch");
}

fn lz4(info: FrameInfo) -> Vec<u8> {
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(&content()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn one_lz4_frame_of_independent_blocks_is_all_that_is_taken() {
    let check = |payload: &[u8], fault| check_refused(Compression::Lz4, payload, fault);
    let independent = || FrameInfo::new().block_mode(BlockMode::Independent);
    let size = content().len() as u64;
    for info in [
        independent(),
        independent().block_checksums(true).content_checksum(true),
        independent().content_size(Some(size)).block_size(BlockSize::Max4MB),
    ] {
        assert_eq!(unpacked(Compression::Lz4, &lz4(info)).unwrap(), content());
    }
    let lie = lz4(independent().content_size(Some(size)));
    let one = lz4(independent());
    let checked = lz4(independent().content_checksum(true));
    let behind = "bytes follow the frame, or its checksum is cut off";
    for more in [&one[..], b"\0", &[0; 4], &[0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0]] {
        check(&[&one[..], more].concat(), behind);
        check(&[&checked[..], more].concat(), behind);
    }
    check(&checked[..checked.len() - 1], behind);
    check(&one[..one.len() - 4], "the frame has no end mark");
    check(&one[..one.len() - 5], "a block is cut off");
    check(&lz4(FrameInfo::new().block_mode(BlockMode::Linked)), "blocks that need the ones before");
    check(&changed(&one, 4, &[0x61]), "a dictionary");
    check(&changed(&one, 4, &[0xa0]), "another version of the format");
    check(&changed(&one, 4, &[0x62]), "another version of the format");
    for descriptor in [0x30, 0x00, 0x41, 0xc0] {
        check(&changed(&one, 5, &[descriptor]), "a block size that does not exist");
    }
    check(&[0x02, 0x21, 0x4c, 0x18, 0, 0, 0, 0], "not an LZ4 frame");
    // The end mark's place gets a block.
    let with = |block: &[u8]| [&one[..one.len() - 4], block, &[0; 4]].concat();
    check(&with(&[0, 0, 0, 0x80]), "a block without content");
    check(&with(&[1, 0, 0, 0, 0]), "a block without content");
    let longer = [&65_537_u32.to_le_bytes()[..], &vec![0; 65_537]].concat();
    check(&with(&longer), "a block that is longer than the frame's block size");
    let wrong_size = changed(&lie, 6, &(size + 1).to_le_bytes());
    assert!(unpacked(Compression::Lz4, &wrong_size).is_err());
}

/// Blocks that decoders read which do not hold the end of a block to the format.
#[test]
fn lz4_blocks_end_with_literals() {
    let fault = "a block that does not end as LZ4 blocks must";
    // Eight literals, a match of 8 bytes, and fewer than five literals behind it.
    let head = [0x84, 1, 2, 3, 4, 5, 6, 7, 8, 8, 0];
    for literals in 0_u8..8 {
        let last: Vec<u8> = (0..literals).collect();
        let block = [&head[..], &[literals << 4], &last].concat();
        let expected = if literals < 5 { Err(fault) } else { Ok(()) };
        assert_eq!(check_lz4_block(&block, 64 << 10), expected, "{literals}");
        let read = lz4_flex::block::decompress(&block, 100).unwrap();
        assert_eq!(read.len(), 16 + usize::from(literals));
        // What it can hold at most leaves the match at the end, or not.
        let roomy = check_lz4_block(&block, 20);
        let tight = check_lz4_block(&block, 19);
        assert_eq!((roomy, tight), (expected, Err(fault)));
    }
    assert_eq!(check_lz4_block(&[0x10, 7], 64 << 10), Ok(()));
    assert_eq!(check_lz4_block(&head, 64 << 10), Err("a block is cut off"));
}

#[test]
fn one_zstd_frame_is_all_that_is_taken() {
    let check = |payload: &[u8], fault| check_refused(Compression::Zstd, payload, fault);
    let one = compress(Compression::Zstd, &content());
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 7];
    assert_eq!(unpacked(Compression::Zstd, &one).unwrap(), content());
    for more in [&one[..], &skippable, &[0; 3]] {
        check(&[&one[..], more].concat(), "bytes follow the frame");
    }
    check(&[&skippable[..], &one].concat(), "not a zstd frame");
    // The magic of version 0.7.
    check(&changed(&one, 0, &[0x27]), "not a zstd frame");
    check(&changed(&one, 4, &[one[4] | 1]), "a dictionary");
    check(&one[..one.len() - 1], "not a whole zstd frame");
}

#[test]
fn a_window_is_as_small_as_its_content_allows_and_never_larger_than_64_mib() {
    let frame = |descriptor: u8| [0x28, 0xb5, 0x2f, 0xfd, 0, descriptor, 1, 0, 0];
    let window = |descriptor: u8, content_bytes: usize| {
        with_small_window(&frame(descriptor), content_bytes)
            .map(|changed| changed.map(|frame| zstd_window(&frame).unwrap() >> 20))
            .map_err(|_| ())
    };
    let of_exponent = |exponent: u8| (exponent - 10) << 3;
    assert_eq!(window(of_exponent(23), 100 << 20), Ok(None));
    assert_eq!(window(of_exponent(24), 1), Ok(Some(8)));
    assert_eq!(window(of_exponent(27), 8 << 20), Ok(Some(8)));
    assert_eq!(window(of_exponent(27), (8 << 20) + 1), Ok(Some(16)));
    assert_eq!(window(of_exponent(27), 64 << 20), Ok(Some(64)));
    assert_eq!(window(of_exponent(27), (64 << 20) + 1), Err(()));
    assert_eq!(window(of_exponent(26), 100 << 20), Ok(None));
    assert_eq!(window(of_exponent(26) | 1, 100 << 20), Err(()));
    // A single segment, whose window is its content.
    let segment = [&[0x28, 0xb5, 0x2f, 0xfd, 0xa0][..], &(80_u32 << 20).to_le_bytes()].concat();
    assert!(with_small_window(&segment, 80 << 20).is_err());
}

proptest! {
    #[test]
    fn what_encoders_write_is_taken(
        data in proptest::collection::vec(0_u8..4, 1..100_000),
        noise in proptest::collection::vec(any::<u8>(), 0..2_000),
        level in 1_i32..20,
    ) {
        let data = [&data[..], &noise, &data].concat();
        for compression in Compression::ALL {
            let packed = compress(compression, &data);
            prop_assert_eq!(&unpacked(compression, &packed).unwrap(), &data, "{:?}", compression);
        }
        let packed = zstd::bulk::compress(&data, level).unwrap();
        prop_assert_eq!(&unpacked(Compression::Zstd, &packed).unwrap(), &data);
    }

    #[test]
    fn any_payload_is_taken_or_refused(
        data in proptest::collection::vec(any::<u8>(), 0..300),
        at in 0_usize..10_000,
        value: u8,
        codec in 1_usize..5,
    ) {
        let codec = Compression::ALL[codec];
        let mut packed = compress(codec, &content()).to_vec();
        let at = at % packed.len();
        packed[at] = value;
        for payload in [&data[..], &packed, &packed[..at]] {
            let _ = unpacked(codec, payload);
        }
    }
}
