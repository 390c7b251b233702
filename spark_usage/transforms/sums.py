"""Exact sums of 64-bit quantities in 64-bit arithmetic: several times as fast as decimals."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

from spark_usage.schemas import QUANTITY

# A sum of 2^31 lower halves fits into 63 bits. With more rows ANSI arithmetic ends the job.
_BITS = 32
_MASK = (1 << _BITS) - 1


def split_halves(name: str) -> tuple[Column, Column]:
    """A column of 64-bit integers as two: the upper 32 bits with the sign, and the lower 32."""
    column = sf.col(name)
    return sf.shiftright(column, _BITS), column.bitwiseAND(sf.lit(_MASK).cast("long"))


def whole_sum(high: str, low: str) -> Column:
    """The sum of quantities as a decimal, from the columns with the sums of their halves."""
    upper = sf.col(high).cast("decimal(19,0)") * sf.lit(1 << _BITS).cast("decimal(10,0)")
    return (upper + sf.col(low).cast("decimal(19,0)")).cast(QUANTITY)


def join_halves(high: int | None, low: int | None) -> int:
    """The same as `whole_sum` for collected sums, which are null where there are no rows."""
    return ((high or 0) << _BITS) + (low or 0)
