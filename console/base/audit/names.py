"""Names of actors in the audit log.

An application registers in its `AppConfig.ready` how its kind of actor is named: users, API keys
and Kafka credentials are in packages that this one must not import.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from console.base.common.actor import ActorKind
from console.base.common.models import AuditEntry

# Takes ids of actors of one kind; returns names by id, of those that it knows.
Namer = Callable[[Collection[str]], Mapping[str, str]]
FIXED_NAMES = {ActorKind.SYSTEM.value: "Freshet", ActorKind.STAFF.value: "Freshet staff"}

_namers: dict[str, Namer] = {}


def register_namer(kind: ActorKind, namer: Namer) -> None:
    """Registers the namer of a kind of actor, in place of an earlier one of that kind."""
    _namers[kind.value] = namer


def names_by_id(kind: ActorKind, ids: Collection[str]) -> Mapping[str, str]:
    """Returns the names of actors of one kind by id, of those that have one."""
    namer = _namers.get(kind.value)
    return namer(ids) if namer and ids else {}


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
