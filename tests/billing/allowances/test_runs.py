"""Runs of invoices against one payer's allowance, in any order, against a plain sum."""

from datetime import date
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from billing.allowances.services import MonthAllowances
from billing.catalog import GIB, Catalog, MeterPrice

MONTH = date(2026, 9, 1)
METER = "ingress_bytes"
PRICE = MeterPrice(METER, Decimal("0.04"), "GiB", free_units=10, free_unit="GiB")
CATALOG = Catalog("prv_x", "USD", {METER: PRICE})
POOL = 10 * GIB
OWNERS = [f"org_{n}" for n in range(6)]

owners = st.sampled_from(OWNERS)
quantities = st.sampled_from([0, 1, 20_000_000, 3 * GIB, 5 * GIB + 1, POOL, 40 * GIB])
events = st.one_of(
    st.tuples(st.just("use"), owners, quantities),
    st.tuples(st.just("join"), owners),
    st.tuples(st.just("leave"), owners),
    # An early invoice of one, such as a closed organization's, or a run over some.
    st.tuples(st.just("issue"), st.sets(owners, min_size=1)),
)


class Payer:
    """One payer's month: who shares its allowance, what they used, and what is invoiced."""

    def __init__(self, members):
        self.members, self.used, self.past = set(members), dict.fromkeys(OWNERS, 0), {}
        self.free = {}

    def use(self, owner, quantity):
        if owner not in self.free:
            self.used[owner] += quantity

    def join(self, owner):
        if owner not in self.members | self.free.keys():
            # What was used until now slipped past the end of a trial.
            self.past[owner] = {METER: self.used[owner]}
            self.members.add(owner)

    def leave(self, owner):
        if owner not in self.free:
            self.members.discard(owner)

    def issue(self, run, batch=2):
        due = sorted((run & self.members) - self.free.keys())
        for start in range(0, len(due), batch):
            issued = due[start : start + batch]
            allowances = self.allowances(due)
            allowances.take(issued)
            for owner in issued:
                taken = allowances.fixed[owner]
                assert 0 <= taken.free[METER] <= self.used[owner]
                assert taken.free[METER] >= self.slipped(owner)
                self.free[owner] = taken.free[METER]

    def allowances(self, run):
        """What is free before some invoices, as it is read from the tables."""
        taken = sum(free - self.slipped(owner) for owner, free in self.free.items())
        return MonthAllowances(
            MONTH,
            CATALOG,
            taken={"pyr_x": {METER: taken}},
            payers=dict.fromkeys(self.members, "pyr_x"),
            groups={"pyr_x": sorted(set(run) - self.free.keys())},
            free_before=self.past,
            used={owner: {METER: quantity} for owner, quantity in self.used.items()},
        )

    def slipped(self, owner):
        return self.past.get(owner, {}).get(METER, 0)

    def total(self):
        """What was free of the pool, and what was used of it, of all that are invoiced."""
        free = sum(n - self.slipped(owner) for owner, n in self.free.items())
        return free, sum(self.used[owner] - self.slipped(owner) for owner in self.free)


@given(members=st.sets(owners), steps=st.lists(events, max_size=30))
def test_whatever_the_order_what_is_free_is_the_pool_or_all_that_was_used(members, steps):
    payer = Payer(members)
    for kind, *arguments in steps:
        getattr(payer, kind)(*arguments)
        free, used = payer.total()
        assert free == min(POOL, used)
    payer.issue(payer.members)
    free, used = payer.total()
    assert free == min(POOL, used)


@given(used=st.lists(quantities, min_size=1, max_size=len(OWNERS)), batch=st.integers(1, 6))
def test_in_one_run_no_share_depends_on_its_batch(used, batch):
    members = OWNERS[: len(used)]
    shares = []
    for size in (batch, len(OWNERS)):
        payer = Payer(members)
        payer.used |= dict(zip(members, used, strict=True))
        payer.issue(set(members), batch=size)
        shares.append(payer.free)
    # But for the units by which shares are rounded.
    assert all(abs(shares[0][owner] - shares[1][owner]) <= len(members) for owner in members)


@given(used=st.lists(quantities, min_size=2, max_size=len(OWNERS)))
def test_an_estimate_is_what_a_run_over_all_takes(used):
    members = OWNERS[: len(used)]
    payer = Payer(members)
    payer.used |= dict(zip(members, used, strict=True))
    estimates = payer.allowances(members)
    payer.issue(set(members), batch=len(members))
    for owner in members:
        free = estimates.free_of(owner, {("cl_x", METER): payer.used[owner]})[METER]
        assert min(free, payer.used[owner]) == payer.free[owner]
