"""Tests tasks that are lost, doubled, hours late and out of order, with faults between them.

Each example is a history of one cluster: the requests of its owner, the order in which Celery
delivers tasks, and faults. In the end every system answers again, and the cluster must be as its
owner asked for.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.base.common.tenancy import organization_scope
from provisioning.choices import Intent
from provisioning.models import Operation
from provisioning.reconciling import service as reconciling
from tests.provisioning.faults.seam import NOT_OF_COMMITS, Fault
from tests.provisioning.faults.world import World, ago

EXAMPLES = 12
STEPS_MAX = 14
# A request or a task makes no more calls than this.
CALLS_MAX = 14


@dataclass
class History:
    """One cluster; `expected` is the state that the answers to its owner's requests promised."""

    world: World
    expected: dict[str, object] = field(default_factory=dict)

    def ask(self, kind: str) -> None:
        """Sends a request until it is answered. A refusal (an operation runs) is an answer, too."""
        method, path, body, change = self._request(kind)
        query = {"name": self.world.row().name} if method == "DELETE" else {}
        answer = self.world.ask(method, path, body, query=query, refusable=True)
        if len(self.world.answers) > 1 and answer.status_code >= 300:
            # An earlier try may have done it.
            self.expected = self.seen()
        elif answer.status_code < 300:
            self.expected |= change

    def _request(self, kind: str) -> tuple[str, str, object, dict[str, object]]:
        path, name = self.world.path, f"r-{uuid.uuid4().hex[:8]}"
        requests: dict[str, tuple[str, str, object, dict[str, object]]] = {
            "wake": ("POST", f"{path}:wake", {}, {}),
            "sleep": ("POST", f"{path}:sleep", {}, {}),
            "suspend": ("POST", f"{path}:suspend", {}, {"suspend_wanted": True}),
            "resume": ("POST", f"{path}:resume", {}, {"suspend_wanted": False}),
            "never sleep": ("PATCH", path, {"spec": {"scale": {"min": 1}}}, {"scale_min": 1}),
            "may sleep": ("PATCH", path, {"spec": {"scale": {"min": 0}}}, {"scale_min": 0}),
            "rename": ("PATCH", path, {"name": name}, {"name": name}),
            "delete": ("DELETE", path, None, {"intent": Intent.DELETED.value}),
            "undelete": ("POST", f"{path}:undelete", {}, {"intent": Intent.ACTIVE.value}),
        }
        return requests[kind]

    def seen(self) -> dict[str, object]:
        """Returns those fields of the cluster's row that requests change."""
        row = self.world.row()
        return {
            "suspend_wanted": row.suspend_wanted,
            "scale_min": row.scale_min,
            "name": row.name,
            "intent": row.intent,
        }

    def deliver(self, place: int, *, again: bool) -> None:
        """Delivers one of the waiting tasks, out of order. With `again` it waits on."""
        queue = self.world.seam.queue
        if queue:
            message = queue[place % len(queue)]
            if not again:
                queue.remove(message)
            self.world.run(*message)

    def deliver_late(self, place: int) -> None:
        """Delivers one of all tasks that were ever sent, also after the cluster's deletion."""
        sent = self.world.seam.sent
        if sent:
            self.world.run(*sent[place % len(sent)])

    def flush(self) -> None:
        """Loses all waiting tasks, as a Redis that starts empty does."""
        self.world.seam.queue.clear()

    def let_pass(self) -> None:
        """Has a week pass after the cluster's deletion, so that the sweep removes its data."""
        if self.world.row().intent == Intent.DELETED:
            self.world.change_row(deleted_at=ago(days=8))
            self.world.settle()
            self.expected["intent"] = Intent.PURGED.value

    def fail(self, place: int, fault: Fault) -> None:
        """Makes one of the next calls go wrong."""
        self.world.seam.arm(place, fault)

    def end(self) -> None:
        """Checks that the cluster, its operations and its audit log are as they must be."""
        world = self.world
        world.settle()
        world.seam.record(on=False)
        world.check()
        assert self.seen() == self.expected
        with organization_scope(world.tenant.id):
            begun = Operation.objects.exclude(pk__in=world.operations_before)
            kinds = Counter(
                kind.removesuffix("_cluster") for kind in begun.values_list("type", flat=True)
            )
        audited = Counter(world.audited())
        for kind in ("wake", "sleep", "suspend", "resume", "delete", "undelete"):
            assert audited[f"cluster.{kind}"] == kinds[kind], kind
        assert audited["cluster.purge"] == (self.expected["intent"] == Intent.PURGED)
        # Late tasks of a cluster that is at rest change nothing at all.
        before, revision = world.row().generation, world.cell.specs().revision
        for message in list(world.seam.sent):
            world.run(*message)
        reconciling.sweep_clusters()
        assert (world.row().generation, world.cell.specs().revision) == (before, revision)


Step = Callable[[History], None]
ASKED = ["wake", "sleep", "suspend", "resume", "never sleep", "may sleep", "rename", "delete"]
places = st.integers(0, CALLS_MAX)
steps: st.SearchStrategy[Step] = st.one_of(
    st.sampled_from([*ASKED, "undelete"]).map(lambda kind: lambda history: history.ask(kind)),
    places.map(lambda place: lambda history: history.deliver(place, again=False)),
    places.map(lambda place: lambda history: history.deliver(place, again=True)),
    places.map(lambda place: lambda history: history.deliver_late(place)),
    st.just(lambda history: history.flush()),
    st.just(lambda history: history.world.keep()),
    st.just(lambda history: history.world.sweep()),
    st.just(lambda history: history.let_pass()),
    st.tuples(places, st.sampled_from([f for f in Fault if f not in NOT_OF_COMMITS])).map(
        lambda what: lambda history: history.fail(*what)
    ),
)


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=st.lists(steps, min_size=3, max_size=STEPS_MAX))
def test_whatever_becomes_of_tasks_the_end_is_what_was_asked_for(world, chosen):
    world.seam.heal()
    world.seam.sent.clear()
    world.seam.record(on=False)
    world.make_cluster()
    world.mark()
    history = History(world)
    history.expected = history.seen()
    try:
        for step in chosen:
            step(history)
        history.end()
    finally:
        world.seam.heal()
        world.seam.record(on=False)
        world.forget()
