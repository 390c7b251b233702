"""What was acknowledged is there byte for byte, however often the broker was killed."""

import random

import pytest

from tests.clients.chaos import ChaosError
from tests.clients.volume import MIB, POOL_BYTES, Sent, check_all, run_volume


@pytest.mark.timeout(300)
def test_log_is_byte_for_byte_what_was_acknowledged_before_kills(tmp_path):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    summary = run_volume(tmp_path, total_bytes=48 * MIB, kills=4, seed=seed)
    assert summary["kills"] == 4


@pytest.fixture
def sent():
    """Two producers whose records were all acknowledged, in turn, in one partition."""
    pool = random.Random(0).randbytes(POOL_BYTES)
    both = [Sent(who, 40_000, 1, pool) for who in range(2)]
    offset = 0
    for producer in both:
        for number in range(len(producer.sizes)):
            producer.acked(number, 0, offset)
            offset += 1
    return both


@pytest.fixture
def log(sent):
    """What a sound log has of them."""
    return [
        (0, producer.offsets[number], producer.value(number))
        for producer in sent
        for number in range(len(producer.sizes))
    ]


def test_sound_log_is_accepted(sent, log):
    check_all("a test", sent, iter(log))


def test_missing_record_is_found(sent, log):
    with pytest.raises(ChaosError, match="1 of 1, the first"):
        check_all("a test", sent, iter(log[:-1]))


def test_repeated_record_is_found(sent, log):
    with pytest.raises(ChaosError, match="once more"):
        check_all("a test", sent, iter([*log, log[0]]))


def test_record_at_another_offset_is_found(sent, log):
    partition, offset, value = log[1]
    with pytest.raises(ChaosError, match=f"0@{offset + 1} is .*, whose acknowledgement said"):
        check_all("a test", sent, iter([log[0], (partition, offset + 1, value)]))


def test_one_flipped_bit_is_found(sent, log):
    longest = max(range(len(log)), key=lambda at: len(log[at][2]))
    partition, offset, value = log[longest]
    flipped = value[:-1] + bytes([value[-1] ^ 1])
    log[longest] = (partition, offset, flipped)
    with pytest.raises(ChaosError, match="none of the records"):
        check_all("a test", sent, iter(log))


def test_record_that_nobody_sent_is_found(sent, log):
    with pytest.raises(ChaosError, match="none of the records"):
        check_all("a test", sent, iter([*log, (0, len(log), None)]))
