"""Kinds of operations on clusters: what is there before, what is asked for, and how it must end."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from console.base.accounts import services as accounts
from console.base.accounts.choices import Standing
from console.base.common.actor import system_actor
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope
from console.base.limits import services as limits
from console.base.limits.models import LimitRequest
from provisioning.choices import Intent
from tests.console.browsers import signed_in
from tests.console.factories import make_tenant
from tests.provisioning.faults.estate import Estate, ago


def nothing(estate: Estate) -> None:
    """Nothing to prepare, or to look at."""
    del estate


@dataclass(frozen=True)
class Course:
    """One kind. Each entry of `audit` is in the log so often in the end, and nothing else is.

    `operations` are those that it has, with the state that they end in.
    """

    name: str
    ask: Callable[[Estate], object]
    prepare: Callable[[Estate], None] = nothing
    check: Callable[[Estate], None] = nothing
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


def post(path: str, body: object = None) -> Callable[[Estate], object]:
    """A POST below the cluster."""
    return lambda estate: estate.ask("POST", estate.path + path, body or {})


def create(estate: Estate) -> None:
    """A new cluster."""
    body = {"name": f"c-{uuid.uuid4().hex[:10]}"}
    estate.cluster_id = estate.ask("POST", "/clusters", body).json()["resource_id"]


def check_created(estate: Estate) -> None:
    """There is one, and it ran."""
    assert [item["id"] for item in estate.api.get("/clusters").json()["items"]] == [
        estate.cluster_id
    ]
    assert phase(estate) == "running"


def phase(estate: Estate) -> str:
    """What people are shown."""
    return str(estate.api.get(estate.path).json()["status"]["phase"])


def is_phase(wanted: str) -> Callable[[Estate], None]:
    """Checks what people are shown."""

    def check(estate: Estate) -> None:
        assert phase(estate) == wanted

    return check


def run(estate: Estate) -> None:
    """Wakes it."""
    estate.ask("POST", f"{estate.path}:wake")
    estate.settle()
    assert phase(estate) == "running"


def delete(estate: Estate) -> None:
    """Asks for its end."""
    estate.ask("DELETE", estate.path, query={"name": estate.row().name})


def deleted(estate: Estate) -> None:
    """It is deleted, and can be restored."""
    delete(estate)
    estate.settle()


def suspended(estate: Estate) -> None:
    """It is suspended by its own wish."""
    estate.ask("POST", f"{estate.path}:suspend")
    estate.settle()


def due(estate: Estate) -> None:
    """It is deleted, and its time is over; it has data, a topic and a credential."""
    estate.ask("POST", f"{estate.path}/topics", {"name": "t"})
    estate.ask("POST", f"{estate.path}/credentials", {"name": "c", "role": "full"})
    deleted(estate)
    for folder in (config().cell.dfs, config().cell.dfs.parent / "bucket"):
        (folder / estate.cluster_id / "segments").mkdir(parents=True)
    estate.change_row(deleted_at=ago(days=7, seconds=1))


def is_purged(estate: Estate) -> None:
    """Nothing is left of it."""
    assert estate.row().intent == Intent.PURGED
    assert not (config().cell.dfs.parent / "bucket" / estate.cluster_id).exists()


def scale(estate: Estate) -> None:
    """Has it never sleep."""
    estate.ask("PATCH", estate.path, {"spec": {"scale": {"min": 1}}})


def rename(estate: Estate) -> None:
    """Another name, and another idle time."""
    estate.ask("PATCH", estate.path, {"name": "another", "spec": {"idle_timeout_s": 77}})


def check_renamed(estate: Estate) -> None:
    """The cell knows it."""
    spec = estate.cell.spec(estate.cluster_id)
    assert spec is not None
    assert (spec.name, spec.idle_timeout_ms) == ("another", 77_000)


def service(estate: Estate, call: Callable[[], object]) -> None:
    """Something that another part of the product asks for, again where it died or failed."""
    for _ in range(4):
        done: list[object] = []

        def attempt(done: list[object] = done) -> None:
            try:
                done.append([call()])
            except Exception:
                return

        estate.attempt(attempt)
        if done:
            return
        estate.seam.heal()


def suspend_organization(estate: Estate) -> None:
    """By its standing."""
    service(
        estate,
        lambda: accounts.set_standing(
            organization_id=estate.tenant.id, standing=Standing.SUSPENDED, reason="unpaid"
        ),
    )


def refuse_produce(estate: Estate) -> None:
    """By its budget."""
    service(
        estate,
        lambda: accounts.set_produce_suspension(
            organization_id=estate.tenant.id, reason="The budget is used up."
        ),
    )


def reinstate(estate: Estate) -> None:
    """Takes both back, for the next."""
    accounts.set_standing(organization_id=estate.tenant.id, standing=Standing.ACTIVE, reason="paid")
    accounts.set_produce_suspension(organization_id=estate.tenant.id, reason=None)
    estate.settle()


def organization_suspended(estate: Estate) -> None:
    """Its clusters are, until it is reinstated."""
    assert phase(estate) == "suspended"
    reinstate(estate)


def request_more(estate: Estate) -> None:
    """Asks for more connections."""
    body = {
        "limit": "connections",
        "cluster_id": estate.cluster_id,
        "wanted": 4321,
        "reason": "more clients",
    }
    estate.limit_request = estate.ask("POST", "/limit-requests", body).json()["id"]


def grant(estate: Estate) -> None:
    """Staff grants it."""

    def call() -> None:
        with organization_scope(estate.tenant.id):
            found = LimitRequest.objects.select_for_update().get(pk=estate.limit_request)
            if found.state != "open":
                return
            limits.grant_limit(
                actor=system_actor(estate.tenant.id), request=found, value=4321, answer="yes"
            )

    service(estate, call)


def check_granted(estate: Estate) -> None:
    """The cell keeps to it."""
    spec = estate.cell.spec(estate.cluster_id)
    assert spec is not None
    assert spec.connections_max == 4321


def open_organization(estate: Estate) -> None:
    """One of its own, with a cluster that runs, whose owner is signed in."""
    estate.move_in(make_tenant(f"Closing-{uuid.uuid4().hex[:8]}"))
    estate.make_cluster()
    run(estate)
    estate.browser = signed_in(estate.tenant.owner)


def close(estate: Estate) -> None:
    """The owner closes the organisation."""
    estate.ask(
        "POST",
        "/organizations/current:close",
        {"name": estate.tenant.organization.name},
        client=estate.browser,
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
