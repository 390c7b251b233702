"""The consumer groups of running brokers, from their status.

The status is read once for all who look (`provisioning/cell/status`). Brokers are asked by Kafka
calls for what it does not have, and then the lag in seconds of what waits is not known: no record
is read for it. They are asked as well for a group whose offsets the service moved just now, because
the status shows a new offset only once it knows the time of the first record behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from brokers.metadata_records import ClusterStatus
from console.base.common.clock import now, unix_ms
from console.base.common.models import AuditEntry
from console.base.common.models.audit import TARGET_CHARS_MAX
from provisioning import kafka
from provisioning.cell.samples import GROUPS, groups_at
from provisioning.cell.status.groups import GroupTable
from provisioning.cell.status.kept import Brokers, shared_pictures
from provisioning.cells import broker_access, kafka_errors
from provisioning.models import Cluster

DELETED, MOVED = "group.delete", "group.reset_offsets"
# For so long after a change of the service's own, brokers are read anew for each look. A broker
# looks up 160 times a second, so by then it knows those of 9,600 partitions.
CHANGED_LATELY = timedelta(minutes=1)
CHANGES_MAX = 1_000

Group = Mapping[str, Any]
Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Changes:
    """What the service changed lately of a cluster's groups: whether anything, and moved groups."""

    any: bool
    moved: frozenset[str]


@dataclass(frozen=True)
class FirstUses:
    """Whether records of a cluster were produced, and consumed by a group; None: not known."""

    produced: bool | None
    consumed: bool | None


class RunningGroups:
    """The groups of a cluster whose brokers run, as they are now."""

    def __init__(self, cluster: Cluster, status: ClusterStatus) -> None:
        self._cluster = cluster
        self._access = broker_access(cluster.pk, status)
        addresses = tuple((broker.slot, broker.metrics) for broker in status.brokers)
        whole = all(address for _, address in addresses)
        self._brokers = Brokers(cluster.pk, addresses if whole else ())
        self._changes = _changes_lately(cluster)

    def names(self) -> Sequence[str]:
        """The names of all groups, sorted. Raises `Unavailable`."""
        with kafka_errors():
            names = self._look(lambda table: table.names if table.has_all_names else None)
            return kafka.list_group_names(self._access) if names is None else names

    def describe(self, names: Sequence[str]) -> list[Group]:
        """The groups of these names, in this order, with members and lag. Raises `Unavailable`."""
        with kafka_errors():
            known = self._known(names)
            asked = kafka.describe_groups(self._access, self._to_ask(names, known))
        newest = _newest(known, asked)
        return [newest[name] for name in names]

    def describe_one(self, name: str) -> Group:
        """One group with members and lag. Raises `NotFound`, `Unavailable`."""
        with kafka_errors():
            known = self._known([name])
            asked = [kafka.describe_group(self._access, n) for n in self._to_ask([name], known)]
        return _newest(known, asked)[name]

    def first_uses(self, samples: Mapping[str, int]) -> FirstUses:
        """Whether records were produced, and consumed by a group; see `GroupTable`."""

        def uses(table: GroupTable) -> FirstUses:
            # Where a broker leaves something out, it may be what was produced or consumed.
            otherwise = False if table.has_all_names else None
            return FirstUses(table.is_written(samples) or otherwise, table.is_read() or otherwise)

        return self._look(uses) or FirstUses(None, None)

    def unbilled(self) -> dict[str, int] | None:
        """Bytes that clients' principals take unbilled, since brokers started; None: not known."""
        return self._look(GroupTable.unbilled)

    def _look(self, use: Callable[[GroupTable], Seen]) -> Seen | None:
        return shared_pictures().look(self._brokers, use, anew=self._changes.any)

    def _known(self, names: Sequence[str]) -> dict[str, Group]:
        """Those of the groups that the status has with all that belongs to them."""
        known = self._look(lambda table: [table.whole(name) for name in names]) or []
        content = {GROUPS: [group for group in known if group is not None]}
        return {group["group"]: group for group in groups_at(content, unix_ms(now()))}

    def _to_ask(self, names: Sequence[str], known: Mapping[str, Group]) -> list[str]:
        """Those of the groups for which brokers have to be asked."""
        moved = self._changes.moved
        return [n for n in names if n not in known or _target_of(self._cluster, n) in moved]


def _target_of(cluster: Cluster, group: str) -> str:
    """The id by which the audit log names a group."""
    return f"{cluster.pk}/{group}"[:TARGET_CHARS_MAX]


def _changes_lately(cluster: Cluster) -> Changes:
    """From the audit log, because another process may have made them."""
    entries = AuditEntry.objects.filter(
        organization_id=cluster.organization_id,
        action__in=(DELETED, MOVED),
        created_at__gt=now() - CHANGED_LATELY,
        target_id__startswith=f"{cluster.pk}/",
    )
    changes = list(entries.values_list("action", "target_id")[:CHANGES_MAX])
    moved = frozenset(target for action, target in changes if action == MOVED)
    return Changes(any=bool(changes), moved=moved)


def _newest(known: Mapping[str, Group], asked: Sequence[Group]) -> dict[str, Group]:
    """Groups as brokers answered, but as the status has them once it shows the same offsets."""
    newest = dict(known)
    for group in asked:
        name = group["group"]
        if name not in known or _offsets(known[name]) != _offsets(group):
            newest[name] = group
    return newest


def _offsets(group: Group) -> dict[tuple[str, int], int]:
    return {
        (entry["topic"], entry["partition"]): entry["committed"]
        for entry in group["partitions"]
        if entry["committed"] is not None
    }
