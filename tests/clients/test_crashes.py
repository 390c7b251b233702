"""Nothing is lost, duplicated or reordered while the broker is killed under its clients."""

import random

import pytest

from tests.brokers.batches import Record
from tests.clients.chaos import ChaosError, Run, check_log, run_chaos
from tests.clients.producers import PRODUCERS


@pytest.mark.timeout(600)
def test_killed_broker_loses_duplicates_and_reorders_nothing(tmp_path):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    summary = run_chaos(tmp_path, records=15_000, kills=5, seed=seed, clients=list(PRODUCERS))
    assert summary["kills"] == 5


def log_of(values):
    """A log of one partition with these values."""
    for offset, value in enumerate(values):
        yield 0, Record(offset, 0, 1, 0, offset, None, value.encode())


def run_of(tmp_path, values):
    """A run of one producer in which every record was acknowledged and read where it is due."""
    run = Run(tmp_path, len(values), 0, 0, ["librdkafka"])
    for offset, value in enumerate(values):
        run.acks[0].acked(offset, 0, offset)
        run.consumed.values.setdefault(0, {})[offset] = value.encode()
    return run


SENT = ["0.0", "0.1", "0.2"]


def test_sound_log_is_accepted(tmp_path):
    check_log(run_of(tmp_path, SENT), log_of(SENT))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["0.0", "0.1"], "0.2 is at None"),
        (["0.0", "0.1", "0.2", "0.1"], "0.1 is at"),
        (["0.0", "0.2", "0.1"], "the group read b'0.1'"),
        (["0.1", "0.0", "0.2"], "the group read b'0.0'"),
        (["0.0", "0.1", "0.2", "0.3"], "the group read None"),
    ],
)
def test_unsound_log_is_refused(tmp_path, values, said):
    with pytest.raises(ChaosError, match=said):
        check_log(run_of(tmp_path, SENT), log_of(values))


def test_reordered_log_is_refused_even_where_clients_agree_with_it(tmp_path):
    run = run_of(tmp_path, SENT)
    values = ["0.0", "0.2", "0.1"]
    run.acks[0].places = {0: (0, 0), 1: (0, 2), 2: (0, 1)}
    run.consumed.values[0] = {offset: value.encode() for offset, value in enumerate(values)}
    with pytest.raises(ChaosError, match=r"0\.1 follows 2"):
        check_log(run, log_of(values))
