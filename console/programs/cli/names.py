"""Names for people where the API has ids: looked up in the list that the thing is in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
from click.shell_completion import CompletionItem

from console.programs.cli.client import segment
from console.programs.cli.errors import NOT_FOUND, CommandError
from console.programs.cli.fields import Field
from console.programs.cli.session import Session

CLUSTERS = "/clusters"
# Members by which a thing is over: a name means one that goes on, where there is one.
_OVER = ("deleted_at", "revoked_at", "replaced_by")
# And states of invitations in which one is.
_OVER_STATES = {"accepted", "revoked", "expired"}


@dataclass(frozen=True, slots=True)
class Named:
    """Things of a list. `prefix` of their ids (empty: their ids are looked up too), `by`: the
    member that is their name."""

    word: str
    prefix: str
    by: str = "name"
    id: str = "id"


IN_CLUSTER = "/clusters/{cluster_id}"
COLLECTIONS = {
    CLUSTERS: Named("CLUSTER", "cl_"),
    "/projects": Named("PROJECT", "prj_"),
    "/members": Named("MEMBER", "mem_", "email"),
    "/invitations": Named("INVITATION", "ivt_", "email"),
    "/service-accounts": Named("SERVICE_ACCOUNT", "sa_"),
    "/api-keys": Named("KEY", "key_"),
    "/budgets": Named("BUDGET", "bud_"),
    "/alerts": Named("ALERT", "alr_"),
    "/invoices": Named("INVOICE", "inv_", "number"),
    f"{IN_CLUSTER}/credentials": Named("CREDENTIAL", "cred_"),
    f"{IN_CLUSTER}/deleted-topics": Named("TOPIC", ""),
}
# Things that have no id but their name, and those that have no name but their id.
WORDS = {
    f"{IN_CLUSTER}/topics": "TOPIC",
    f"{IN_CLUSTER}/groups": "GROUP",
    f"{IN_CLUSTER}/orphaned-topics": "ID",
    f"{IN_CLUSTER}/acls": "ID",
    f"{IN_CLUSTER}/quotas": "ID",
    "/operations": "OPERATION",
    "/incidents": "INCIDENT",
    "/limit-requests": "REQUEST",
    "/role-bindings": "ID",
    "/usage/rows": "ROW",
}
# Names that completion offers where nothing is looked up.
_NAMES = {f"{IN_CLUSTER}/topics": "name", f"{IN_CLUSTER}/groups": "group", "/operations": "id"}


def metavar(collection: str) -> str:
    """What an argument that names one of a list is called."""
    known = COLLECTIONS.get(collection)
    return known.word if known else WORDS[collection]


def resolve(
    session: Session, collection: str, text: str, *, cluster_id: str = "", over: bool = False
) -> str:
    """The id of what is named; what is an id already, or has none, is given back as it is."""
    known = COLLECTIONS.get(collection)
    if known is None or (known.prefix and text.startswith(known.prefix)):
        return text
    return str(find(session, collection, text, cluster_id=cluster_id, over=over)[known.id])


def find(
    session: Session, collection: str, text: str, *, cluster_id: str = "", over: bool = False
) -> dict[str, Any]:
    """The thing that a name or an id means. `over`: rather one that is deleted.

    Raises CommandError where there is none, or where there are several.
    """
    known = COLLECTIONS[collection]
    path = collection.replace("{cluster_id}", segment(cluster_id))
    items, _ = session.client.pages(path)
    by_id = [item for item in items if item[known.id] == text]
    named = by_id or [item for item in items if item.get(known.by) == text]
    preferred = [item for item in named if _is_over(item) == over]
    found = preferred or named
    word = known.word.lower().replace("_", " ")
    if not found:
        raise CommandError(f"There is no {word} {text!r}.", code=NOT_FOUND)
    if len(found) > 1:
        ids = ", ".join(str(item[known.id]) for item in found)
        raise CommandError(f"Several have the name {text!r}.", advice=f"Take one's id: {ids}")
    return found[0]


def _is_over(item: dict[str, Any]) -> bool:
    return any(item.get(member) for member in _OVER) or item.get("state") in _OVER_STATES


def cluster_id(session: Session, given: str | None) -> str:
    """The cluster that a command means: by --cluster, FRESHET_CLUSTER, or `freshet use`."""
    text = given or session.environment.get("FRESHET_CLUSTER") or session.profile.cluster
    if not text:
        raise CommandError(
            "Which cluster?", advice="Add --cluster NAME, or choose one with `freshet use NAME`."
        )
    return resolve(session, CLUSTERS, text)


def completing(collection: str) -> Callable[..., list[CompletionItem]]:
    """What a shell offers for one of a list. Says nothing when the service does not answer."""

    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        del param
        session = ctx.find_object(Session) or Session()
        known = COLLECTIONS.get(collection)
        by = known.by if known else _NAMES.get(collection)
        if by is None:
            return []
        try:
            path = collection
            if "{cluster_id}" in collection:
                chosen = cluster_id(session, ctx.params.get("cluster"))
                path = collection.replace("{cluster_id}", segment(chosen))
            items, _ = session.client.pages(path, items_max=200)
        except CommandError:
            return []
        found = {str(item[by]) for item in items if item.get(by) and not _is_over(item)}
        return [CompletionItem(name) for name in sorted(found) if name.startswith(incomplete)]

    return complete


def argument(collection: str, key: str, word: str) -> click.Argument:
    """An argument that names one of a list."""
    return click.Argument([key], metavar=word, shell_complete=completing(collection))


def parameter(field: Field) -> click.Parameter:
    """A field's option or argument; what names one of a list is completed from it."""
    if not field.collection:
        return field.parameter()
    return field.parameter(completing(field.collection))
