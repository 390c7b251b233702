"""Names that one of a kind has, and no other beside it."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from console.base.common.errors import FieldError, NameTaken


def require_free_name(rows: QuerySet[Any], name: str, what: str) -> None:
    """Raises `NameTaken` where one of these rows has the name.

    `what` they are, for people: `A cluster of this organisation`. Of two requests at once both may
    pass: the rows' unique constraint, or a lock that the caller holds, decides.
    """
    if rows.filter(name=name).exists():
        detail = f"{what} is named {name}."
        raise NameTaken(detail, errors=[FieldError("/name", "name_taken", detail)])
