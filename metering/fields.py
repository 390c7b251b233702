"""Model fields for column types that Django does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    Field = models.Field[Any, Any]
else:
    Field = models.Field


class Int8MultirangeField(Field):
    """PostgreSQL's `int8multirange`: sets of whole numbers, as psycopg's `Multirange`."""

    description = "A set of ranges of whole numbers"

    def db_type(self, connection: Any) -> str:  # noqa: ANN401 - of whatever database
        """The column's type."""
        return "int8multirange"
