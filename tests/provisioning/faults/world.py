"""A tenant behind the seam: its requests, its workers, its keeper, and what must hold.

Requests are sent as a well-written client sends them: a POST has an Idempotency-Key, and a request
without an answer is sent again. Workers run Celery's tasks and the sweeps. A task whose worker dies
in the middle is delivered again; one that fails is not.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Any
from unittest import mock

from celery import current_app
from django.db import transaction
from django.db.models import F

from brokers.metadata import CellStore, ClusterStore
from brokers.metadata_records import ClusterStatus
from console.base.common import outbox, queued, rates
from console.base.common.actor import system_actor
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.ids import is_id
from console.base.common.models import AuditEntry, OutboxEntry, WaitingTask
from console.base.common.tenancy import organization_scope
from provisioning.administration.services import announcing, credential_expiry
from provisioning.cell.notes import removal_of
from provisioning.choices import UNFINISHED, Intent, OperationState
from provisioning.clusters.services import clusters
from provisioning.clusters.services.limits import limits_of_cluster
from provisioning.models import Announcement, CellPort, Cluster, Credential, Operation
from provisioning.models.cluster import RESTORABLE
from provisioning.reconciling import service as reconciling
from provisioning.reconciling.plan import SLEEP_SOON_MS
from tests.console.clients import ApiClient
from tests.console.factories import Tenant
from tests.provisioning.faults.seam import Killed, Seam

DONE = OperationState.SUCCEEDED.value
# More rounds of workers, keeper and sweeps than any operation needs to finish.
ROUNDS_MAX = 8
# How often a client sends a request at most while it gets no answer.
TRIES_MAX = 6
# The answers to a repeated request without a key whose first try was carried out: what it names is
# gone, or has changed.
DONE_BEFORE = {404, 409, 412}


def store_address() -> str:
    """Returns the path of the cell's metadata store."""
    return config().cell.metadata.removeprefix("sqlite://")


