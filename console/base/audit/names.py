"""Names of actors and targets in the audit log.

An application registers in its `AppConfig.ready` how its kind of actor, or its type of target, is
named: users, API keys, clusters and credentials are in packages that this one must not import.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Model

from console.base.common.actor import ActorKind
from console.base.common.models import AuditEntry

# Takes ids of actors of one kind, or of targets of one type; returns names by id, of those that it
# knows.
Namer = Callable[[Collection[str]], Mapping[str, str]]
FIXED_NAMES = {ActorKind.SYSTEM.value: "Freshet", ActorKind.STAFF.value: "Freshet staff"}
# The type of target that others are in.
CLUSTER = "cluster"
# The members of an entry's `detail` that name its target, where it has any of them.
NAMED_BY = ("name", "email", "number", "limit")

_namers: dict[str, Namer] = {}
_target_namers: dict[str, Namer] = {}


def register_namer(kind: ActorKind, namer: Namer) -> None:
    """Registers the namer of a kind of actor, in place of an earlier one of that kind."""
    _namers[kind.value] = namer


def names_by_id(kind: ActorKind, ids: Collection[str]) -> Mapping[str, str]:
    """Returns the names of actors of one kind by id, of those that have one."""
    namer = _namers.get(kind.value)
    return namer(ids) if namer and ids else {}


def register_target_namer(target_type: str, namer: Namer) -> None:
    """Registers the namer of a type of target, in place of an earlier one of that type."""
    _target_namers[target_type] = namer


def names_in(model: type[Model], column: str = "name") -> Namer:
    """Returns a namer that reads a column of a table whose ids are those of the targets."""

    def names_by_pk(ids: Collection[str]) -> Mapping[str, str]:
        return dict(model._default_manager.filter(pk__in=ids).values_list("pk", column))

    return names_by_pk


def names_of(entries: Iterable[AuditEntry]) -> dict[tuple[str, str], str]:
    """Returns the names of all actors of some entries, by kind and id.

    An actor without a name, such as a deleted key, is named by its id. Calls one namer a kind.
    """
    ids_by_kind: dict[str, set[str]] = {}
    for entry in entries:
        ids_by_kind.setdefault(entry.actor_kind, set()).add(entry.actor_id)
    names = {}
    for kind, ids in sorted(ids_by_kind.items()):
        namer = _namers.get(kind)
        names_by_id = namer(ids) if namer else {}
        for actor_id in ids:
            name = FIXED_NAMES.get(kind) or names_by_id.get(actor_id) or actor_id
            names[kind, actor_id] = name
    return names


@dataclass(frozen=True, slots=True)
class TargetName:
    """What a target is called, and the cluster that it is in; empty where it is in none."""

    name: str
    cluster: str = ""


def targets_of(entries: Sequence[AuditEntry]) -> list[TargetName]:
    """Returns how the target of each entry is called.

    A target that has no name any more is called as the entry says, or by its id. Calls one namer a
    type, and one for all clusters.
    """
    ids_by_type: dict[str, set[str]] = {CLUSTER: set()}
    for entry in entries:
        ids_by_type.setdefault(entry.target_type, set()).add(entry.target_id)
        ids_by_type[CLUSTER].add(_cluster_of(entry))
    names = {
        (target_type, target_id): name
        for target_type, ids in sorted(ids_by_type.items())
        if target_type in _target_namers and ids - {""}
        for target_id, name in _target_namers[target_type](ids - {""}).items()
    }
    return [_target_of(entry, names) for entry in entries]


def _target_of(entry: AuditEntry, names: Mapping[tuple[str, str], str]) -> TargetName:
    cluster_id = _cluster_of(entry)
    name = (
        names.get((entry.target_type, entry.target_id))
        or _name_in(entry.detail)
        or entry.target_id.removeprefix(f"{cluster_id}/")
    )
    return TargetName(name, names.get((CLUSTER, cluster_id), cluster_id))


def _cluster_of(entry: AuditEntry) -> str:
    """Returns the id of the cluster that an entry's target is in; empty where it is in none."""
    head, separator, _ = entry.target_id.partition("/")
    if separator and head.startswith("cl_"):
        return head
    inside = entry.detail.get("cluster_id", "") if entry.target_type != CLUSTER else ""
    return inside if isinstance(inside, str) else ""


def _name_in(detail: Mapping[str, object]) -> str:
    """Returns what an entry itself says of the target's name; empty where it says nothing."""
    for member in NAMED_BY:
        value = detail.get(member)
        name = value.get("to") if isinstance(value, dict) else value
        if isinstance(name, str) and name:
            return name
    return ""
