"""How much a key may take at once, and how it comes back."""

import pytest

from console.base.common.allowances import Allowances

BURST_S = 2.0


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def allowances(clock):
    return Allowances(BURST_S, share_of=lambda key: 0.5 if key == "half" else 1.0, clock=clock)


def test_what_was_taken_comes_back_at_the_keys_share_up_to_the_burst(allowances, clock):
    assert allowances.left("half") == BURST_S
    allowances.take("half", 5.0)
    assert (allowances.left("half"), allowances.back_in("half")) == (-3.0, 6.0)
    clock.now += 6.0
    assert (allowances.left("half"), allowances.back_in("half")) == (0.0, 0.0)
    clock.now += 100.0
    assert allowances.left("half") == BURST_S
    assert allowances.left("other") == BURST_S


def test_keys_that_have_all_again_are_forgotten_though_nobody_asks_for_them(allowances, clock):
    for number in range(1_000):
        allowances.take(f"key-{number}", 1.0)
        clock.now += 0.125
    # Those of the last second.
    assert len(allowances.keys()) == 8
    allowances.take("half", 50.0)
    clock.now += 10.0
    allowances.take("other", 0.0)
    assert set(allowances.keys()) == {"half", "other"}
