"""One hash of a roll-up's content that depends neither on the order nor on the files of its rows.

Each row is written as `<bytes>:<text>` for each column in the order of `ROLLUP_SCHEMA` (integers in
decimal digits, `true` or `false`), and hashed with SHA-256. The four 64-bit numbers of which such a
hash consists are each summed over all rows; `content_sha256` hashes the sums. So equal tables have
equal hashes, and, unlike with XOR, rows that are there twice do not cancel out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sf

from spark_usage.schemas import QUANTITY, ROLLUP_SCHEMA, USAGE_SCHEMA

_PARTS = range(4)


@dataclass(frozen=True, slots=True)
class TableContent:
    """The content of a table of `ROLLUP_SCHEMA`. `totals` and `rows` are by meter, `sums` are the
    four sums of hashes."""

    rows: Mapping[str, int]
    source_rows: int
    totals: Mapping[str, int]
    sums: tuple[int, ...]

    @property
    def row_count(self) -> int:
        """The number of rows of all meters."""
        return sum(self.rows.values())


def content_sums(tables: Mapping[str, DataFrame]) -> DataFrame:
    """For tables by name, one row for each meter: `table`, `meter`, `rows`, `source_rows`,
    `quantity`, and the sums of hashes `part_0` to `part_3`."""
    tables_with_names = [
        frame.select(sf.lit(name).alias("table"), *ROLLUP_SCHEMA.names)
        for name, frame in tables.items()
    ]
    texts = [sf.col(name).cast("string") for name in ROLLUP_SCHEMA.names]
    parts = _hash_parts(texts)
    names = [f"part_{part}" for part in _PARTS]
    return (
        reduce(DataFrame.unionAll, tables_with_names)
        .groupBy("table", "meter")
        .agg(
            sf.count(sf.lit(1)).alias("rows"),
            sf.sum("source_rows").alias("source_rows"),
            sf.sum("quantity").cast(QUANTITY).alias("quantity"),
            *(sf.sum(part).alias(name) for name, part in zip(names, parts, strict=True)),
        )
        .select("table", "meter", "rows", "source_rows", "quantity", *names)
    )


def row_sums(rows: DataFrame, flaw: Column | None = None) -> DataFrame:
    """One row for usage rows in any order, copies included: their number `rows`, how many have a
    `flaw`, and the sums of hashes `part_0` to `part_3` over all columns of `USAGE_SCHEMA`."""
    # A null is written as `-`, which no text is that has its length before it.
    texts = [sf.col(name).cast("string") for name in USAGE_SCHEMA.names]
    return rows.agg(
        sf.count(sf.lit(1)).alias("rows"),
        sf.count_if(sf.lit(False) if flaw is None else flaw).alias("flawed"),
        *(sf.sum(part).alias(f"part_{at}") for at, part in enumerate(_hash_parts(texts))),
    )


def row_hash(sums: Iterable[Row]) -> str:
    """The hash of usage rows, as 64 hex digits, from the row of `row_sums`."""
    (row,) = sums
    figures = [row["rows"], *(row[f"part_{part}"] or 0 for part in _PARTS)]
    return hashlib.sha256(":".join(map(str, figures)).encode()).hexdigest()


def _hash_parts(texts: Iterable[Column]) -> list[Column]:
    """The four numbers of a row's hash, of which each is a decimal; a null is `-`."""
    counted = [
        sf.coalesce(sf.concat(sf.octet_length(text), sf.lit(":"), text), sf.lit("-"))
        for text in texts
    ]
    digest = sf.sha2(sf.concat(*counted), 256)
    return [
        sf.conv(sf.substring(digest, 1 + 16 * part, 16), 16, 10).cast("decimal(20,0)")
        for part in _PARTS
    ]


def table_content(rows: Iterable[Row]) -> TableContent:
    """One table's content, from its rows of `content_sums`."""
    collected = sorted(rows, key=lambda row: str(row["meter"]))
    return TableContent(
        rows={row["meter"]: row["rows"] for row in collected},
        source_rows=sum(row["source_rows"] for row in collected),
        totals={row["meter"]: int(row["quantity"]) for row in collected},
        sums=tuple(sum(int(row[f"part_{part}"]) for row in collected) for part in _PARTS),
    )


def content_sha256(tables: Mapping[str, TableContent]) -> str:
    """The hash of tables by name, as 64 hex digits: SHA-256 of the lines
    `<name>:<rows>:<sum>:<sum>:<sum>:<sum>`, in the order of names."""
    lines = [
        ":".join(map(str, (name, content.row_count, *content.sums)))
        for name, content in sorted(tables.items())
    ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
