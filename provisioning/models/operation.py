"""Operations: changes of clusters that take longer than a request."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from django.db import models
from django.db.models import Q

from console.base.accounts.models import Organization
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id
from provisioning.choices import UNFINISHED, OperationState, OperationType
from provisioning.models.cluster import Cluster
from provisioning.querysets import OperationQuerySet


class Operation(models.Model):
    """One change of a cluster that takes a while. Once its state is final the row never changes."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "op"), editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="operations"
    )
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="operations")
    type = models.CharField(max_length=32, choices=OperationType.choices)
    state = models.CharField(
        max_length=16, choices=OperationState.choices, default=OperationState.QUEUED.value
    )
    # The generation of the cluster that it waits for.
    generation = models.PositiveIntegerField()
    # In percent.
    progress = models.PositiveSmallIntegerField(default=0)
    # `{code, detail}` of a failed one.
    error = models.JSONField(null=True, blank=True)
    # The id of the request that began it, or `-` where none did.
    request_id = models.CharField(max_length=64, default="-")
    created_at = models.DateTimeField(default=now)
    # When one that starts brokers had its turn, from when on its time counts.
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = OperationQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["cluster"],
                condition=Q(state__in=UNFINISHED),
                name="one_unfinished_operation_a_cluster",
            ),
        )
        indexes = (
            models.Index(fields=["organization", "-created_at", "-id"], name="operations_newest"),
        )

    def __str__(self) -> str:
        return f"{self.type} {self.pk}"

    @property
    def began_at(self) -> datetime:
        """From when on its time counts."""
        return self.started_at or self.created_at

    @property
    def resource_id(self) -> str:
        """The id of the cluster."""
        return self.cluster_id

    @property
    def finished(self) -> bool:
        """Whether its state is final."""
        return self.state not in UNFINISHED
