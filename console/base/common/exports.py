"""An organization's data as a ZIP archive of JSON lines, which is written while it is sent.

The archive has one file for each table with an organization's rows; a new table is included without
further code. Columns with secrets, or values derived from them, are left out by their names
(`SECRET`), and so are binary columns. An application adds data outside of PostgreSQL by
`register_source`. `ArchiveEncoder` says how columns become JSON.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.apps import apps
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from psycopg.types.multirange import Multirange
from psycopg.types.range import Range
from typing_extensions import override

from console.base.common.clock import now
from console.base.common.tenancy import organization_scope
from console.base.common.transactions import request_transaction

if TYPE_CHECKING:
    from typing_extensions import Buffer

PAGE_ROWS = 500
# At least so many compressed bytes are collected before they are sent.
CHUNK_BYTES = 64 * 1024
SECRET = re.compile(r"secret|password|verifier|sealed|salt|token|digest|stored_key|server_key")
# Tables with the service's own bookkeeping: what is not delivered or issued yet (tasks, audit
# entries, invoices), and answers to repeated requests.
LEFT_OUT = frozenset(
    {
        "billing_missinginvoice",
        "common_idempotencyrecord",
        "common_outboxentry",
        "common_taskturn",
        "common_waitingtask",
        "provisioning_announcement",
    }
)

Row = Mapping[str, object]
Source = Callable[[str], Iterable[Row]]

_sources: dict[str, Source] = {}


def register_source(name: str, source: Source) -> None:
    """Adds the file `<name>.jsonl` to archives, with the rows that `source` returns.

    `source` takes an organization's id. It is called, and read to its end, within the
    organization's tenancy scope.
    """
    _sources[name] = source


def exported_tables() -> dict[str, type[models.Model]]:
    """Returns the models whose rows are exported, by the name of their file."""
    return {
        model._meta.db_table: model
        for model in apps.get_models()
        if organization_column(model) is not None and model._meta.db_table not in LEFT_OUT
    }


def organization_column(model: type[models.Model]) -> str | None:
    """Returns the column with the organization's id; None for a table without tenants' rows."""
    if model._meta.db_table == "accounts_organization":
        return "id"
    names = {field.attname for field in model._meta.concrete_fields}
    return "organization_id" if "organization_id" in names else None


def exported_columns(model: type[models.Model]) -> list[str]:
    """Returns the columns of a table that are exported."""
    return [
        field.attname
        for field in model._meta.concrete_fields
        if not isinstance(field, models.BinaryField) and not SECRET.search(field.attname)
    ]


class ArchiveEncoder(DjangoJSONEncoder):
    """Encodes the values of columns that JSON has no type for.

    - Times and days are ISO 8601, times with milliseconds and in UTC; decimals are strings.
    - A range is `{"lower": …, "upper": …, "bounds": "[)"}`. A bracket in `bounds` says that the end
      belongs to the range, a parenthesis that it does not; a null end is unbounded. An empty range
      has two null ends, and `bounds` is `empty`.
    - A multirange is the list of its ranges in ascending order.
    """

    @override
    def default(self, o: Any) -> Any:
        if isinstance(o, Multirange):
            return list(o)
        if isinstance(o, Range):
            bounds = "empty" if o.isempty else o.bounds
            return {"lower": o.lower, "upper": o.upper, "bounds": bounds}
        return super().default(o)


async def export_archive(organization_id: str) -> AsyncIterator[bytes]:
    """Yields the archive's bytes. Each page of a table is read in a transaction of its own."""
    parts = _archive_parts(organization_id)
    while part := await sync_to_async(_next_part)(parts):
        yield part


def _next_part(parts: Iterator[bytes]) -> bytes:
    # A `StopIteration` must not leave a thread of `sync_to_async`: the empty part says the end.
    return next(parts, b"")


def _archive_parts(organization_id: str) -> Iterator[bytes]:
    sink = _Sink()
    moment = now().timetuple()[:6]
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, rows in _archive_files(organization_id):
            entry = zipfile.ZipInfo(f"{name}.jsonl", moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as file:
                for row in rows:
                    line = json.dumps(row, cls=ArchiveEncoder, ensure_ascii=False)
                    file.write(line.encode() + b"\n")
                    if len(sink.parts) >= CHUNK_BYTES:
                        yield sink.take()
    yield sink.take()


def _archive_files(organization_id: str) -> Iterator[tuple[str, Iterable[Row]]]:
    """Yields the name of each file, without its ending, and its rows."""
    for name, model in sorted(exported_tables().items()):
        yield name, _rows_of_table(model, organization_id)
    for name, source in sorted(_sources.items()):
        yield name, _rows_of_source(source, organization_id)


def _rows_of_table(model: type[models.Model], organization_id: str) -> Iterator[Row]:
    column, columns = organization_column(model) or "", exported_columns(model)
    last: Any = None
    while True:
        with organization_scope(organization_id):
            rows = model._base_manager.filter(**{column: organization_id}).order_by("pk")
            if last is not None:
                rows = rows.filter(pk__gt=last)
            page = list(rows[:PAGE_ROWS])
        yield from ({name: getattr(row, name) for name in columns} for row in page)
        if len(page) < PAGE_ROWS:
            return
        last = page[-1].pk


def _rows_of_source(source: Source, organization_id: str) -> list[Row]:
    # What a source asks a cell interrupts the transaction, as in a request.
    with request_transaction(), organization_scope(organization_id):
        return list(source(organization_id))


class _Sink(io.RawIOBase):
    """Collects what the archive writes. It is not seekable, so `zipfile` never goes back."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = bytearray()

    def writable(self) -> bool:
        """Returns True."""
        return True

    def write(self, data: Buffer, /) -> int:
        """Appends the bytes; returns how many there were."""
        content = bytes(data)
        self.parts += content
        return len(content)

    def take(self) -> bytes:
        """Returns and removes the bytes that were written since the last call."""
        content = bytes(self.parts)
        self.parts.clear()
        return content
