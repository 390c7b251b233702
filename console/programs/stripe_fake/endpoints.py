"""What an endpoint is: a method and a path, the parameters that it takes, and what it does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from console.programs.stripe_fake import expansion, lists, search
from console.programs.stripe_fake.errors import Json
from console.programs.stripe_fake.forms import EXPAND, LISTED, Integer, Parameter, Text
from console.programs.stripe_fake.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class EndpointCall:
    """One request to an endpoint: the ids in its path, and its parameters."""

    sandbox: Sandbox
    ids: tuple[str, ...]
    params: Json


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`path` has `{}` where an id stands, such as `/v1/customers/{}`."""

    method: str
    path: str
    fields: Mapping[str, Parameter]
    handle: Callable[[EndpointCall], Json]

    def ids_of(self, path: str) -> tuple[str, ...] | None:
        """Returns the ids in a request's path; None where it is not this endpoint's."""
        pattern = re.escape(self.path).replace(r"\{\}", r"([^/]+)")
        match = re.fullmatch(pattern, path)
        return None if match is None else match.groups()


def retrieve(kind: str, path: str, fields: Mapping[str, Parameter] | None = None) -> Endpoint:
    """Returns the endpoint that answers an object by its id."""
    return Endpoint(
        "GET",
        f"{path}/{{}}",
        {**EXPAND, **(fields or {})},
        lambda call: call.sandbox.load(kind, call.ids[0]),
    )


def listing(
    kind: str,
    path: str,
    filters: Mapping[str, Parameter] | None = None,
    keep: Callable[[Json], bool] = lambda _: True,
) -> Endpoint:
    """Returns the endpoint that lists objects of a kind; `filters` are members that must equal."""
    names = tuple(filters or {})

    def handle(call: EndpointCall) -> Json:
        equal = {name: call.params[name] for name in names if name in call.params}
        objects = call.sandbox.store.select(kind, equal, call.params.get("created"))
        return lists.page_of([body for body in objects if keep(body)], call.params, path)

    return Endpoint("GET", path, {**LISTED, **(filters or {})}, handle)


def searching(kind: str, path: str) -> Endpoint:
    """Returns the endpoint that searches objects of a kind."""
    fields = {**EXPAND, "limit": Integer(minimum=1), "page": Text(), "query": Text(required=True)}

    def handle(call: EndpointCall) -> Json:
        shown_at = call.sandbox.now() - call.sandbox.settings().search_lag_s
        objects = call.sandbox.store.searchable(kind, shown_at)
        matching = search.matching(objects, kind, call.params["query"])
        return search.search_page(matching, call.params, f"{path}/search")

    return Endpoint("GET", f"{path}/search", fields, handle)


def choose_endpoint(
    endpoints: Iterable[Endpoint], method: str, path: str
) -> tuple[Endpoint, tuple[str, ...]] | None:
    """Returns the endpoint of a request and the ids in its path. `search` is no id."""
    for endpoint in endpoints:
        ids = endpoint.ids_of(path)
        if endpoint.method == method and ids is not None and "search" not in ids:
            return endpoint, ids
    return None


def expanded(call: EndpointCall, body: Json) -> Json:
    """Returns an answer with what `expand[]` asks for; raises `ParameterError`."""
    return expansion.expand(body, call.params.get("expand", []), call.sandbox.store.load)
