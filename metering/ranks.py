"""Ranks of parts: about what a topic or a principal costs, on a scale of powers of two.

A part's rank is stored with it, in an index. Who looks for the dearest parts reads those of the
highest ranks, and bounds by it what all others can cost at most: so that of 50,000 topics some
hundreds are read. Which parts are the dearest does not depend on the scale, which decides only how
many are read: the fewer, the more alike it counts meters as their prices do.
"""

from __future__ import annotations

import math

from django.db.models import F, FloatField, SmallIntegerField, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Floor, Greatest, Ln

from metering.choices import UsageMeter

# What a base unit of each meter counts for: by the first list of prices, in millionths of a dollar.
# A change needs a migration that makes ranks anew, and is worth it only where prices changed much.
COUNTS_FOR = {
    UsageMeter.INGRESS_BYTES.value: 3.7253e-5,
    UsageMeter.EGRESS_BYTES.value: 3.7253e-5,
    UsageMeter.STORAGE_BYTE_MINUTES.value: 1.2935e-9,
    UsageMeter.PARTITION_MINUTES.value: 8.3333,
}
# Ranks to each doubling. A rank that changes takes an entry of the index, so it changes seldom.
RANKS = 32
# Multiplies the natural logarithm.
SCALE = RANKS / math.log(2)


def rank_of_row() -> Cast:
    """The rank of a row of parts, as PostgreSQL stores it."""
    counted: Combinable = Value(0.0)
    for meter, counts_for in COUNTS_FOR.items():
        counted += Cast(F(meter), FloatField()) * Value(counts_for)
    size = Value(1.0) + Greatest(counted, Value(0.0))
    return Cast(Floor(Ln(size) * Value(SCALE)), SmallIntegerField())


def rank_of(size: str) -> str:
    """SQL of the rank of a size, which is an SQL expression of what a part counts for."""
    return f"floor(ln(1 + {size}) * {SCALE!r})::int"
