"""All that is an organisation's, as a ZIP archive of JSON lines, written while it is sent.

Every table of tenants is in it by itself, a file each. Columns that hold secrets or what is made of
them are left out by their names (`SECRET`), as are binary ones. An application adds what lies
outside of PostgreSQL by `register_source`.

Columns become JSON as `ArchiveEncoder` says.
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

if TYPE_CHECKING:
    from typing_extensions import Buffer

PAGE_ROWS = 500
# Bytes that are compressed before they are handed on.
CHUNK_BYTES = 64 * 1024
SECRET = re.compile(r"secret|password|verifier|sealed|salt|token|digest|stored_key|server_key")
# The service's own: tasks and entries of the audit log on their way, answers to repeated requests.
LEFT_OUT = frozenset(
    {"common_outboxentry", "common_idempotencyrecord", "provisioning_announcement"}
)

Row = Mapping[str, object]
Source = Callable[[str], Iterable[Row]]

_sources: dict[str, Source] = {}


def register_source(name: str, source: Source) -> None:
    """Has archives hold `<name>.jsonl` with the rows that `source` gives of an organisation's id.

    It is called, and read to its end, within the organisation's scope.
    """
    _sources[name] = source


def exported_tables() -> dict[str, type[models.Model]]:
    """Name of the file → the table that it is made of."""
    return {
        model._meta.db_table: model
        for model in apps.get_models()
        if organization_column(model) is not None and model._meta.db_table not in LEFT_OUT
    }


def organization_column(model: type[models.Model]) -> str | None:
    """The column that says whose a row is; None for tables that are not of tenants."""
    if model._meta.db_table == "accounts_organization":
        return "id"
    names = {field.attname for field in model._meta.concrete_fields}
    return "organization_id" if "organization_id" in names else None


def exported_columns(model: type[models.Model]) -> list[str]:
    """The columns of a table that are in its file."""
    return [
        field.attname
        for field in model._meta.concrete_fields
        if not isinstance(field, models.BinaryField) and not SECRET.search(field.attname)
    ]


class ArchiveEncoder(DjangoJSONEncoder):
    """Values of columns that are no JSON by themselves.

    - Times and days are ISO 8601, times with milliseconds and in UTC; decimals are texts.
    - A range is `{"lower": …, "upper": …, "bounds": "[)"}`. A bracket in `bounds` says that the end
      belongs to the range, a parenthesis that it does not; an end that is null is unbounded. Of an
      empty range both ends are null, and `bounds` is `empty`.
    - A multirange is a list of its ranges, in their order.
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
    """The archive's parts. Each page of a table is read in a transaction of its own."""
    parts = _archive(organization_id)
    while part := await sync_to_async(_next)(parts):
        yield part


def _next(parts: Iterator[bytes]) -> bytes:
    return next(parts, b"")


def _archive(organization_id: str) -> Iterator[bytes]:
    sink = _Sink()
    moment = now().timetuple()[:6]
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, rows in _files(organization_id):
            entry = zipfile.ZipInfo(f"{name}.jsonl", moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as file:
                for row in rows:
                    line = json.dumps(row, cls=ArchiveEncoder, ensure_ascii=False)
                    file.write(line.encode() + b"\n")
                    if len(sink.parts) >= CHUNK_BYTES:
                        yield sink.take()
    yield sink.take()


def _files(organization_id: str) -> Iterator[tuple[str, Iterable[Row]]]:
    for name, model in sorted(exported_tables().items()):
        yield name, _rows(model, organization_id)
    for name, source in sorted(_sources.items()):
        yield name, _read(source, organization_id)


def _rows(model: type[models.Model], organization_id: str) -> Iterator[Row]:
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


def _read(source: Source, organization_id: str) -> list[Row]:
    with organization_scope(organization_id):
        return list(source(organization_id))


class _Sink(io.RawIOBase):
    """Takes what the archive writes; it cannot be sought, so the archive never goes back."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = bytearray()

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Buffer, /) -> int:
        """Keeps the bytes until they are taken."""
        before = len(self.parts)
        self.parts += bytes(data)
        return len(self.parts) - before

    def take(self) -> bytes:
        """What was written since the last time."""
        taken = bytes(self.parts)
        self.parts.clear()
        return taken
