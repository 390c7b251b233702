"""A broker takes no more memory than its budgets allow, whatever its clients and its disk do."""

import pytest

from tests.brokers.memory import BUDGET, MIB, push

# More than twice what the budgets allow: what is in none of them would show.
PUSHED_MIB = 320


@pytest.mark.timeout(240)
def test_memory_stays_within_its_budgets_on_a_slow_disk(tmp_path):
    outcome = push(tmp_path, PUSHED_MIB)
    assert outcome.sent >= PUSHED_MIB * MIB
    assert outcome.acked > 0
    assert outcome.grown <= BUDGET, outcome
