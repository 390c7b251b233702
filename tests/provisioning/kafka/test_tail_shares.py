"""What live tails of one organization may read of a process in a second."""

import pytest

from provisioning.administration.services.tail_shares import BURST_S, TailShares

RECORDS_PER_S, BYTES_PER_S = 100.0, 1_000.0


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def shares(clock):
    return TailShares(records_per_s=RECORDS_PER_S, bytes_per_s=BYTES_PER_S, clock=clock)


def test_tails_of_one_organization_share_its_records(shares, clock):
    read, wait_s = 0, 0.0
    # Twenty tails, each of which waits for what `pay` returned.
    resumes = dict.fromkeys(range(20), 0.0)
    while clock.now < 60.0:
        tail = min(resumes, key=resumes.__getitem__)
        clock.now = max(clock.now, resumes[tail])
        wait_s = shares.pay("one", records=10, size=10)
        read += 10
        resumes[tail] = clock.now + wait_s + 0.001
    assert wait_s > 0
    # What all of them may be ahead by is a batch each.
    assert read <= RECORDS_PER_S * (60.0 + BURST_S) + 20 * 10
    assert read >= RECORDS_PER_S * 55.0


def test_bytes_count_as_well_as_records(shares):
    assert shares.pay("one", records=1, size=int(BYTES_PER_S * BURST_S)) == 0
    assert shares.pay("one", records=1, size=int(BYTES_PER_S * 3)) == pytest.approx(3.0)


def test_another_organization_waits_for_nothing(shares):
    shares.pay("one", records=100_000, size=0)
    assert shares.pay("two", records=1, size=1) == 0


def test_who_reads_little_never_waits(shares, clock):
    for _ in range(1_000):
        assert shares.pay("one", records=24, size=100) == 0
        clock.now += 0.25


def test_organizations_that_read_nothing_are_forgotten(shares, clock):
    shares.pay("one", records=1, size=1)
    clock.now += 10.0
    shares.pay("two", records=1, size=1)
    assert set(shares._records.keys()) == set(shares._bytes.keys()) == {"two"}
