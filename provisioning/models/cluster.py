"""Clusters, as their owners want them."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from brokers.metadata_records import BROKERS_PER_CLUSTER_MAX
from console.base.accounts.choices import TrafficLimitKind
from console.base.accounts.models import Organization, Project
from console.base.accounts.models.organization import REASON_CHARS_MAX
from console.base.accounts.traffic import LimitInForce, limit_in_force
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id
from provisioning.choices import Intent, SampleData
from provisioning.models.cell import Cell
from provisioning.querysets import ClusterQuerySet

NAME_CHARS_MAX = 63
IDLE_TIMEOUT_S_DEFAULT = 300
IDLE_TIMEOUT_S_MIN = 5
IDLE_TIMEOUT_S_MAX = 7 * 24 * 3600
# How long a deleted cluster can be restored.
RESTORABLE = timedelta(days=7)


class Cluster(models.Model):
    """What a cluster is asked to be. Its status is read from its cell for every answer."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "cl"), editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="clusters"
    )
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="clusters")
    cell = models.ForeignKey(Cell, on_delete=models.PROTECT, related_name="clusters")
    name = models.CharField(max_length=NAME_CHARS_MAX)
    labels = models.JSONField(default=dict)
    # Its label in the domain names of TLS listeners.
    host = models.CharField(max_length=63, unique=True)
    # The bootstrap port, then a port for each slot; a single one is slot 0's. None outside of local
    # mode. The rows of `CellPort`, which hold the same ports, keep them unique.
    ports = ArrayField(models.PositiveIntegerField())
    intent = models.CharField(max_length=16, choices=Intent.choices, default=Intent.ACTIVE.value)
    # Suspended because of the organization's account status.
    suspended = models.BooleanField(default=False)
    # Suspended on request: it keeps its data and does not run until somebody resumes it.
    suspend_wanted = models.BooleanField(default=False)
    # The organization's traffic limit, which its brokers shall hold; none without a reason.
    # The column of the reason keeps the name that it has.
    traffic_kind = models.CharField(
        max_length=16, choices=TrafficLimitKind.choices, null=True, blank=True
    )
    traffic_reason = models.CharField(
        max_length=REASON_CHARS_MAX, null=True, blank=True, db_column="produce_suspended_reason"
    )
    traffic_bytes_per_s = models.BigIntegerField(null=True, blank=True)
    idle_timeout_s = models.PositiveIntegerField(default=IDLE_TIMEOUT_S_DEFAULT)
    # 0, or 1: it never sleeps.
    scale_min = models.PositiveSmallIntegerField(default=0)
    # The number of brokers when it is awake; see `scale`.
    scale_max = models.PositiveSmallIntegerField(default=1)
    # The times in which it is awake whether a client is connected or not, in the API's form: see
    # `provisioning.clusters.schedules`.
    schedules = models.JSONField(default=list)
    # Whether the schedules wanted it awake when a worker last looked, as the cell then got it, and
    # when that changes.
    schedule_awake = models.BooleanField(default=False)
    schedule_due_at = models.DateTimeField(null=True, blank=True)
    # It is to sleep as soon as no client is connected, whatever `idle_timeout_s` is.
    sleep_wanted = models.BooleanField(default=False)
    sample_data = models.CharField(
        max_length=16, choices=SampleData.choices, default=SampleData.NONE.value
    )
    deletion_protection = models.BooleanField(default=True)
    # Counts changes of the specification. Only `bump_generation` changes it, by compare-and-swap.
    generation = models.PositiveIntegerField(default=1)
    # The generation of the specification that the cell is known to have; 0 where it has none.
    reconciled_generation = models.PositiveIntegerField(default=0)
    # When it was first ready for clients.
    provisioned_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=now)
    # When a worker last compared it with its cell.
    checked_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)
    # Deleted because its organization did not pay: paying restores it.
    forfeited = models.BooleanField(default=False)
    # `[from_ms, until_ms]` (Unix time) of every time that it was deleted; the last `until_ms` is
    # null while it is deleted. Where the cell got a deletion late, `from_ms` is that later moment:
    # see `date_deletions` of `provisioning.reconciling.plan`. Storage is not billed meanwhile.
    deletions = models.JSONField(default=list)
    # The number of the last change by a Kafka client that is in the audit log. Null where that is
    # not known: of a cluster that an earlier release made, until the next change.
    changes_recorded = models.BigIntegerField(null=True, blank=True, default=0)

    objects = ClusterQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["organization", "name"],
                condition=Q(intent=Intent.ACTIVE.value),
                name="one_active_cluster_a_name",
            ),
        )
        indexes = (
            models.Index(fields=["organization", "-created_at", "-id"], name="clusters_newest"),
            models.Index(
                fields=["schedule_due_at"],
                condition=Q(schedule_due_at__isnull=False),
                name="clusters_by_schedule",
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def traffic_limit(self) -> LimitInForce | None:
        """What its brokers do with the traffic of clients; None where nothing limits it."""
        return limit_in_force(self.traffic_kind, self.traffic_reason, self.traffic_bytes_per_s)

    @property
    def may_run(self) -> bool:
        """Whether neither its organization's account status nor its own wish suspends it."""
        return not (self.suspended or self.suspend_wanted)

    @property
    def scale(self) -> int:
        """The number of brokers when awake, at most what is supported.

        An earlier release may have stored more.
        """
        return min(self.scale_max, BROKERS_PER_CLUSTER_MAX)

    @property
    def purge_at(self) -> datetime | None:
        """When a deleted cluster's data is removed; None where it is not deleted."""
        return None if self.deleted_at is None else self.deleted_at + RESTORABLE
