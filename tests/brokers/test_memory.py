"""A broker takes no more memory than its budgets allow, whatever its clients and its disk do."""

import pytest

from tests.brokers.memory import BUDGET, MIB, push

# Many times as much as the budgets allow: memory outside of the budgets would show.
FEW_MIB, MANY_MIB = 240, 1024


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mib", [FEW_MIB, pytest.param(MANY_MIB, marks=pytest.mark.full)])
def test_memory_stays_within_its_budgets_on_a_slow_disk(tmp_path, mib):
    assert mib * MIB > 1.25 * BUDGET
    outcome = push(tmp_path, mib)
    assert outcome.sent >= mib * MIB
    assert outcome.acked > 0
    assert outcome.grown <= BUDGET, outcome
