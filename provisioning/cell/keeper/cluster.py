"""One cluster of the keeper: observes it, decides what to do, and does that, in a loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from brokers.metadata_records import BrokerStatus
from console.base.runtime.clock import Clock
from provisioning.cell.drivers.base import (
    Answer,
    BrokerState,
    ClusterObservation,
    ClusterPlan,
    Driver,
    Outcome,
)
from provisioning.cell.keeper.decide import (
    Action,
    Apply,
    ForgetWake,
    Remove,
    Replace,
    Rules,
    Scrape,
    Stop,
    TakeSample,
    View,
    counts_all_clients,
    decide,
)
from provisioning.cell.keeper.guard import Crowd, GuardRules, Replaced
from provisioning.cell.keeper.health import UNANSWERED, Beat, GuardState, beat_of
from provisioning.cell.keeper.kubernetes import BrokerFiles, KubernetesSettings, make_folder
from provisioning.cell.keeper.maintenance import EtcdMaintenance
from provisioning.cell.keeper.metrics import Metrics
from provisioning.cell.keeper.plan import cluster_plan
from provisioning.cell.keeper.prober import Pace, Prober
from provisioning.cell.keeper.records import (
    ClusterPhase,
    Spec,
    SpecState,
    Status,
    StoreError,
    Wake,
)
from provisioning.cell.keeper.sample_writer import SampleWriter
from provisioning.cell.keeper.sampler import Sampler
from provisioning.cell.keeper.settings import KeeperSettings
from provisioning.cell.keeper.store import AsyncStore
from provisioning.cell.notes import Removal
from provisioning.cell.status.counts import TopicCounts
from provisioning.cell.status.groups import groups_in
from provisioning.cell.status.picture import Damage

LOGGER = logging.getLogger(__name__)

# A request to the driver that takes longer has an unknown outcome.
DRIVER_TIMEOUT_S = 20.0
# Pause before a request or a write that failed is repeated.
RETRY_S = 0.5
# A slot whose broker was replaced is observed again after this time, even without a notification.
LOOK_AT_LOST_S = 10.5
# Pause before a removal that was not accepted is requested again. It may need a person's action.
REMOVE_AGAIN_S = 15.0


@dataclass(frozen=True)
class CellParts:
    """The objects that all clusters of a cell share."""

    settings: KeeperSettings
    secret: bytes
    driver: Driver
    store: AsyncStore
    clock: Clock
    metrics: Metrics
    samples: SampleWriter
    crowd: Crowd = field(default_factory=Crowd)
    watch: GuardState = field(default_factory=GuardState)
    files: BrokerFiles = field(default_factory=BrokerFiles)
    # None for a cell in SQLite, which keeps no history that would have to be compacted.
    maintenance: EtcdMaintenance | None = None

    @property
    def rules(self) -> Rules:
        """The rules of decisions, from the settings."""
        loop = self.settings.keeper
        return Rules(
            stopping_grace_ms=loop.stopping_grace_ms,
            awake_min_ms=loop.awake_min_ms,
            retry_failed_ms=loop.retry_failed_ms,
            failures_max=loop.failures_max,
            unanswered_max=loop.unanswered_max,
        )

    @property
    def guard_rules(self) -> GuardRules:
        """The rules by which deletions are held, from the settings."""
        loop = self.settings.keeper
        return GuardRules(
            percent_max=loop.unhealthy_percent_max,
            brokers_max=loop.unhealthy_max,
            brokers_min=loop.unhealthy_min,
            hold_after_ms=loop.hold_after_ms,
            release_after_ms=loop.release_after_ms,
        )


class ClusterTask:
    """Keeps one cluster, in an asyncio task of its own, so that a slow cluster delays no other."""

    def __init__(
        self, cluster_id: str, cell: CellParts, status: Status | None, *, kept: bool
    ) -> None:
        self.cluster_id = cluster_id
        self._cell = cell
        self._spec: Spec | None = None
        self._wake: Wake | None = None
        self._status = status
        self._stored = status
        self._written_ms = 0
        self._applied: ClusterPlan | None = None
        self.broker_states: tuple[BrokerState, ...] = ()
        self._refused = ""
        self._asked_ms = 0
        # Since when the broker of a slot does not serve, while the cluster shall run.
        self._absent: dict[int, int] = {}
        self._busy_ms = cell.clock.now_ms()
        self._idle_ms: int | None = None
        self._restarts = 0
        self._woken_ms: int | None = None
        self._kept = kept
        self._removal: Removal | None = None
        self._remove_at_ms = 0
        self._replaced: dict[int, Replaced] = {}
        self._observed = ClusterObservation(cluster_id, known=False)
        self._leaving = False
        self._vacant = not kept
        self._changed = asyncio.Event()
        loop = cell.settings.keeper
        pace = Pace(loop.scrape_interval_ms / 1000, loop.scrape_timeout_ms / 1000)
        self._counts = TopicCounts()
        self._prober = Prober(cell.clock, cell.metrics, pace, self.poke)
        self._sampler = Sampler(
            cluster_id,
            self._take_sample,
            writer=cell.samples,
            clock=cell.clock,
            metrics=cell.metrics,
            timeout_s=loop.sample_timeout_ms / 1000,
            done=self.poke,
        )

    @property
    def phase(self) -> ClusterPhase:
        """The phase that was decided last."""
        return ClusterPhase.ASLEEP if self._status is None else self._status.phase

    @property
    def brokers(self) -> tuple[BrokerStatus, ...]:
        """The brokers that serve, as the last decision has them."""
        return () if self._status is None else self._status.brokers

    @property
    def vacant(self) -> bool:
        """Whether the last observation had no broker, and the status says so."""
        return self._vacant

    @property
    def orphaned(self) -> bool:
        """Whether the driver has something of it, but the store neither a spec nor a `Removal`."""
        return self._spec is None and self._kept and self._removal is None

    def beat(self) -> Beat:
        """The health of its brokers, from the last observation."""
        runs = self._spec is not None and self._spec.state is SpecState.ACTIVE
        scale = self._spec.scale if self._spec is not None and runs else 0
        return beat_of(
            self._status if runs else None,
            self._observed,
            scale=scale,
            unanswered=dict(self._prober.unanswered),
            absent=self._absent,
            now_ms=self._cell.clock.now_ms(),
        )

    @property
    def damaged(self) -> tuple[Damage, ...] | None:
        """The lowest damaged batches that its brokers knew last.

        None while that is not known of brokers that run.
        """
        return self._prober.damaged

    @property
    def is_gone(self) -> bool:
        """Whether the cluster was purged and nothing is left of it."""
        return self._spec is None and self._wake is None and self._vacant and not self._kept

    def update(self, spec: Spec | None, wake: Wake | None) -> None:
        """Takes the spec and wake request that the metadata store has now."""
        if spec != self._spec or wake != self._wake:
            self._spec, self._wake = spec, wake
            self.poke()

    def stop_for_exit(self) -> None:
        """Stops the brokers because the keeper ends. A wake request stays for the next keeper."""
        self._leaving = True
        self.poke()

    def poke(self) -> None:
        """Makes the task take another step at once."""
        self._changed.set()

    async def run(self) -> None:
        """Takes a step at every change, until it is cancelled."""
        probing = asyncio.create_task(self._prober.run(), name=f"probe {self.cluster_id}")
        try:
            while True:
                self._changed.clear()
                try:
                    await self._take_step()
                except Exception:
                    # A defect must not end the task, or nothing would keep this cluster any more.
                    LOGGER.exception("%s: a step failed, and is repeated", self.cluster_id)
                    self._poke_later()
                await self._changed.wait()
        finally:
            probing.cancel()
            await self._sampler.close()

    async def _take_step(self) -> None:
        observed = await self._observe_brokers()
        now_ms = self._cell.clock.now_ms()
        self._observed = observed
        if observed.known:
            self._prober.look_at(observed.brokers)
            self._note_crowd(observed)
        if self._spec is None and not observed.brokers:
            await self._ask_whether_purged()
        self.broker_states = tuple(broker.state for broker in observed.brokers)
        self._note_activity(observed, now_ms)
        view = self._make_view(observed, now_ms)
        decision = decide(view, self._cell.rules)
        self._idle_ms = (self._idle_ms or now_ms) if TakeSample() in decision.actions else None
        self._note_restarts(observed)
        self._note_absent(observed, decision.status, now_ms)
        self._note_phase(view, decision.status)
        starts = Apply() in decision.actions
        if starts:
            await self._apply_plan(self._cause_of_start(decision.status))
        if decision.status is not None:
            await self._write_status(decision.status)
        for action in decision.actions:
            await self._do_action(action)
        self._vacant = observed.known and not observed.brokers and not starts
        if self.phase is ClusterPhase.RUNNING and now_ms >= self._next_sample_ms():
            self._start_sample()

    async def _observe_brokers(self) -> ClusterObservation:
        try:
            async with asyncio.timeout(DRIVER_TIMEOUT_S):
                return await self._cell.driver.observe(self.cluster_id)
        except (OSError, TimeoutError) as error:
            LOGGER.warning("%s: the driver could not observe it: %s", self.cluster_id, error)
            self._poke_later()
            return ClusterObservation(self.cluster_id, known=False)

    def _make_view(self, observed: ClusterObservation, now_ms: int) -> View:
        return View(
            now_ms=now_ms,
            spec=self._spec,
            status=self._status,
            wake=self._wake,
            observed=observed,
            stored=self._is_stored(),
            applied=self._applied is not None and self._applied == self._desired_plan(),
            refused=self._refused,
            asked_ms=self._asked_ms,
            reading=self._prober.reading,
            busy_ms=self._busy_ms,
            idle_ms=self._idle_ms,
            sampled_ms=self._sampler.attempted_ms,
            unanswered=self._prober.unanswered,
            restarts=self._restarts,
            kept=self._kept,
            removable=self._removable(now_ms),
            not_replaceable=frozenset(
                slot for slot, before in self._replaced.items() if not before.due(now_ms)
            ),
            doubtful=self._cell.crowd.suspicious,
            leaving=self._leaving,
        )

    def _removable(self, now_ms: int) -> bool:
        if self._removal is None or now_ms < self._remove_at_ms:
            return False
        return not self._cell.watch.held or bool(self._removal.permit_at(now_ms))

    async def _ask_whether_purged(self) -> None:
        """Reads whether the control plane has written that the cluster is purged."""
        try:
            self._removal = await self._cell.store.removal(self.cluster_id)
            if self._removal is not None and not self._kept:
                await self._cell.store.forget(self.cluster_id)
        except StoreError:
            self._poke_later()

    def _note_crowd(self, observed: ClusterObservation) -> None:
        silent = dict(self._prober.unanswered)
        away = [b for b in observed.brokers if b.machine and b.state is BrokerState.RUNNING]
        count = sum(not b.lost and silent.get(b.slot, 0) >= UNANSWERED for b in away)
        self._cell.crowd.note(self.cluster_id, running=len(away), silent=count)

    def _desired_plan(self) -> ClusterPlan | None:
        if self._spec is None or self._spec.state is not SpecState.ACTIVE:
            return None
        cell = self._cell
        files = cell.files.of(self.cluster_id)
        return cluster_plan(self._spec, cell.settings, cell.secret, files)

    def _note_activity(self, observed: ClusterObservation, now_ms: int) -> None:
        """Notes when the cluster was last not known to be idle."""
        reading = self._prober.reading
        at_work = self.phase in {ClusterPhase.RUNNING, ClusterPhase.STOPPING} and self._wake is None
        counted = counts_all_clients(observed.brokers) and at_work
        if not (counted and reading is not None and reading.connections == 0):
            self._busy_ms = now_ms

    def _note_restarts(self, observed: ClusterObservation) -> None:
        if observed.known:
            self._cell.metrics.count("restarts", max(observed.restarts - self._restarts, 0))
            self._restarts = observed.restarts

    def _note_absent(
        self, observed: ClusterObservation, status: Status | None, now_ms: int
    ) -> None:
        """Notes since when slots do not serve. While the cluster sleeps, none shall."""
        if not observed.known:
            return
        serving = {b.slot for b in observed.brokers if b.state is BrokerState.RUNNING}
        at_rest = {ClusterPhase.ASLEEP, ClusterPhase.STOPPING}
        runs = self._spec is not None and status is not None and status.phase not in at_rest
        slots = range(self._spec.scale) if self._spec is not None and runs else ()
        self._absent = {
            slot: self._absent.get(slot, now_ms) for slot in slots if slot not in serving
        }

    def _note_phase(self, view: View, status: Status | None) -> None:
        if status is None or status.phase is view.phase:
            return
        metrics, wake = self._cell.metrics, view.wake
        if status.phase is ClusterPhase.STARTING and wake is not None:
            metrics.count("wakes")
            self._woken_ms = wake.requested_at_ms
            LOGGER.info("%s: woken by %s", self.cluster_id, wake.by)
        elif status.phase is ClusterPhase.STARTING and view.phase is not ClusterPhase.RUNNING:
            LOGGER.info("%s: starts for %s", self.cluster_id, status.started_for)
        elif status.phase is ClusterPhase.RUNNING and self._woken_ms is not None:
            metrics.woke(max(view.now_ms - self._woken_ms, 0) / 1000)
            self._woken_ms = None
        elif status.phase is ClusterPhase.ASLEEP:
            metrics.count("sleeps", int(view.phase is ClusterPhase.STOPPING and not self._leaving))
            LOGGER.info("%s: asleep", self.cluster_id)
        elif status.phase is ClusterPhase.FAILED:
            LOGGER.error("%s: failed: %s", self.cluster_id, status.message)

    async def _do_action(self, action: Action) -> None:
        match action:
            case Apply():
                pass  # `_take_step` does it before it writes the status
            case Stop():
                self._applied, self._refused = None, ""
                await self._ask_driver(self._cell.driver.stop(self.cluster_id, clean=True))
            case Replace(slot):
                await self._replace_broker(slot)
            case Remove():
                await self._remove_cluster()
            case Scrape():
                grace_s = self._cell.settings.keeper.stopping_grace_ms / 1000
                asyncio.get_running_loop().call_later(grace_s, self._prober.soon)
            case TakeSample():
                self._start_sample(last=True)
            case ForgetWake(revision):
                await self._forget_wake(revision)

    async def _replace_broker(self, slot: int) -> None:
        lost = any(broker.slot == slot and broker.lost for broker in self._observed.brokers)
        why = "its machine is lost" if lost else "it does not answer"
        LOGGER.warning("%s/%d: %s, it is replaced", self.cluster_id, slot, why)
        now_ms = self._cell.clock.now_ms()
        before = self._replaced.get(slot)
        self._replaced[slot] = Replaced(1, now_ms) if before is None else before.again(now_ms)
        self._cell.metrics.count("replacements")
        self._prober.forget(slot)
        await self._ask_driver(self._cell.driver.replace(self.cluster_id, slot))
        # A broker on a lost machine causes no notification, so the slot is observed after a while.
        asyncio.get_running_loop().call_later(LOOK_AT_LOST_S, self.poke)

    async def _remove_cluster(self) -> None:
        self._applied = None
        now_ms = self._cell.clock.now_ms()
        self._remove_at_ms = now_ms + int(REMOVE_AGAIN_S * 1000)
        asyncio.get_running_loop().call_later(REMOVE_AGAIN_S, self.poke)
        permit = ""
        if self._removal is not None and self._cell.watch.held:
            permit = self._removal.permit_at(now_ms)
        removing = self._cell.driver.remove(self.cluster_id, break_glass=permit)
        outcome = await self._ask_driver(removing)
        self._kept = outcome.answer is not Answer.ACCEPTED
        self.poke()

    def _cause_of_start(self, status: Status | None) -> str:
        """The reason that is given to brokers which start now, for their logs."""
        if status is None:
            return ""
        before = self._status
        if before is None or before.phase is not ClusterPhase.RUNNING:
            return status.started_for
        if before.observed_generation == status.observed_generation:
            return status.started_for
        # Brokers that run keep their reason; those that start now do so for the new generation.
        return f"generation {status.observed_generation}"

    async def _apply_plan(self, cause: str) -> None:
        plan = self._desired_plan()
        if plan is None:
            return
        self._kept = True
        self._asked_ms = self._cell.clock.now_ms()
        outcome = await self._ask_driver(self._start_brokers(plan.caused_by(cause)))
        self._refused = outcome.message if outcome.answer is Answer.REFUSED else ""
        self._applied = plan if outcome.answer is Answer.ACCEPTED else None

    async def _start_brokers(self, plan: ClusterPlan) -> Outcome:
        if isinstance(self._cell.settings.driver, KubernetesSettings):
            # A pod mounts its cluster's folder, which only the keeper creates.
            await asyncio.to_thread(make_folder, self._cell.settings.cell.dfs, self.cluster_id)
        return await self._cell.driver.apply(plan)

    async def _ask_driver(self, request: Coroutine[Any, Any, Outcome]) -> Outcome:
        """Awaits a request to the driver. Schedules another step where it was not accepted."""
        try:
            async with asyncio.timeout(DRIVER_TIMEOUT_S):
                outcome = await request
        except (OSError, TimeoutError) as error:
            outcome = Outcome(Answer.UNKNOWN, str(error) or "no answer in time")
        if outcome.answer is Answer.UNKNOWN:
            self._cell.metrics.count("driver_unknown")
            LOGGER.warning(
                "%s: the outcome of a request is unknown: %s", self.cluster_id, outcome.message
            )
            self._poke_later()
        elif outcome.answer is Answer.REFUSED:
            LOGGER.warning("%s: the driver refused a request: %s", self.cluster_id, outcome.message)
            self.poke()
        return outcome

    async def _write_status(self, status: Status) -> None:
        """Writes the status where it changed. A write that failed is repeated by a later step."""
        self._status = status
        if status == self._stored:
            return
        now_ms = self._cell.clock.now_ms()
        interval_ms = self._cell.settings.keeper.connections_interval_ms
        # The number of connections changes all the time and no decision of others rests on it, so
        # a status in which only that changed is written at an interval.
        if self._is_stored() and now_ms - self._written_ms < interval_ms:
            return
        try:
            await self._cell.store.put_status(self.cluster_id, status)
        except StoreError:
            self._poke_later()
            return
        changed = self._stored is None or self._stored.phase is not status.phase
        self._stored, self._written_ms = status, now_ms
        if changed:
            # The next decision may depend on the write, as a stop does on `stopping`.
            self.poke()

    def _is_stored(self) -> bool:
        if self._status is None or self._stored is None:
            return self._status is self._stored
        return replace(self._status, connections=0) == replace(self._stored, connections=0)

    async def _forget_wake(self, revision: int) -> None:
        try:
            await self._cell.store.remove_wake(self.cluster_id, revision)
        except StoreError:
            self._poke_later()
            return
        if self._wake is not None and self._wake.revision == revision:
            self._wake = None

    def _next_sample_ms(self) -> int:
        return self._sampler.attempted_ms + self._cell.settings.keeper.sample_interval_ms

    def _start_sample(self, *, last: bool = False) -> None:
        if self.brokers:
            self._sampler.start(last=last)

    async def _take_sample(self) -> Mapping[str, object] | None:
        """The content of a sample; None where not all is known of the cluster."""
        pictures = await self._prober.pictures_now()
        if pictures is None:
            return None
        content: dict[str, object] = {
            "groups": groups_in(pictures),
            "topics": self._counts.of(pictures),
            "connections": sum(picture.connections or 0 for picture in pictures),
        }
        if any(picture.cut for picture in pictures):
            content["truncated"] = True
        return content

    def _poke_later(self) -> None:
        asyncio.get_running_loop().call_later(RETRY_S, self.poke)
