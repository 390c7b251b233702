"""Lets people use names where the API has ids: a name is looked up in the list of the items."""

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
# An item with one of these members is over: it was deleted, revoked or replaced. A name means an
# item that is not over, where there is one.
_OVER = ("deleted_at", "revoked_at", "replaced_by")
# The states of an invitation that is over.
_OVER_STATES = {"accepted", "revoked", "expired"}


@dataclass(frozen=True, slots=True)
class Named:
    """The items of a list that have names.

    `word`: what an argument is called in help. `prefix`: what their ids begin with; empty where ids
    are looked up as well. `by` and `id`: the members with the name and the id.
    """

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
# Lists whose items have only a name or only an id, so that nothing is looked up.
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
# The member that completion offers for such lists.
_NAMES = {f"{IN_CLUSTER}/topics": "name", f"{IN_CLUSTER}/groups": "group", "/operations": "id"}


def metavar_of(collection: str) -> str:
    """Returns what help calls an argument that names an item of a list."""
    known = COLLECTIONS.get(collection)
    return known.word if known else WORDS[collection]


def resolve_id(
    session: Session, collection: str, text: str, *, cluster_id: str = "", over: bool = False
) -> str:
    """Returns the id of an item by its name; an id is returned as it is. Raises `CommandError`."""
    known = COLLECTIONS.get(collection)
    if known is None or (known.prefix and text.startswith(known.prefix)):
        return text
    return str(find_item(session, collection, text, cluster_id=cluster_id, over=over)[known.id])


def find_item(
    session: Session, collection: str, text: str, *, cluster_id: str = "", over: bool = False
) -> dict[str, Any]:
    """Returns the item of a list that has a name or an id.

    `over`: whether an item that is over comes first. Raises `CommandError` where there is none, or
    where several have the name.
    """
    known = COLLECTIONS[collection]
    path = collection.replace("{cluster_id}", segment(cluster_id))
    items, _ = session.client.pages(path)
    by_id = [item for item in items if item[known.id] == text]
    named = by_id or [item for item in items if item.get(known.by) == text]
    preferred = [item for item in named if _is_over(item) == over]
    matches = preferred or named
    word = known.word.lower().replace("_", " ")
    if not matches:
        raise CommandError(f"There is no {word} {text!r}.", code=NOT_FOUND)
    if len(matches) > 1:
        ids = ", ".join(str(item[known.id]) for item in matches)
        raise CommandError(
            f"Several have the name {text!r}.", advice=f"Use one of their ids: {ids}"
        )
    return matches[0]


def _is_over(item: dict[str, Any]) -> bool:
    return any(item.get(member) for member in _OVER) or item.get("state") in _OVER_STATES


def cluster_id(session: Session, given: str | None) -> str:
    """Returns the id of the cluster that a command means.

    It is the first of --cluster (`given`), FRESHET_CLUSTER and the one of `freshet use`. Raises
    `CommandError` where there is none.
    """
    text = given or session.environment.get("FRESHET_CLUSTER") or session.profile.cluster
    if not text:
        raise CommandError(
            "Which cluster?", advice="Add --cluster NAME, or choose one with `freshet use NAME`."
        )
    return resolve_id(session, CLUSTERS, text)


def completion_of(collection: str) -> Callable[..., list[CompletionItem]]:
    """Returns a function that gives a shell the names of a list's items.

    It gives none where the service does not answer.
    """

    def complete_name(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
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
        candidates = {str(item[by]) for item in items if item.get(by) and not _is_over(item)}
        return [CompletionItem(name) for name in sorted(candidates) if name.startswith(incomplete)]

    return complete_name


def build_argument(collection: str, key: str, word: str) -> click.Argument:
    """Returns an argument that names an item of a list, with completion."""
    return click.Argument([key], metavar=word, shell_complete=completion_of(collection))


def build_parameter(field: Field) -> click.Parameter:
    """Returns a field's option or argument; one that names an item of a list has completion."""
    if not field.collection:
        return field.parameter()
    return field.parameter(completion_of(field.collection))
