"""What actors are called. An application registers how it names its own in its `AppConfig.ready`.

This package knows neither users nor keys nor credentials, which lie above it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from console.base.common.actor import ActorKind
from console.base.common.models import AuditEntry

# Ids of actors of one kind → name by id, as far as they are known.
Namer = Callable[[Collection[str]], Mapping[str, str]]
NAMED = {ActorKind.SYSTEM.value: "Freshet", ActorKind.STAFF.value: "Freshet staff"}

_namers: dict[str, Namer] = {}


def register_namer(kind: ActorKind, namer: Namer) -> None:
    """Adds how actors of a kind are named; another one under the same kind is replaced."""
    _namers[kind.value] = namer


def names_of(entries: Iterable[AuditEntry]) -> dict[tuple[str, str], str]:
    """Names by kind and id of all actors of some entries: one look-up a kind."""
    wanted: dict[str, set[str]] = {}
    for entry in entries:
        wanted.setdefault(entry.actor_kind, set()).add(entry.actor_id)
    names = {}
    for kind, ids in sorted(wanted.items()):
        namer = _namers.get(kind)
        found = namer(ids) if namer else {}
        for actor_id in ids:
            names[kind, actor_id] = NAMED.get(kind) or found.get(actor_id) or actor_id
    return names
