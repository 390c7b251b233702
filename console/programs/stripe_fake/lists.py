"""Pages of lists, as Stripe makes them: newest first, by the id before which they begin."""

from __future__ import annotations

from console.programs.stripe_fake.errors import Json, ParameterError, missing_object

LIMIT, LIMIT_MAX = 10, 100


def page_of(objects: list[Json], params: Json, url: str) -> Json:
    """Returns one page of `objects`, which are all of them, newest first.

    Raises `ApiError` where `starting_after` or `ending_before` names no object.
    """
    limit = params.get("limit", LIMIT)
    if limit > LIMIT_MAX:
        raise ParameterError(
            f"This value must be less than or equal to {LIMIT_MAX}.",
            code="parameter_invalid_integer",
            param="limit",
        )
    places = {body["id"]: n for n, body in enumerate(objects)}
    for name in ("starting_after", "ending_before"):
        if name in params and params[name] not in places:
            raise missing_object("object", params[name], name)
    if "ending_before" in params:
        newer = objects[: places[params["ending_before"]]]
        return _answer(newer[-limit:], len(newer) > limit, url)
    start = places[params["starting_after"]] + 1 if "starting_after" in params else 0
    older = objects[start:]
    return _answer(older[:limit], len(older) > limit, url)


def _answer(data: list[Json], has_more: bool, url: str) -> Json:
    return {"object": "list", "data": data, "has_more": has_more, "url": url}
