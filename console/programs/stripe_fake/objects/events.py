"""Events: what changed, as webhooks carry it. They can be listed for 30 days."""

from __future__ import annotations

from console.programs.stripe_fake.endpoints import Endpoint, EndpointCall
from console.programs.stripe_fake.errors import Json, ParameterError, missing_object
from console.programs.stripe_fake.forms import EXPAND, LISTED, Items, Text
from console.programs.stripe_fake.lists import page_of

_TYPES_MAX = 20
KEPT_S = 30 * 86_400
_PATH = "/v1/events"


def _with_pending(call: EndpointCall, event: Json) -> Json:
    return {**event, "pending_webhooks": call.sandbox.store.pending_webhooks(event["id"])}


def _retrieve(call: EndpointCall) -> Json:
    event = call.sandbox.load("event", call.ids[0])
    if event["created"] < call.sandbox.now() - KEPT_S:
        raise missing_object("event", call.ids[0])
    return _with_pending(call, event)


def _list(call: EndpointCall) -> Json:
    if len(call.params.get("types", [])) > _TYPES_MAX:
        raise ParameterError("`types` names at most 20 types.", param="types")
    types = call.params.get("types") or [t for t in [call.params.get("type")] if t]
    created = {"gte": call.sandbox.now() - KEPT_S, **call.params.get("created", {})}
    created["gte"] = max(created["gte"], call.sandbox.now() - KEPT_S)
    events = call.sandbox.store.select("event", {}, created)
    page = page_of(
        [event for event in events if not types or _is_of(event["type"], types)],
        call.params,
        _PATH,
    )
    page["data"] = [_with_pending(call, event) for event in page["data"]]
    return page


def _is_of(event_type: str, types: list[str]) -> bool:
    return any(
        event_type == name or (name.endswith(".*") and event_type.startswith(name[:-1]))
        for name in types
    )


ENDPOINTS = (
    Endpoint("GET", f"{_PATH}/{{}}", EXPAND, _retrieve),
    Endpoint("GET", _PATH, {**LISTED, "type": Text(), "types": Items()}, _list),
)
