"""Writes a row of every table that archives have, with a value in every column."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from psycopg.types.multirange import Int8Multirange
from psycopg.types.range import Int8Range

from billing.models import PriceVersion
from console.base.accounts.models import Organization
from console.base.common.clock import now
from console.base.common.exports import exported_tables
from metering.fields import Int8MultirangeField
from metering.services.minute_parts import make_day_parts

MOMENT = datetime(2026, 11, 20, 12, 34, 56, 789_000, UTC)
# The value of a column by its type; `_value` makes those of texts and arrays. The first type that a
# field is an instance of counts, so subclasses come before their bases.
VALUES: list[tuple[type[models.Field[Any, Any]], object]] = [
    (Int8MultirangeField, Int8Multirange([Int8Range(1, 5), Int8Range(7, None)])),
    (models.BooleanField, True),
    (models.IntegerField, 1),
    (models.DecimalField, Decimal(12)),
    (models.DateTimeField, MOMENT),
    (models.DateField, date(2026, 11, 1)),
    (models.JSONField, {"a": [1, "ä", None]}),
    (models.BinaryField, b"\x00\xff"),
]
SUM = {"subtotal_minor": 1, "tax_minor": 1, "total_minor": 2}
# Values that a constraint of the database requires: for each table a mapping for each of its rows.
# `BEFORE` stands for the primary key of the row before.
BEFORE = "the row before"
ROWS: dict[str, list[dict[str, object]]] = {
    "accounts_apikey": [{"role": ""}],
    "accounts_project": [{"is_default": False}],
    "accounts_trafficlimit": [{"kind": "throttle"}],
    "accounts_rolebinding": [{"membership_id": None}, {"service_account_id": None}],
    "billing_invoice": [
        {"kind": "invoice", "credits_id": None, **SUM, "sequence": 1},
        {"kind": "credit_note", "credits_id": BEFORE, **SUM, "sequence": 2},
    ],
    "billing_journalentry": [{"source_id": None}, {"invoice_id": None}],
    "billing_receivable": [{"state": "paid", "open_minor": 0, "written_off_minor": 0}],
    "billing_payment": [{"refunded_minor": 0}],
    "billing_dispute": [{"state": "won", "unapplied_minor": 0}],
    "billing_paymentattempt": [{"settled_at": None}, {"state": "succeeded", "number": 2}],
    "billing_settlement": [
        {"credit_id": None, "dispute_id": None},
        {"payment_id": None, "dispute_id": None},
        {"payment_id": None, "credit_id": None},
    ],
    "metering_usagefile": [{"replaced_by_id": None}],
    "provisioning_credential": [{"replaces_id": None}, {"replaces_id": BEFORE}],
    # These tables have parts for the days around today alone.
    "provisioning_samplehour": [{"at": now()}],
    "provisioning_sampleminute": [{"at": now()}],
}
# Tables whose rows only triggers write, when something refers to them.
BY_TRIGGERS = frozenset({"billing_numberseries"})


class FullRows:
    """Writes rows of one organization, in its scope, with all the rows that they refer to.

    The rows contradict one another (ledgers do not balance, for example), and deferred checks would
    refuse their commit. So the caller rolls the transaction back.
    """

    def __init__(self, organization: Organization) -> None:
        self._last: dict[type[models.Model], models.Model] = {Organization: organization}
        # Only migrations add price versions, so one of theirs is used.
        self._last[PriceVersion] = PriceVersion.objects.all()[0]
        self._numbers = count(1)

    def fill(self) -> None:
        """Writes all rows. Raises `LookupError` for a type of column that has no value here."""
        organization = self._last[Organization]
        for name in ("traffic_reason", "closed_at", "verified_at"):
            setattr(organization, name, self._value(Organization._meta.get_field(name)))
        for name, value in {"traffic_kind": "throttle", "traffic_bytes_per_s": 1}.items():
            setattr(organization, name, value)
        organization.save()
        make_day_parts([MOMENT.date()])
        for model in exported_tables().values():
            self._last_row(model)

    def _last_row(self, model: type[models.Model]) -> models.Model:
        """Returns the last row of a table; writes the table's rows if there is none."""
        if model not in self._last:
            for required in ROWS.get(model._meta.db_table, [{}]):
                self._last[model] = self._write_row(model, required)
        return self._last[model]

    def _write_row(self, model: type[models.Model], required: Mapping[str, object]) -> models.Model:
        """Writes a row with the required values, and values of its own in all other columns."""
        values = {
            field.attname: self._value(field)
            for field in model._meta.concrete_fields
            if field.attname not in required
            and not isinstance(field, models.AutoField | models.GeneratedField)
        }
        before = {name: self._last[model].pk for name, value in required.items() if value == BEFORE}
        row = model(**{**values, **required, **before})
        if model._meta.db_table not in BY_TRIGGERS:
            row.save(force_insert=True)
        return row

    def _value(self, field: Any) -> object:  # noqa: ANN401 (a field of whatever type)
        if field.attname == "organization_id":
            return self._last[Organization].pk
        if field.remote_field is not None:
            return self._last_row(field.remote_field.model).pk
        if isinstance(field, ArrayField):
            return [self._value(field.base_field)]
        if field.choices:
            return field.choices[0][0]
        if isinstance(field, models.CharField | models.TextField):
            text = f"{next(self._numbers)}-{field.name}"
            return text[: field.max_length] if field.max_length else text
        for kind, value in VALUES:
            if isinstance(field, kind):
                return value
        message = f"{field}: add a value of {type(field).__name__} to VALUES"
        raise LookupError(message)
