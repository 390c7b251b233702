"""Who pays for which organizations, and what is free for whom.

`billing/allowances/` is the only writer. Rows stay: a past month goes on having the payer and the
free quantities that it was invoiced with.
"""

from __future__ import annotations

from functools import partial

from django.db import models
from django.db.models import F, Q

from billing.choices import AllowanceKind, Meter, PayerKind, TrialNoticeKind
from console.base.accounts.models import Organization
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id

FINGERPRINT_CHARS_MAX = 64
SHA256_CHARS = 64
METER_CHARS_MAX = 32


class Payer(models.Model):
    """A card or a bank account that pays, for however many organizations."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "pyr"), editable=False
    )
    kind = models.CharField(max_length=16, choices=PayerKind.choices)
    # Stripe's fingerprint of the card, or a hash of the account's IBAN. Null: it is not known, and
    # so nobody can tell that another organization has the same payer.
    fingerprint = models.CharField(
        max_length=FINGERPRINT_CHARS_MAX, null=True, blank=True, unique=True
    )
    created_at = models.DateTimeField(default=now)
    # When its charges had come to as much as it is charged in advance. Null: it is served up to
    # `billing.unproved_payer_limit_minor`.
    proved_at = models.DateTimeField(null=True, blank=True)
    # When the operator said that neither this limit nor debts and disputes hold it up.
    trusted_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class PayerOrganization(models.Model):
    """That an organization was paid for by a payer, from when until when."""

    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="payer_links"
    )
    payer = models.ForeignKey(Payer, on_delete=models.PROTECT, related_name="organizations")
    since = models.DateTimeField(default=now)
    # Null: it still is.
    until = models.DateTimeField(null=True, blank=True)
    # Meter → what was used for nothing in the month of `since` before anybody paid in it, as text:
    # the trial, and the traffic that slipped past its end. Nobody agreed to pay it.
    free_before = models.JSONField(default=dict, db_column="past_trial")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["organization"], condition=Q(until__isnull=True), name="one_payer_at_a_time"
            ),
            models.CheckConstraint(
                condition=Q(until__isnull=True) | Q(until__gte=F("since")),
                name="payers_end_after_they_begin",
            ),
        )
        indexes = (models.Index(fields=["organization", "since"], name="payers_of_one"),)

    def __str__(self) -> str:
        return f"{self.organization_id} by {self.payer_id}"


class Trial(models.Model):
    """What an organization may use without a payment method. A proved address gives it once."""

    organization = models.OneToOneField(
        Organization, on_delete=models.PROTECT, primary_key=True, related_name="trial"
    )
    # Of the address as `billing/allowances/addresses.py` writes it. Null: the address had given a
    # trial to another organization before, and this one has none.
    address_sha256 = models.CharField(max_length=SHA256_CHARS, null=True, blank=True, unique=True)
    # Meter → quantity in base units, as text; what the catalogue had free in that month.
    quantities = models.JSONField(default=dict)
    # The first day of the month in which it began.
    month = models.DateField()
    created_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return f"trial of {self.organization_id}"


class TrialNotice(models.Model):
    """A mail about an organization's trial: one that little is left, and one each time that its
    traffic is refused for want of it."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "trn"), editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="trial_notices"
    )
    kind = models.CharField(max_length=16, choices=TrialNoticeKind.choices)
    created_at = models.DateTimeField(default=now)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["organization"],
                condition=Q(kind=TrialNoticeKind.NEARLY_USED.value),
                name="little_left_is_said_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.organization_id} {self.kind}"


class AllowanceShare(models.Model):
    """What is free of a meter for an organization in a month, as its invoice took it.

    An invoice that replaces a void one has rows of its own: those of the last revision hold.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="allowance_shares"
    )
    month = models.DateField()
    meter = models.CharField(max_length=METER_CHARS_MAX, choices=Meter.choices)
    kind = models.CharField(max_length=16, choices=AllowanceKind.choices)
    # Null for a trial.
    payer = models.ForeignKey(Payer, on_delete=models.PROTECT, null=True, blank=True)
    # In base units.
    quantity = models.DecimalField(max_digits=38, decimal_places=0)
    # The part of it that used up the trial; in a payer's share, before the payer came.
    of_trial = models.DecimalField(max_digits=38, decimal_places=0, default=0)
    # The part of it that was used before a payer came, and is nobody's share.
    free_before = models.DecimalField(
        max_digits=38, decimal_places=0, default=0, db_column="past_trial"
    )
    # That of the invoice.
    revision = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=now)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["organization", "month", "meter", "revision"], name="one_share_a_meter"
            ),
            models.CheckConstraint(
                condition=Q(
                    quantity__gte=0,
                    of_trial__gte=0,
                    of_trial__lte=F("quantity"),
                    free_before__gte=0,
                    free_before__lte=F("quantity"),
                ),
                name="shares_are_not_negative",
            ),
        )
        indexes = (models.Index(fields=["month", "payer"], name="shares_of_a_payer"),)

    def __str__(self) -> str:
        return f"{self.organization_id} {self.month:%Y-%m} {self.meter}"
