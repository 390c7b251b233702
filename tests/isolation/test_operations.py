"""Operations in numbers: beside them, another organization's operation does not wait."""

from __future__ import annotations

from collections import Counter

from provisioning.clusters.services.operations import STARTS_PER_ORGANIZATION
from tests.isolation.crowds import Crowd, client
from tests.service.api import REGION, Api
from tests.supervisor.run import wait_until

CREATED = 3 * STARTS_PER_ORGANIZATION


def states(api: Api) -> Counter[str]:
    """How many of an organization's creations are in each state."""
    items = api.call("GET", "/operations?limit=200")["items"]
    return Counter(item["state"] for item in items if item["type"] == "create_cluster")


def test_many_creations_and_their_cancellation(service, attacker, victim):
    key = attacker.http.headers["Authorization"].removeprefix("Bearer ")

    def create(number: int) -> dict[str, str]:
        body = {"name": f"c{number}", "region": REGION, "deletion_protection": False}
        with client(service, key) as http:
            answer = http.post("/clusters", json=body)
        assert answer.status_code == 202, answer.text
        operation: dict[str, str] = answer.json()
        return operation | {"name": str(body["name"])}

    operations = Crowd(CREATED, create).start().end()
    ids = [operation["resource_id"] for operation in operations]
    attacker._made += ids
    # The victim asks last, and does not wait for those before it.
    victim.create_cluster("victim")
    left = states(attacker)
    assert left["running"] <= STARTS_PER_ORGANIZATION
    assert left["queued"] + left["running"] > 0, left
    assert left["failed"] == 0
    # Those that wait leave the line when they are cancelled, and nothing of them is started.
    for operation in operations:
        shown = attacker.call("GET", f"/operations/{operation['id']}")
        if shown["state"] == "queued":
            address = f"/clusters/{operation['resource_id']}?name={operation['name']}"
            attacker.call("DELETE", address, status=202)
            attacker._made.remove(operation["resource_id"])
    assert states(attacker)["cancelled"] > 0
    wait_until(
        lambda: not states(attacker)["queued"] and not states(attacker)["running"],
        "the others end",
    )
    ended = states(attacker)
    assert ended["succeeded"] + ended["cancelled"] >= CREATED
    assert ended["failed"] == 0
