"""Credentials of Kafka clients, without their passwords."""

from __future__ import annotations

from functools import partial

from django.db import models
from django.db.models import Q

from console.base.accounts.models import Organization
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id
from provisioning.choices import CredentialRole, Mechanism
from provisioning.models.cluster import Cluster
from provisioning.querysets import CredentialQuerySet

NAME_CHARS_MAX = 100
# Brokers take no longer user names.
KAFKA_USER_CHARS_MAX = 255


class Credential(models.Model):
    """A user of a cluster. The metadata store has a salted key; the password is stored nowhere."""

    # Also the user name at Kafka, unless a client made the user. It is a pseudonym, so that usage
    # and logs name no person.
    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "cred"), editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="credentials"
    )
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="credentials")
    name = models.CharField(max_length=NAME_CHARS_MAX)
    role = models.CharField(max_length=16, choices=CredentialRole.choices)
    mechanism = models.CharField(
        max_length=16, choices=Mechanism.choices, default=Mechanism.SCRAM_SHA_512.value
    )
    # The user name at Kafka where a client made the user over the Kafka protocol; otherwise empty.
    kafka_user = models.CharField(
        max_length=KAFKA_USER_CHARS_MAX, default="", db_default="", blank=True
    )
    # Counts changes of name and expiry, for the ETag.
    generation = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=now)
    # When it ends by itself; None: never.
    expires_at = models.DateTimeField(null=True, blank=True)
    # The last metered minute in which it produced or fetched records; None where there is none.
    last_used_at = models.DateTimeField(null=True, blank=True)
    # The credential in whose place it was made. Both authenticate until that one expires.
    replaces = models.OneToOneField(
        "self", on_delete=models.SET_NULL, related_name="successor", null=True, blank=True
    )
    # When another was made in its place, which has the same name. When it ends, all its ACLs go.
    replaced_at = models.DateTimeField(null=True, blank=True)
    # When its removal from the metadata store began; the sweep goes on where an answer was lost.
    removed_at = models.DateTimeField(null=True, blank=True)

    objects = CredentialQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["cluster", "name"],
                condition=Q(removed_at=None, replaced_at=None),
                name="one_credential_a_name",
            ),
            models.UniqueConstraint(
                fields=["cluster", "kafka_user"],
                condition=~Q(kafka_user=""),
                name="one_credential_a_kafka_user",
            ),
        )
        indexes = (
            models.Index(fields=["cluster", "-created_at", "-id"], name="credentials_newest"),
            models.Index(
                fields=["expires_at"],
                condition=Q(removed_at=None, expires_at__isnull=False),
                name="credentials_to_expire",
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def replaced_by(self) -> str | None:
        """The id of the credential that was made in its place, where that one still exists."""
        successor: Credential | None = getattr(self, "successor", None)
        return None if successor is None else successor.pk

    @property
    def username(self) -> str:
        """The user name at Kafka."""
        return self.kafka_user or self.pk

    @property
    def principal(self) -> str:
        """Kafka's name of the principal."""
        return f"User:{self.username}"
