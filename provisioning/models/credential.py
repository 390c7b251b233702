"""Credentials of Kafka clients, without their passwords."""

from __future__ import annotations

from functools import partial

from django.db import models
from django.db.models import Q

from console.accounts.models import Organization
from console.common.clock import now
from console.common.ids import ID_CHARS_MAX, new_id
from provisioning.choices import CredentialRole, Mechanism
from provisioning.models.cluster import Cluster
from provisioning.querysets import CredentialQuerySet

NAME_CHARS_MAX = 100


class Credential(models.Model):
    """A user of a cluster. The metadata store holds its salted key, nobody its password."""

    # Also its user name at Kafka: a pseudonym, so that usage and logs name no person.
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
    created_at = models.DateTimeField(default=now)
    # Its removal from the metadata store is under way: the sweep ends what a lost answer began.
    removed_at = models.DateTimeField(null=True, blank=True)

    objects = CredentialQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["cluster", "name"],
                condition=Q(removed_at=None),
                name="one_credential_a_name",
            ),
        )
        indexes = (
            models.Index(fields=["cluster", "-created_at", "-id"], name="credentials_newest"),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def username(self) -> str:
        """The user name at Kafka."""
        return self.pk

    @property
    def principal(self) -> str:
        """Kafka's name of the principal."""
        return f"User:{self.username}"
