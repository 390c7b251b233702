//! What holds for the end of a lane that is about to be sealed.

use super::scan::TailScan;
use freshet_world::invariants::BrokenInvariant;

/// The copies that SEAL is to hold reach from the blocks that are sure to be on disk to the end,
/// without a gap. SEAL fixes the end for ever: a block between the two that was not copied may be
/// in a server's cache alone, and with that server's power acknowledged records would be lost.
///
/// # Errors
/// That it does not hold.
pub fn copies_reach_from_the_sure_blocks_to_the_end(
    scan: &TailScan,
) -> Result<(), BrokenInvariant> {
    let sequences: Vec<u64> = scan.unsure.iter().map(|copy| copy.block.header.sequence).collect();
    let follow_each_other = sequences.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let reach_the_end = match (sequences.first(), sequences.last()) {
        (Some(first), Some(last)) => *last == scan.end.sequence && *first > scan.sure_sequence,
        _ => scan.end.sequence <= scan.sure_sequence || scan.end.sequence == 0,
    };
    if follow_each_other && reach_the_end {
        return Ok(());
    }
    let (sure, end) = (scan.sure_sequence, scan.end.sequence);
    Err(BrokenInvariant::new(
        "copies_reach_from_the_sure_blocks_to_the_end",
        format_args!("blocks {sequences:?} are to be copied; sure up to {sure}, end at {end}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::LaneEnd;
    use crate::lane::block::{Block, BlockKind, BlockLabel, encode};
    use crate::lane::scan::PlacedBlock;
    use bytes::Bytes;
    use freshet_wire::ids::Incarnation;

    fn copy(sequence: u64) -> PlacedBlock {
        let label = BlockLabel {
            kind: BlockKind::Usage,
            incarnation: Incarnation(1),
            sequence,
            durable_sequence: 0,
            nonce: 1,
            written_at_ms: 0,
        };
        let raw = Bytes::from(encode(label, &[], Vec::new()).concat());
        let block = Block::parse(&raw).unwrap();
        PlacedBlock { file: 0, position: sequence * 4096, raw, block }
    }

    fn holds(sure_sequence: u64, copies: &[u64], end: u64) -> bool {
        let scan = TailScan {
            end: LaneEnd { file: 0, sequence: end },
            sure_sequence,
            unsure: copies.iter().copied().map(copy).collect(),
        };
        copies_reach_from_the_sure_blocks_to_the_end(&scan).is_ok()
    }

    #[test]
    fn it_can_hold_and_be_broken() {
        assert!(holds(0, &[], 0), "an empty lane");
        assert!(holds(3, &[], 3) && holds(3, &[4, 5], 5));
        assert!(!holds(3, &[4, 6], 6), "a gap");
        assert!(!holds(3, &[4, 5], 6), "the end was not copied");
        assert!(!holds(3, &[], 4), "nothing was copied");
        assert!(!holds(3, &[3, 4], 4), "a sure block");
    }
}
