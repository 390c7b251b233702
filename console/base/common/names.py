"""Checks that a resource's name is not taken by another one of its kind."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from console.base.common.errors import FieldError, NameTaken


def require_free_name(rows: QuerySet[Any], name: str, what: str) -> None:
    """Raises `NameTaken` if one of these rows has the name.

    `what` says in the message what the rows are: `A cluster of this organization`. Two requests at
    once may both pass this check, so a unique constraint or a lock of the caller must decide.
    """
    if rows.filter(name=name).exists():
        detail = f"{what} is named {name}."
        raise NameTaken(detail, errors=[FieldError("/name", "name_taken", detail)])
