"""Kinds of operations on clusters: what is there before, what is asked for, and how it must end."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from console.base.accounts import services as accounts
from console.base.accounts.choices import AccountStatus
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
    """Nothing to prepare, or to look at."""
    del world


@dataclass(frozen=True)
class Course:
    """One kind. Each entry of `audit` is in the log so often in the end, and nothing else is.

    `operations` are those that it has, with the state that they end in.
    """

    name: str
    ask: Callable[[World], object]
    prepare: Callable[[World], None] = nothing
    check: Callable[[World], None] = nothing
    audit: dict[str, int] = field(default_factory=dict)
    operations: tuple[tuple[str, str], ...] = ()
    own_cluster: bool = True
    # What happens in so many rounds of workers, keeper and sweeps is of the operation.
    rounds: int = 2
    # To be asked for again is to be in the log again: there is no key to know it by.
    repeats: bool = False

    def audits(self, tries: int) -> list[dict[str, int]]:
        """What may be in the log, after so many requests."""
        found = [self.audit]
        if self.repeats:
            found += [
                {name: count * times for name, count in self.audit.items()}
                for times in range(2, tries + 1)
            ]
        return found

    def __str__(self) -> str:
        return self.name


def post(path: str, body: object = None) -> Callable[[World], object]:
    """A POST below the cluster."""
    return lambda world: world.ask("POST", world.path + path, body or {})


def create(world: World) -> None:
    """A new cluster."""
    body = {"name": f"c-{uuid.uuid4().hex[:10]}"}
    world.cluster_id = world.ask("POST", "/clusters", body).json()["resource_id"]


def check_created(world: World) -> None:
    """There is one, and it ran."""
    assert [item["id"] for item in world.api.get("/clusters").json()["items"]] == [world.cluster_id]
    assert phase(world) == "running"


def phase(world: World) -> str:
    """What people are shown."""
    return str(world.api.get(world.path).json()["status"]["phase"])


def is_phase(wanted: str) -> Callable[[World], None]:
    """Checks what people are shown."""

    def check(world: World) -> None:
        assert phase(world) == wanted

    return check


def run(world: World) -> None:
    """Wakes it."""
    world.ask("POST", f"{world.path}:wake")
    world.settle()
    assert phase(world) == "running"


def delete(world: World) -> None:
    """Asks for its end."""
    world.ask("DELETE", world.path, query={"name": world.row().name})


def deleted(world: World) -> None:
    """It is deleted, and can be restored."""
    delete(world)
    world.settle()


def suspended(world: World) -> None:
    """It is suspended by its own wish."""
    world.ask("POST", f"{world.path}:suspend")
    world.settle()


def due(world: World) -> None:
    """It is deleted, and its time is over; it has data, a topic and a credential."""
    world.ask("POST", f"{world.path}/topics", {"name": "t"})
    world.ask("POST", f"{world.path}/credentials", {"name": "c", "role": "full"})
    deleted(world)
    for folder in (config().cell.dfs, config().cell.dfs.parent / "bucket"):
        (folder / world.cluster_id / "segments").mkdir(parents=True)
    world.change_row(deleted_at=ago(days=7, seconds=1))


def is_purged(world: World) -> None:
    """Nothing is left of it."""
    assert world.row().intent == Intent.PURGED
    assert not (config().cell.dfs.parent / "bucket" / world.cluster_id).exists()


def scale(world: World) -> None:
    """Has it never sleep."""
    world.ask("PATCH", world.path, {"spec": {"scale": {"min": 1}}})


def rename(world: World) -> None:
    """Another name, and another idle time."""
    world.ask("PATCH", world.path, {"name": "another", "spec": {"idle_timeout_s": 77}})


def check_renamed(world: World) -> None:
    """The cell knows it."""
    spec = world.cell.spec(world.cluster_id)
    assert spec is not None
    assert (spec.name, spec.idle_timeout_ms) == ("another", 77_000)


def service(world: World, call: Callable[[], object]) -> None:
    """Something that another part of the product asks for, again where it died or failed."""
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
    """By its account status."""
    service(
        world,
        lambda: accounts.set_account_status(
            organization_id=world.tenant.id,
            status=AccountStatus.SUSPENDED,
            reason="unpaid",
        ),
    )


def refuse_produce(world: World) -> None:
    """By its budget."""
    service(
        world,
        lambda: accounts.set_produce_suspension(
            organization_id=world.tenant.id, reason="The budget is used up."
        ),
    )


def reinstate(world: World) -> None:
    """Takes both back, for the next."""
    accounts.set_account_status(
        organization_id=world.tenant.id, status=AccountStatus.ACTIVE, reason="paid"
    )
    accounts.set_produce_suspension(organization_id=world.tenant.id, reason=None)
    world.settle()


def organization_suspended(world: World) -> None:
    """Its clusters are, until it is reinstated."""
    assert phase(world) == "suspended"
    reinstate(world)


def request_more(world: World) -> None:
    """Asks for more connections."""
    body = {
        "limit": "connections",
        "cluster_id": world.cluster_id,
        "wanted": 4321,
        "reason": "more clients",
    }
    world.limit_request = world.ask("POST", "/limit-requests", body).json()["id"]


def grant(world: World) -> None:
    """Staff grants it."""

    def call() -> None:
        with organization_scope(world.tenant.id):
            found = LimitRequest.objects.select_for_update().get(pk=world.limit_request)
            if found.state != "open":
                return
            limits.grant_limit(
                actor=system_actor(world.tenant.id), request=found, value=4321, answer="yes"
            )

    service(world, call)


def check_granted(world: World) -> None:
    """The cell keeps to it."""
    spec = world.cell.spec(world.cluster_id)
    assert spec is not None
    assert spec.connections_max == 4321


def open_organization(world: World) -> None:
    """One of its own, with a cluster that runs, whose owner is signed in."""
    world.move_in(make_tenant(f"Closing-{uuid.uuid4().hex[:8]}"))
    world.make_cluster()
    run(world)
    world.browser = signed_in(world.tenant.owner)


def close(world: World) -> None:
    """The owner closes the organisation."""
    world.ask(
        "POST",
        "/organizations/current:close",
        {"name": world.tenant.organization.name},
        client=world.browser,
        told_done="organization_closed",
    )


DONE = "succeeded"
CLUSTERS: tuple[Course, ...] = (
    Course(
        "create",
        create,
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
        run,
        is_phase("asleep"),
        {"cluster.sleep": 1},
        (("sleep_cluster", DONE),),
    ),
    Course(
        "suspend",
        post(":suspend"),
        run,
        is_phase("suspended"),
        {"cluster.suspend": 1},
        (("suspend_cluster", DONE),),
    ),
    Course(
        "resume",
        post(":resume"),
        suspended,
        is_phase("asleep"),
        {"cluster.resume": 1},
        (("resume_cluster", DONE),),
    ),
    Course("scale", scale, check=is_phase("running"), audit={"cluster.update": 1}, repeats=True),
    Course("update", rename, check=check_renamed, audit={"cluster.update": 1}, repeats=True),
    Course(
        "delete",
        delete,
        run,
        is_phase("deleted"),
        {"cluster.delete": 1},
        (("delete_cluster", DONE),),
    ),
    Course(
        "undelete",
        post(":undelete"),
        deleted,
        is_phase("asleep"),
        {"cluster.undelete": 1},
        (("undelete_cluster", DONE),),
    ),
    Course("purge", nothing, due, is_purged, {"cluster.purge": 1}),
    Course(
        "standing",
        suspend_organization,
        run,
        organization_suspended,
        {"organization.set_standing": 1},
    ),
    Course(
        "produce-suspension",
        refuse_produce,
        check=reinstate,
        audit={"organization.set_produce_suspension": 1},
    ),
    Course("limit", grant, request_more, check_granted, {"limit_request.grant": 1}),
    Course(
        "close",
        close,
        open_organization,
        audit={"organization.close": 1, "cluster.delete": 1},
        operations=(("delete_cluster", DONE),),
        own_cluster=False,
    ),
)
