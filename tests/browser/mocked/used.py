"""A month of usage that adds up, and the answers that a service would give about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tests.browser.mocked.answers import CLUSTER, Answer, Json, Query, Request, answer_to

OTHER_CLUSTER = "cl_4x7mzq2nk5vw3jt6ybac"
PAYMENTS, AUDIT, INTERNAL = "a" * 32, "b" * 32, "c" * 32
WRITER, READER, SERVICE = "User:cred_writer", "User:cred_reader", "User:__freshet"
INGRESS, EGRESS, STORED = "ingress_bytes", "egress_bytes", "storage_byte_minutes"
UNITS = {INGRESS: "byte", EGRESS: "byte", STORED: "byte_minute", "broker_seconds": "second"}
TOPICS = {PAYMENTS: "payments", AUDIT: "audit", INTERNAL: "__consumer_offsets"}
NAMES = {WRITER: "writer", READER: "reader"}
GIB, MIB = 2**30, 2**20
# What topics hold now: 12.4 GiB.
HELD = 13_314_398_617
# A day before this one is published.
TODAY = 21


@dataclass(frozen=True)
class Used:
    """What a principal used of a topic on a day of November 2026."""

    day: int
    meter: str
    quantity: int
    topic: str = PAYMENTS
    principal: str = WRITER
    cluster: str = CLUSTER
    billed: bool = True


USED = (
    Used(3, INGRESS, 26 * GIB + 1),
    Used(3, INGRESS, 9_007_199_254_740_993, topic=AUDIT, cluster=OTHER_CLUSTER),
    Used(20, INGRESS, 7 * GIB + 3, principal=READER),
    Used(21, INGRESS, 11 * GIB + 7),
    Used(20, EGRESS, 1_700_001, principal=READER),
    Used(21, EGRESS, 82_579, principal=READER, topic=AUDIT),
    Used(20, EGRESS, 980 * MIB, principal=SERVICE, billed=False),
    Used(21, EGRESS, 8 * MIB, principal=SERVICE, billed=False),
    Used(21, EGRESS, 4_096, principal=READER, topic=INTERNAL, billed=False),
    Used(3, STORED, 3 * GIB * 43_200 + 5, principal=""),
    Used(20, STORED, 900_001, principal="", topic=AUDIT, cluster=OTHER_CLUSTER),
    Used(20, "broker_seconds", 3_600, principal="", topic="", billed=False),
)
# The parts of costs, each by the names that it has.
KINDS = {
    "by_cluster": ("cluster",),
    "by_topic": ("cluster", "topic"),
    "by_principal": ("cluster", "principal"),
    "by_day": ("day",),
}


def answer_with_usage(request: Request) -> Answer:
    """The examples, and of usage and costs what follows from `USED`."""
    answer = answer_to(request)
    if request.path == "/api/v1/usage":
        answer.body.update(items=list(_items(request.query)), next_cursor=None)
    elif request.path == "/api/v1/costs" and request.query["month"] == "2026-11":
        answer.body.update(_costs(answer.body))
    elif request.path == "/api/v1/prices":
        (first,) = answer.body["prices"]
        units = {INGRESS: "GiB", EGRESS: "GiB", STORED: "GiB-month"}
        answer.body["prices"] = [
            first | {"meter": meter, "unit": unit, "free_unit": unit}
            for meter, unit in units.items()
        ]
    elif request.path == "/api/v1/usage/stored":
        answer.body["bytes"] = str(HELD)
    return answer


def _window(used: Used, granularity: str) -> tuple[datetime, datetime]:
    start = datetime(2026, 11, used.day, tzinfo=UTC)
    if granularity == "month":
        return start.replace(day=1), datetime(2026, 12, 1, tzinfo=UTC)
    # By the hour, all of a day was in its first one.
    return start, start + timedelta(**{f"{granularity}s": 1})


def _matches(used: Used, query: Query) -> bool:
    start, _ = _window(used, "hour")
    chosen = {
        "cluster_id": used.cluster,
        "topic_id": used.topic,
        "principal": used.principal,
        "meter": used.meter,
        "billed": str(used.billed).lower(),
    }
    begins = datetime.fromisoformat(query["from"])
    return begins <= start < datetime.fromisoformat(query["to"]) and all(
        query.get(name, value) == value for name, value in chosen.items()
    )


def _items(query: Query) -> Iterable[Json]:
    """Rows, or sums of them: of a window, a meter, what it is grouped by, and whether billed."""
    granularity, by = query["granularity"], query.get("group_by", "none")
    sums: dict[tuple[object, ...], tuple[Used, int]] = {}
    for used in USED:
        if _matches(used, query):
            grouped = {
                "none": (used.cluster, used.topic, used.principal),
                "topic": (used.cluster, used.topic),
                "principal": (used.cluster, used.principal),
                "cluster": (used.cluster,),
                "meter": (),
            }[by]
            key = (_window(used, granularity), used.meter, grouped, used.billed)
            sums[key] = (used, sums.get(key, (used, 0))[1] + used.quantity)
    for number, (used, quantity) in enumerate(sums.values()):
        start, end = _window(used, granularity)
        fresh = used.day >= TODAY
        has = {name: by in {"none", name} for name in ("topic", "principal")}
        yield {
            "id": f"ur_{number:020}".replace("0", "a") if by == "none" and not fresh else None,
            "meter": used.meter,
            "unit": UNITS[used.meter],
            "quantity": str(quantity),
            "window_start": f"{start:%Y-%m-%dT%H:%M:%SZ}",
            "window_end": f"{end:%Y-%m-%dT%H:%M:%SZ}",
            "provisional": fresh,
            "billed": used.billed,
            "cluster_id": None if by == "meter" else used.cluster,
            "topic_id": (used.topic or None) if has["topic"] else None,
            "topic": TOPICS.get(used.topic) if has["topic"] else None,
            "principal": (used.principal or None) if has["principal"] else None,
            "principal_name": NAMES.get(used.principal) if has["principal"] else None,
        }


def _costs(example: Json) -> Json:
    """Costs in which every quantity is the sum of what is billed, and an amount its GiB."""
    (line,) = example["lines"]
    shares: dict[str, list[Json]] = {}
    for kind, names in KINDS.items():
        keys = sorted({tuple(getattr(used, name) for name in names) for used in billed()})
        shares[kind] = [_share(dict(zip(names, key, strict=True))) for key in keys]
    lines = [
        line | part | {"cluster_id": share["cluster_id"], "cluster": share["cluster"]}
        for share in shares["by_cluster"]
        for part in share["meters"]
    ]
    whole = _share({})
    return {**shares, "lines": lines, "by_meter": whole["meters"]}


def billed(**names: object) -> list[Used]:
    """What is billed of a cluster, topic, principal, day and meter, as far as they are given."""
    return [
        used
        for used in USED
        if used.billed and all(getattr(used, name) == value for name, value in names.items())
    ]


def quantity_of(**names: object) -> int:
    """How much is billed of it."""
    return sum(used.quantity for used in billed(**names))


def _share(names: dict[str, object]) -> Json:
    meters = [
        {
            "meter": meter,
            "quantity": str(quantity_of(**names, meter=meter)),
            "amount_minor": quantity_of(**names, meter=meter) // GIB,
        }
        for meter in (INGRESS, EGRESS, STORED)
        if billed(**names, meter=meter)
    ]
    share: Json = {"meters": meters, "amount_minor": sum(part["amount_minor"] for part in meters)}
    if "cluster" in names:
        share |= {"cluster_id": names["cluster"], "cluster": names["cluster"]}
    if names.keys() == {"cluster"}:
        share |= dict.fromkeys(("billed_minor", "forecast_minor"), share["amount_minor"])
    if "topic" in names:
        share |= {"topic_id": names["topic"], "topic": TOPICS[str(names["topic"])]}
    if "principal" in names:
        principal = str(names["principal"])
        share |= {"principal": principal, "principal_name": NAMES.get(principal)}
    if "day" in names:
        share |= {"day": f"2026-11-{names['day']:02}"}
    return share
