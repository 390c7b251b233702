"""How a free allowance is shared and used up. Pure; quantities are base units of their meters."""

from __future__ import annotations

from collections.abc import Mapping

from billing.catalog import TRAFFIC
from billing.money import allocate_amount

# So much of a trial is little: its organization gets a mail.
LITTLE_PERCENT = 20

# Meter → quantity.
Quantities = Mapping[str, int]


def split_pool(pool: int, used: Mapping[str, int]) -> dict[str, int]:
    """Organization → its share of a payer's allowance of one meter, in proportion to what it used.

    By largest remainder: the shares are whole and sum to the pool, or to 0 where nobody used
    anything. Where all of them together used no more than the pool, each has at least what it used.
    """
    return dict.fromkeys(used, 0) | allocate_amount(pool, used)


def split_allowance(pool: Quantities, used: Mapping[str, Quantities]) -> dict[str, dict[str, int]]:
    """Organization → meter → its share of a payer's allowance. `used`: by organization."""
    shares: dict[str, dict[str, int]] = {owner: {} for owner in used}
    for meter, quantity in pool.items():
        of_meter = {owner: quantities.get(meter, 0) for owner, quantities in used.items()}
        for owner, share in split_pool(quantity, of_meter).items():
            shares[owner][meter] = share
    return shares


def shares_taken(pool: Quantities, used: Mapping[str, Quantities]) -> dict[str, dict[str, int]]:
    """Organization → meter → what invoices take of an allowance: no more than was used.

    What they do not take stays for other organizations of the payer. Of each meter they take
    together the lesser of the allowance and of what all of them used.
    """
    return {
        owner: {meter: min(share, used[owner].get(meter, 0)) for meter, share in shares.items()}
        for owner, shares in split_allowance(pool, used).items()
    }


def subtract(quantities: Quantities, others: Quantities) -> dict[str, int]:
    """Meter → what is left of quantities without others; not below zero."""
    return {meter: max(0, n - others.get(meter, 0)) for meter, n in quantities.items()}


def add(quantities: Quantities, others: Quantities) -> dict[str, int]:
    """Meter → the sum of two quantities."""
    meters = quantities.keys() | others.keys()
    return {meter: quantities.get(meter, 0) + others.get(meter, 0) for meter in meters}


def trial_left(trial: Quantities, used: Quantities) -> dict[str, int]:
    """What is left of a trial of which so much was used."""
    return subtract(trial, used)


def trial_part(left: Quantities, used: Quantities) -> dict[str, int]:
    """Meter → what a month uses up of the trial that was left at its beginning."""
    return {meter: min(used.get(meter, 0), quantity) for meter, quantity in left.items()}


def free_of_trial(left: Quantities, used: Quantities) -> dict[str, int]:
    """Meter → what is free in a month of an organization without a payer.

    Of what is kept, what is left of the trial. All traffic: the clusters refuse it once the trial
    is used up, and what slips past that was never agreed to be paid. When a payer comes it stays
    free, and is no part of the payer's allowance.
    """
    free = trial_part(left, used)
    return free | {meter: n for meter, n in used.items() if meter in TRAFFIC}


def is_used_up(left: Quantities, used: Quantities) -> bool:
    """Whether nothing is left of a trial for some meter, or there is none at all."""
    return not left or any(used.get(meter, 0) >= quantity for meter, quantity in left.items())


def is_nearly_used_up(trial: Quantities, left: Quantities, used: Quantities) -> bool:
    """Whether of some meter of a trial no more than a fifth is left. `used`: since `left`."""
    return any(
        100 * (left.get(meter, 0) - used.get(meter, 0)) <= LITTLE_PERCENT * quantity
        for meter, quantity in trial.items()
        if quantity
    )


def sum_by_meter(totals: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """Meter → the sum of an organization's (cluster, meter) → quantity."""
    sums: dict[str, int] = {}
    for (_, meter), quantity in totals.items():
        sums[meter] = sums.get(meter, 0) + quantity
    return sums
