"""Kinds of operations on clusters: what is there before, what is asked for, and how it must end."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from console.base.accounts import services as accounts
from console.base.accounts.choices import (
    AccountStatus,
    TrafficLimitKind,
    TrafficLimitSource,
)
from console.base.common.actor import system_actor
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope
from console.base.limits import services as limits
from console.base.limits.models import LimitRequest
from provisioning.choices import Intent
from tests.console.browsers import signed_in
from tests.console.factories import make_tenant
from tests.provisioning.faults.world import World, ago


def nothing(world: World) -> None:
    """Does nothing: stands for a step that a course does not need."""


@dataclass(frozen=True)
class Course:
    """One kind of operation: how it is prepared, requested and checked.

    `audit` has the entries that the audit log must have in the end, and how many of each; it has
    nothing else then. `operations` has type and last state of each `Operation` that belongs to the
    course.
    """

    name: str
    ask: Callable[[World], object]
    prepare: Callable[[World], None] = nothing
    check: Callable[[World], None] = nothing
    audit: dict[str, int] = field(default_factory=dict)
    operations: tuple[tuple[str, str], ...] = ()
    own_cluster: bool = True
    # The calls of so many rounds of workers, keeper and sweeps after the request belong to the
    # course, and can go wrong.
    rounds: int = 2
    # Whether a repeated request is one more entry in the audit log: it has no Idempotency-Key by
    # which the service could recognise it.
    repeats: bool = False

    def audits(self, tries: int) -> list[dict[str, int]]:
        """Returns what the audit log may have after `tries` requests: entries with their counts."""
        counts = [self.audit]
        if self.repeats:
            counts += [
                {name: count * times for name, count in self.audit.items()}
                for times in range(2, tries + 1)
            ]
        return counts

    def __str__(self) -> str:
        return self.name


def post(path: str, body: object = None) -> Callable[[World], object]:
    """Returns a step that sends a POST to a path below the cluster's."""
    return lambda world: world.ask("POST", world.path + path, body or {})


def create_cluster(world: World) -> None:
    """Creates a cluster."""
    body = {"name": f"c-{uuid.uuid4().hex[:10]}"}
    world.cluster_id = world.ask("POST", "/clusters", body).json()["resource_id"]


def check_created(world: World) -> None:
    """Checks that the cluster is the only one, and runs."""
    assert [item["id"] for item in world.api.get("/clusters").json()["items"]] == [world.cluster_id]
    assert shown_phase(world) == "running"


def shown_phase(world: World) -> str:
    """Returns the phase that the API shows."""
    return str(world.api.get(world.path).json()["status"]["phase"])


def is_phase(expected: str) -> Callable[[World], None]:
    """Returns a check of the phase that the API shows."""

    def check(world: World) -> None:
        assert shown_phase(world) == expected

    return check


def wake_cluster(world: World) -> None:
    """Wakes the cluster, and waits until it runs."""
    world.ask("POST", f"{world.path}:wake")
    world.settle()
    assert shown_phase(world) == "running"


def delete_cluster(world: World) -> None:
    """Asks for the cluster's deletion."""
    world.ask("DELETE", world.path, query={"name": world.row().name})


def delete_and_settle(world: World) -> None:
    """Deletes the cluster, which can be restored then."""
    delete_cluster(world)
    world.settle()


def suspend_and_settle(world: World) -> None:
    """Suspends the cluster at its owner's request."""
    world.ask("POST", f"{world.path}:suspend")
    world.settle()


def make_purgeable(world: World) -> None:
    """Deletes a cluster that has data, a topic and a credential, and has the time pass in which it
    can be restored.
    """
    world.ask("POST", f"{world.path}/topics", {"name": "t"})
    world.ask("POST", f"{world.path}/credentials", {"name": "c", "role": "full"})
    delete_and_settle(world)
    for folder in (config().cell.dfs, config().cell.dfs.parent / "bucket"):
        (folder / world.cluster_id / "segments").mkdir(parents=True)
    world.change_row(deleted_at=ago(days=7, seconds=1))


def is_purged(world: World) -> None:
    """Checks that nothing is left of the cluster."""
    assert world.row().intent == Intent.PURGED
    assert not (config().cell.dfs.parent / "bucket" / world.cluster_id).exists()


def keep_awake(world: World) -> None:
    """Changes the cluster so that it never sleeps."""
    world.ask("PATCH", world.path, {"spec": {"scale": {"min": 1}}})


def rename_cluster(world: World) -> None:
    """Changes the cluster's name and idle time."""
    world.ask("PATCH", world.path, {"name": "another", "spec": {"idle_timeout_s": 77}})


def check_renamed(world: World) -> None:
    """Checks that the cell has the new name and idle time."""
    spec = world.cell.spec(world.cluster_id)
    assert spec is not None
    assert (spec.name, spec.idle_timeout_ms) == ("another", 77_000)


def call_service(world: World, call: Callable[[], object]) -> None:
    """Calls a service as another part of the product does; again if it died or failed."""
    for _ in range(4):
        done: list[object] = []

        def attempt(done: list[object] = done) -> None:
            try:
                done.append([call()])
            except Exception:
                return

        world.attempt(attempt)
        if done:
            return
        world.seam.heal()


