"""Exact sums of 64-bit quantities in 64-bit numbers: several times as fast as sums of decimals."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

from spark_usage.schemas import QUANTITY

# A sum of as many as 2^31 lower halves fits into 63 bits; beyond, ANSI arithmetic ends the job.
_BITS = 32
_MASK = (1 << _BITS) - 1


def halves(name: str) -> tuple[Column, Column]:
    """A column of 64-bit integers as two: its upper 32 bits with the sign, and its lower 32."""
    column = sf.col(name)
    return sf.shiftright(column, _BITS), column.bitwiseAND(sf.lit(_MASK).cast("long"))


def whole(high: str, low: str) -> Column:
    """The sum of quantities, from the sums of their halves."""
    upper = sf.col(high).cast("decimal(19,0)") * sf.lit(1 << _BITS).cast("decimal(10,0)")
    return (upper + sf.col(low).cast("decimal(19,0)")).cast(QUANTITY)


def joined(high: int | None, low: int | None) -> int:
    """As `whole`, of collected sums; of no rows they are null."""
    return ((high or 0) << _BITS) + (low or 0)
