"""Reads of provisioning, always within an organisation but where a name says otherwise."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models import F, Q

from console.base.common.actor import Actor, Permission
from provisioning.choices import UNFINISHED, Intent, SampleData

if TYPE_CHECKING:
    from provisioning.models import BreakGlass, Cluster, Credential, Operation  # noqa: F401


class ClusterQuerySet(models.QuerySet["Cluster"]):
    """Clusters."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organisation."""
        return self.filter(organization_id=organization_id)

    def not_purged(self) -> Self:
        """Those that people see: deleted ones too, while they can be restored."""
        return self.exclude(intent=Intent.PURGED)

    def readable(self, actor: Actor) -> Self:
        """Those that an actor may see."""
        own = self.for_organization(actor.organization_id)
        projects = actor.projects_with(Permission.READ)
        return own if projects is None else own.filter(project_id__in=projects)

    def active(self) -> Self:
        """Those that are not deleted."""
        return self.filter(intent=Intent.ACTIVE)

    def to_recheck(self, *, moment: datetime, deleted_before: datetime) -> Self:
        """Of every organisation, those where something may be left to do or to purge."""
        unfinished = Q(operations__state__in=UNFINISHED)
        behind = Q(reconciled_generation__lt=F("generation"))
        samples = Q(sample_data=SampleData.WANTED)
        due = Q(intent=Intent.DELETED, deleted_at__lte=deleted_before)
        leftover = Q(credentials__removed_at__isnull=False)
        scheduled = Q(schedule_due_at__lte=moment)
        found = unfinished | behind | samples | due | leftover | scheduled
        return self.not_purged().filter(found).distinct()


class OperationQuerySet(models.QuerySet["Operation"]):
    """Operations."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organisation."""
        return self.filter(organization_id=organization_id)

    def unfinished(self) -> Self:
        """Those whose state is not final."""
        return self.filter(state__in=UNFINISHED)


class CredentialQuerySet(models.QuerySet["Credential"]):
    """Credentials."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organisation."""
        return self.filter(organization_id=organization_id)

    def current(self) -> Self:
        """Those that authenticate."""
        return self.filter(removed_at=None)

    def named(self) -> Self:
        """Those whose name no other may have: not those that a rotation leaves for a while."""
        return self.current().filter(replaced_at=None)

    def due(self, *, moment: datetime) -> Self:
        """Those whose time is over, of every organisation."""
        return self.current().filter(expires_at__lte=moment)


class BreakGlassQuerySet(models.QuerySet["BreakGlass"]):
    """Permits to delete although deletions are held."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organisation."""
        return self.filter(organization_id=organization_id)

    def usable(self, *, cluster_id: str, moment: datetime) -> Self:
        """Those that let a deletion of a cluster pass at a moment."""
        return self.filter(cluster_id=cluster_id, used_at=None, expires_at__gt=moment)