def suspend_organization(world: World) -> None:
    """Suspends the organization by its account status."""
    call_service(
        world,
        lambda: accounts.set_account_status(
            organization_id=world.tenant.id,
            status=AccountStatus.SUSPENDED,
            reason="unpaid",
        ),
    )


def refuse_traffic(world: World) -> None:
    """Has the organization's clusters refuse traffic, as a budget that is used up does."""
    call_service(
        world,
        lambda: accounts.set_traffic_limit(
            organization_id=world.tenant.id,
            source=TrafficLimitSource.BUDGET,
            kind=TrafficLimitKind.REFUSE,
            reason="The budget is used up.",
        ),
    )


def reinstate(world: World) -> None:
    """Takes both back: the next course uses the same organization."""
    accounts.set_account_status(
        organization_id=world.tenant.id, status=AccountStatus.ACTIVE, reason="paid"
    )
    accounts.set_traffic_limit(
        organization_id=world.tenant.id, source=TrafficLimitSource.BUDGET, kind=None
    )
    world.settle()


def check_organization_suspended(world: World) -> None:
    """Checks that the organization's clusters are suspended, and reinstates it."""
    assert shown_phase(world) == "suspended"
    reinstate(world)


def request_more(world: World) -> None:
    """Requests a higher limit of connections."""
    body = {
        "limit": "connections",
        "cluster_id": world.cluster_id,
        "wanted": 4321,
        "reason": "more clients",
    }
    world.limit_request = world.ask("POST", "/limit-requests", body).json()["id"]


def grant(world: World) -> None:
    """Grants the request for a higher limit, as staff do."""

    def call() -> None:
        with organization_scope(world.tenant.id):
            request = LimitRequest.objects.select_for_update().get(pk=world.limit_request)
            if request.state != "open":
                return
            limits.grant_limit(
                actor=system_actor(world.tenant.id), request=request, value=4321, answer="yes"
            )

    call_service(world, call)


def check_granted(world: World) -> None:
    """Checks that the cell has the new limit."""
    spec = world.cell.spec(world.cluster_id)
    assert spec is not None
    assert spec.connections_max == 4321


def open_organization(world: World) -> None:
    """Moves into an organization of its own, with a cluster that runs and an owner who is signed
    in: it does not outlive the course.
    """
    world.move_in(make_tenant(f"Closing-{uuid.uuid4().hex[:8]}"))
    world.make_cluster()
    wake_cluster(world)
    world.browser = signed_in(world.tenant.owner)


def close_organization(world: World) -> None:
    """Closes the organization, as its owner does."""
    world.ask(
        "POST",
        "/organizations/current:close",
        {"name": world.tenant.organization.name},
        client=world.browser,
        done_code="organization_closed",
    )


DONE = "succeeded"
CLUSTERS: tuple[Course, ...] = (
    Course(
        "create",
        create_cluster,
        check=check_created,
        audit={"cluster.create": 1},
        operations=(("create_cluster", DONE),),
        own_cluster=False,
    ),
    Course(
        "wake",
        post(":wake"),
        check=is_phase("running"),
        audit={"cluster.wake": 1},
        operations=(("wake_cluster", DONE),),
    ),
    Course(
        "sleep",
        post(":sleep"),
        wake_cluster,
        is_phase("asleep"),
        {"cluster.sleep": 1},
        (("sleep_cluster", DONE),),
    ),
    Course(
        "suspend",
        post(":suspend"),
        wake_cluster,
        is_phase("suspended"),
        {"cluster.suspend": 1},
        (("suspend_cluster", DONE),),
    ),
    Course(
        "resume",
        post(":resume"),
        suspend_and_settle,
        is_phase("asleep"),
        {"cluster.resume": 1},
        (("resume_cluster", DONE),),
    ),
    Course(
        "scale", keep_awake, check=is_phase("running"), audit={"cluster.update": 1}, repeats=True
    ),
    Course(
        "update", rename_cluster, check=check_renamed, audit={"cluster.update": 1}, repeats=True
    ),
    Course(
        "delete",
        delete_cluster,
        wake_cluster,
        is_phase("deleted"),
        {"cluster.delete": 1},
        (("delete_cluster", DONE),),
    ),
    Course(
        "undelete",
        post(":undelete"),
        delete_and_settle,
        is_phase("asleep"),
        {"cluster.undelete": 1},
        (("undelete_cluster", DONE),),
    ),
    Course("purge", nothing, make_purgeable, is_purged, {"cluster.purge": 1}),
    Course(
        "account-status",
        suspend_organization,
        wake_cluster,
        check_organization_suspended,
        {"organization.set_standing": 1},
    ),
    Course(
        "traffic-limit",
        refuse_traffic,
        check=reinstate,
        audit={"organization.set_traffic_limit": 1},
    ),
    Course("limit", grant, request_more, check_granted, {"limit_request.grant": 1}),
    Course(
        "close",
        close_organization,
        open_organization,
        audit={"organization.close": 1, "cluster.delete": 1},
        operations=(("delete_cluster", DONE),),
        own_cluster=False,
    ),
)