class World:
    """One tenant. `seam` counts and fails what the product calls; the keeper is beside it."""

    def __init__(self, tenant: Tenant, seam: Seam, cell: CellStore) -> None:
        self.seam, self.cell = seam, cell
        self.move_in(tenant)
        self.cluster_id = ""
        # All answers to the last request, oldest first; None where there was no answer.
        self.answers: list[Any] = []
        # Ids of what a course made in its preparation.
        self.credential = self.acl = self.deleted_topic_id = self.limit_request = ""
        self.browser: Any = None
        self.since, self.operations_before = now(), set[str]()

    def move_in(self, tenant: Tenant) -> None:
        """Makes this the tenant whose requests are sent from here on."""
        self.tenant, self.api = tenant, ApiClient(tenant.key)
        # The first request with an API key writes the time of its use, those soon after do not:
        # the calls of a course would depend on it.
        self.api.get("/clusters")

    @contextmanager
    def rows(self) -> Iterator[None]:
        """Gives the test itself access to the tenant's rows, beside the seam."""
        with self.seam.beside(), organization_scope(self.tenant.id):
            yield

    # A client.

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        **options: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Sends a request until it is answered, and returns the last answer.

        With `refusable` the answer may be a refusal. `done_code` is the error code by which a
        repeated request is answered that was carried out before.
        """
        refusable, done_code = options.pop("refusable", False), options.pop("done_code", None)
        headers = {"Idempotency-Key": uuid.uuid4().hex} if method == "POST" else {}
        client = options.pop("client", self.api)
        self.answers = []
        for _ in range(TRIES_MAX):
            rates.forget_rates()
            answer = self.attempt(
                lambda: client.request(method, path, body, headers=headers, **options)
            )
            again = answer is None or answer.status_code >= 500
            self.answers.append(answer)
            if not again:
                break
            self.seam.heal()
        assert answer is not None
        repeated = len(self.answers) > 1
        done = answer.status_code < 300 or (
            repeated and not headers and answer.status_code in DONE_BEFORE
        )
        done |= repeated and done_code is not None and answer.json().get("code") == done_code
        assert done or (refusable and answer.status_code in {404, 409}), [
            response if response is None else response.content for response in self.answers
        ]
        return answer

    def attempt(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Calls `work` as if in a process of its own. Returns None where that is killed."""
        try:
            return work()
        except Killed:
            return None

    # Workers, and what runs periodically.

    def work(self) -> None:
        """Runs the tasks that wait in Celery now. A task whose worker is killed waits again."""
        taken, self.seam.queue[:] = list(self.seam.queue), []
        with self.rows():
            self._make_due()
        for name, arguments in taken:
            self.run(name, arguments)

    def run(self, name: str, arguments: dict[str, Any]) -> None:
        """Delivers a task once to a worker, which acknowledges it unless it is killed."""
        done = self.attempt(lambda: self._run(name, arguments))
        if done is None:
            # The worker was killed before it acknowledged the task.
            self.seam.queue.append((name, arguments))

    def _run(self, name: str, arguments: dict[str, Any]) -> bool:
        # Celery logs the exception of a task; what became of the task is in its row.
        with suppress(Exception):
            current_app.tasks[name](**arguments)
        return True

    def sweep(self) -> None:
        """Runs the periodic tasks, with all retries due."""
        with self.rows():
            OutboxEntry.objects.filter(organization_id=self.tenant.id).update(due_at=now())
            self._make_due()
        for periodic in (
            outbox.sweep_outbox,
            queued.sweep_waiting,
            reconciling.sweep_clusters,
            credential_expiry.expire_credentials,
        ):
            self.attempt(partial(self._swept, periodic))

    @staticmethod
    def _make_due() -> None:
        """Has the waiting tasks be due, and overdue, as they are after some time."""
        overdue = now() - queued.OVERDUE
        WaitingTask.objects.update(due_at=overdue, taken_until=None, taken_by="")

    @staticmethod
    def _swept(periodic: Callable[[], object]) -> None:
        with suppress(Exception):
            periodic()

    def go_on(self, rounds: int) -> None:
        """Runs workers, the keeper and the sweeps so many times, in turn."""
        for _ in range(rounds):
            self.work()
            self.keep()
            self.sweep()

    def settle(self) -> None:
        """Heals all systems, and goes on until nothing is left to do."""
        self.seam.heal()
        # `heal` has performed what was late, so that nothing can arrive after this.
        with mock.patch.object(announcing, "ARRIVED_AFTER", timedelta(0)):
            if self.seam.struck:
                # No row says what a call that went wrong left undone. The next sweep looks at every
                # cluster.
                self.go_on(1)
            for _ in range(ROUNDS_MAX):
                if not self.left():
                    self.keep()
                    return
                self.go_on(1)
        raise AssertionError(self.left())

    def left(self) -> list[str]:
        """Returns the names of everything that is still to be done."""
        with self.rows():
            entries = [
                *OutboxEntry.objects.values_list("task", flat=True),
                *WaitingTask.objects.values_list("task", flat=True),
            ]
            unfinished = Operation.objects.filter(state__in=UNFINISHED)
            ending = Credential.objects.exclude(removed_at=None).values_list("pk", flat=True)
            kinds = unfinished.values_list("type", flat=True)
            behind = Cluster.objects.not_purged().filter(reconciled_generation__lt=F("generation"))
            over = Cluster.objects.filter(intent=Intent.DELETED, deleted_at__lt=now() - RESTORABLE)
            due = Credential.objects.due(moment=now()).values_list("pk", flat=True)
            pending = Announcement.objects.values_list("pk", flat=True)
            unfinished_rows = [*entries, *kinds, *ending, *due, *pending]
            clusters_left = [*(behind | over).values_list("pk", flat=True)]
            messages = map(str, self.seam.queue)
            return [*unfinished_rows, *clusters_left, *messages, *self._ownerless()]

    def _ownerless(self) -> list[str]:
        """Returns credentials in the cell that are not in the audit log: no answer named them."""
        rows = Cluster.objects.active().filter(pk=self.cluster_id)
        if not rows.exists():
            return []
        return sorted(self._credentials_of_the_cell() - self._recorded_credentials())

    def _credentials_of_the_cell(self) -> set[str]:
        """Returns the credentials in the cell that can authenticate or have ACL entries."""
        users = {user.user for user in self.store.list_users()}
        principals = {acl.principal.removeprefix("User:") for acl in self.store.list_acls()}
        return {name for name in users | principals if is_id(name, "cred")}

    @staticmethod
    def _recorded_credentials() -> set[str]:
        """Returns the credentials in the audit log. ACL entries that their owners gave them are
        still there when the credentials are deleted.
        """
        entries = AuditEntry.objects.filter(target_type="credential")
        return set(entries.values_list("target_id", flat=True))

    # The keeper.

    def keep(self) -> None:
        """Brings each cluster to the phase that it shall have, which the keeper does in time."""
        with self.seam.beside():
            self._keep()

    def _keep(self) -> None:
        for cluster_id, spec in self.cell.specs().items():
            before = self.cell.status(cluster_id)
            phase = "asleep" if before is None else before.phase
            wake = self.cell.wake(cluster_id)
            if spec.state != "active" or spec.idle_timeout_ms == SLEEP_SOON_MS:
                phase = "asleep"
            elif wake is not None or spec.idle_timeout_ms == 0:
                phase = "running"
            if wake is not None:
                self.cell.remove_wake(cluster_id, wake.revision)
            status = ClusterStatus(
                observed_generation=spec.generation,
                phase=phase,
                since_ms=time.time_ns() // 1_000_000,
                brokers=before.brokers if before is not None and phase == "running" else (),
            )
            self.cell.put_status(cluster_id, status)
        purged = self.cell.spec(self.cluster_id) is None
        if purged and removal_of(self.cell, self.cluster_id) is not None:
            self.cell.remove_cluster(self.cluster_id)

    # The cluster.

    @property
    def store(self) -> ClusterStore:
        """The cluster's own metadata. Its calls do not go through the seam."""
        return self.cell.cluster(self.cluster_id)

    @property
    def path(self) -> str:
        """The cluster's path in the API."""
        return f"/clusters/{self.cluster_id}"

    def row(self) -> Cluster:
        """Reads the cluster's row."""
        with self.rows():
            return Cluster.objects.get(pk=self.cluster_id)

    def change_row(self, **fields: object) -> None:
        """Changes the row behind the service's back, for example to have time pass."""
        with self.rows():
            Cluster.objects.filter(pk=self.cluster_id).update(**fields)

    def make_cluster(self) -> None:
        """Makes a cluster that sleeps, with nothing left to do. No call goes through the seam."""
        with self.rows():
            actor = system_actor(self.tenant.id)
            operation = clusters.create_cluster(
                actor=actor, name=f"c-{uuid.uuid4().hex[:10]}", deletion_protection=False
            )
            self.cluster_id = operation.cluster_id
            Operation.objects.filter(pk=operation.pk).update(state=DONE, finished_at=now())
            OutboxEntry.objects.all().delete()
            WaitingTask.objects.all().delete()
            transaction.get_connection().run_on_commit.clear()
            rows = Cluster.objects.filter(pk=self.cluster_id)
            rows.update(reconciled_generation=1, provisioned_at=now())
            spec = reconciling.spec_of(rows.get())
            limits = limits_of_cluster(cluster=rows.get())
        self.store.create(scale=spec.scale)
        self.store.set_limits(limits)
        self.cell.put_spec(spec)
        self.put_asleep(generation=1)

    def put_asleep(self, generation: int) -> None:
        """Writes the status that the keeper writes when nobody is connected."""
        self.cell.put_status(
            self.cluster_id,
            ClusterStatus(
                observed_generation=generation,
                phase="asleep",
                since_ms=time.time_ns() // 1_000_000,
            ),
        )

    def audited(self) -> dict[str, int]:
        """Returns how often each action is in the audit log since `mark`."""
        counted: dict[str, int] = {}
        with self.rows():
            for action in AuditEntry.objects.filter(created_at__gte=self.since).values_list(
                "action", flat=True
            ):
                counted[action] = counted.get(action, 0) + 1
        return counted

    def mark(self) -> None:
        """Has `audited` and `operations` count from here on."""
        self.since = now()
        with self.rows():
            self.operations_before = set(Operation.objects.values_list("pk", flat=True))

    def operations(self) -> list[tuple[str, str]]:
        """Returns type and state of the operations since `mark`, the oldest first."""
        with self.rows():
            rows = Operation.objects.exclude(pk__in=self.operations_before)
            return list(rows.order_by("created_at").values_list("type", "state"))

    def forget(self) -> None:
        """Removes all clusters and their work, so that they do not disturb the next trial."""
        with self.rows():
            for cluster in Cluster.objects.not_purged():
                self.cell.remove_cluster(cluster.pk)
                cluster.operations.unfinished().delete()
                Credential.objects.filter(cluster=cluster).delete()
                CellPort.objects.filter(cluster_id=cluster.pk).delete()
            Cluster.objects.update(intent=Intent.PURGED)
            OutboxEntry.objects.all().delete()
            WaitingTask.objects.all().delete()
            Announcement.objects.all().delete()
        self.seam.queue.clear()

    # What must hold in the end.

    def check(self) -> None:
        """Checks that the cell has what the rows ask for, and nothing is unfinished, lost or there
        twice.
        """
        assert self.left() == []
        row = self.row()
        if row.intent == Intent.PURGED:
            self._check_gone()
            return
        spec = self.cell.spec(self.cluster_id)
        with self.rows():
            assert spec is not None
            assert spec == reconciling.spec_of(row)
        assert row.reconciled_generation == row.generation
        assert not row.sleep_wanted
        assert self.store.record().scale == row.scale_max
        assert self.store.traffic_limit() == reconciling.traffic_limit_of(row)
        if row.intent == Intent.ACTIVE:
            self._check_users()

    def _check_gone(self) -> None:
        assert self.cell.spec(self.cluster_id) is None
        assert self.cell.status(self.cluster_id) is None
        assert self.cell.wake(self.cluster_id) is None
        assert (self.store.topics(), self.store.list_users()) == ([], [])
        assert not (config().cell.dfs / self.cluster_id).exists()
        with self.rows():
            assert not Credential.objects.filter(cluster_id=self.cluster_id).exists()
        assert not CellPort.objects.filter(cluster_id=self.cluster_id).exists()

    def _check_users(self) -> None:
        """Checks that the cell's credentials are those of the rows, and no others have quotas."""
        with self.rows():
            credentials = Credential.objects.filter(cluster_id=self.cluster_id)
            assert not credentials.exclude(removed_at=None).exists()
            rows, store = set(credentials.values_list("pk", flat=True)), self.store
        assert {user.user for user in store.list_users() if is_id(user.user, "cred")} == rows
        limited = {quota.entity.user for quota in store.quotas()}
        assert {name for name in limited if name and is_id(name, "cred")} <= rows


def ago(**duration: float) -> Any:  # noqa: ANN401
    """Returns the moment that lies so long before now."""
    return now() - timedelta(**duration)
