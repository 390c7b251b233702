"""One cluster under the keeper's eye: looks, decides, does, again and again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from brokers.metadata_records import BrokerStatus
from brokers.secrets import SUPER_USER, super_password
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
    decide,
)
from provisioning.cell.keeper.guard import Crowd, GuardRules, Replaced
from provisioning.cell.keeper.health import UNANSWERED, Beat, Watch, beat_of
from provisioning.cell.keeper.kubernetes import BrokerFiles, KubernetesSettings, make_folder
from provisioning.cell.keeper.maintenance import EtcdMaintenance
from provisioning.cell.keeper.metrics import Metrics
from provisioning.cell.keeper.plan import cluster_plan
from provisioning.cell.keeper.probe import topics_in
from provisioning.cell.keeper.prober import Pace, Prober
from provisioning.cell.keeper.records import (
    Phase,
    Spec,
    SpecState,
    Status,
    StoreError,
    Wake,
)
from provisioning.cell.keeper.sampler import AT_ONCE, SampleGroups, Sampler
from provisioning.cell.keeper.settings import KeeperSettings
from provisioning.cell.keeper.store import AsyncStore
from provisioning.cell.notes import Removal

LOGGER = logging.getLogger(__name__)

# A request to the driver that takes longer counts as lost.
DRIVER_TIMEOUT_S = 20.0
# Until a request or a write that failed is tried again.
RETRY_S = 0.5
# Until a slot whose broker was replaced is looked at, whoever tells of it or not.
LOOK_AT_LOST_S = 10.5
# Until a removal that was not accepted is asked for again: somebody may have to act first.
REMOVE_AGAIN_S = 15.0


@dataclass(frozen=True)
class Cell:
    """What all clusters of a cell share."""

    settings: KeeperSettings
    secret: bytes
    driver: Driver
    store: AsyncStore
    clock: Clock
    metrics: Metrics
    sample_groups: SampleGroups
    sampling: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    crowd: Crowd = field(default_factory=Crowd)
    watch: Watch = field(default_factory=Watch)
    files: BrokerFiles = field(default_factory=BrokerFiles)
    # None of a cell in SQLite, which keeps no more history than it needs by itself.
    maintenance: EtcdMaintenance | None = None

    @property
    def rules(self) -> Rules:
        """The bounds of decisions."""
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
        """From when deletions are held."""
        loop = self.settings.keeper
        return GuardRules(
            percent_max=loop.unhealthy_percent_max,
            brokers_max=loop.unhealthy_max,
            brokers_min=loop.unhealthy_min,
            hold_after_ms=loop.hold_after_ms,
            release_after_ms=loop.release_after_ms,
        )


class Cluster:
    """One cluster. It has a task of its own, so that a slow one delays nobody."""

    def __init__(self, cluster_id: str, cell: Cell, status: Status | None, *, kept: bool) -> None:
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
        self._prober = Prober(cell.clock, cell.metrics, pace, self.poke)
        self._sampler = Sampler(
            cluster_id,
            self._take_sample,
            topics=self._count_topics,
            store=cell.store,
            clock=cell.clock,
            metrics=cell.metrics,
            timeout_s=loop.sample_timeout_ms / 1000,
            turns=cell.sampling,
            done=self.poke,
        )

    @property
    def phase(self) -> Phase:
        """The phase that was decided last."""
        return Phase.ASLEEP if self._status is None else self._status.phase

    @property
    def brokers(self) -> tuple[BrokerStatus, ...]:
        """The brokers that serve, as decided last."""
        return () if self._status is None else self._status.brokers

    @property
    def vacant(self) -> bool:
        """Whether no broker was there at the last look, and the status says so."""
        return self._vacant

    @property
    def orphaned(self) -> bool:
        """Whether nobody wants it and nobody purged it, and something of it is there."""
        return self._spec is None and self._kept and self._removal is None

    def beat(self) -> Beat:
        """How its brokers are, as it was seen last."""
        runs = self._spec is not None and self._spec.state is SpecState.ACTIVE
        scale = self._spec.scale if self._spec is not None and runs else 0
        return beat_of(
            self._status if runs else None,
            self._observed,
            scale=scale,
            unanswered=dict(self._prober.unanswered),
            now_ms=self._cell.clock.now_ms(),
        )

    @property
    def over(self) -> bool:
        """Whether the cluster is none any more and nothing is left of it."""
        return self._spec is None and self._wake is None and self._vacant and not self._kept

    def update(self, spec: Spec | None, wake: Wake | None) -> None:
        """What the metadata store says now."""
        if spec != self._spec or wake != self._wake:
            self._spec, self._wake = spec, wake
            self.poke()

    def leave(self) -> None:
        """The keeper ends: has its brokers stop."""
        self._leaving = True
        self.poke()

    def poke(self) -> None:
        """Has it look again."""
        self._changed.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        probing = asyncio.create_task(self._prober.run(), name=f"probe {self.cluster_id}")
        try:
            while True:
                self._changed.clear()
                try:
                    await self._step()
                except Exception:
                    # A defect in the handling of one cluster must not leave it without a keeper.
                    LOGGER.exception("%s: a step failed", self.cluster_id)
                    self._poke_later()
                await self._changed.wait()
        finally:
            probing.cancel()
            await self._sampler.close()

    async def _step(self) -> None:
        observed = await self._observe()
        now_ms = self._cell.clock.now_ms()
        self._observed = observed
        if observed.known:
            self._prober.look_at(observed.brokers)
            self._note_crowd(observed)
        if self._spec is None and not observed.brokers:
            await self._ask_whether_purged()
        self.broker_states = tuple(broker.state for broker in observed.brokers)
        self._note_busy(observed, now_ms)
        view = self._view(observed, now_ms)
        decision = decide(view, self._cell.rules)
        self._idle_ms = (self._idle_ms or now_ms) if TakeSample() in decision.actions else None
        self._note_restarts(observed)
        self._note_phase(view, decision.status)
        starts = Apply() in decision.actions
        if starts:
            await self._apply(self._cause(decision.status))
        if decision.status is not None:
            await self._tell(decision.status)
        for action in decision.actions:
            await self._do(action)
        self._vacant = observed.known and not observed.brokers and not starts
        if self.phase is Phase.RUNNING and now_ms >= self._next_sample_ms():
            self._start_sample()

    async def _observe(self) -> ClusterObservation:
        try:
            async with asyncio.timeout(DRIVER_TIMEOUT_S):
                return await self._cell.driver.observe(self.cluster_id)
        except (OSError, TimeoutError) as error:
            LOGGER.warning("%s: cannot be observed: %s", self.cluster_id, error)
            self._poke_later()
            return ClusterObservation(self.cluster_id, known=False)

    def _view(self, observed: ClusterObservation, now_ms: int) -> View:
        return View(
            now_ms=now_ms,
            spec=self._spec,
            status=self._status,
            wake=self._wake,
            observed=observed,
            stored=self._is_stored(),
            applied=self._applied is not None and self._applied == self._plan(),
            refused=self._refused,
            reading=self._prober.reading,
            busy_ms=self._busy_ms,
            idle_ms=self._idle_ms,
            sampled_ms=self._sampler.attempted_ms,
            unanswered=self._prober.unanswered,
            restarts=self._restarts,
            kept=self._kept,
            removable=self._removable(now_ms),
            spared=frozenset(
                slot for slot, before in self._replaced.items() if not before.due(now_ms)
            ),
            doubtful=self._cell.crowd.suspicious,
            leaving=self._leaving,
        )

    def _removable(self, now_ms: int) -> bool:
        if self._removal is None or now_ms < self._remove_at_ms:
            return False
        return not self._cell.watch.held or bool(self._removal.broken(now_ms))

    async def _ask_whether_purged(self) -> None:
        """Nothing goes but on the control plane's word."""
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

    def _plan(self) -> ClusterPlan | None:
        if self._spec is None or self._spec.state is not SpecState.ACTIVE:
            return None
        cell = self._cell
        files = cell.files.of(self.cluster_id)
        return cluster_plan(self._spec, cell.settings, cell.secret, files)

    def _note_busy(self, observed: ClusterObservation, now_ms: int) -> None:
        """Idle is only what is known to be."""
        reading = self._prober.reading
        serves = observed.brokers and all(b.state is BrokerState.RUNNING for b in observed.brokers)
        at_work = self.phase in {Phase.RUNNING, Phase.STOPPING} and self._wake is None
        if not (serves and at_work and reading is not None and reading.connections == 0):
            self._busy_ms = now_ms

    def _note_restarts(self, observed: ClusterObservation) -> None:
        if observed.known:
            self._cell.metrics.count("restarts", max(observed.restarts - self._restarts, 0))
            self._restarts = observed.restarts

    def _note_phase(self, view: View, status: Status | None) -> None:
        if status is None or status.phase is view.phase:
            return
        metrics, wake = self._cell.metrics, view.wake
        if status.phase is Phase.STARTING and wake is not None:
            metrics.count("wakes")
            self._woken_ms = wake.requested_at_ms
            LOGGER.info("%s: woken by %s", self.cluster_id, wake.by)
        elif status.phase is Phase.STARTING and view.phase is not Phase.RUNNING:
            LOGGER.info("%s: starts for %s", self.cluster_id, status.started_for)
        elif status.phase is Phase.RUNNING and self._woken_ms is not None:
            metrics.woke(max(view.now_ms - self._woken_ms, 0) / 1000)
            self._woken_ms = None
        elif status.phase is Phase.ASLEEP:
            metrics.count("sleeps", int(view.phase is Phase.STOPPING and not self._leaving))
            LOGGER.info("%s: asleep", self.cluster_id)
        elif status.phase is Phase.FAILED:
            LOGGER.error("%s: failed: %s", self.cluster_id, status.message)

    async def _do(self, action: Action) -> None:
        match action:
            case Apply():
                pass  # before the status
            case Stop():
                self._applied = None
                await self._ask(self._cell.driver.stop(self.cluster_id, clean=True))
            case Replace(slot):
                await self._replace(slot)
            case Remove():
                await self._remove()
            case Scrape():
                grace_s = self._cell.settings.keeper.stopping_grace_ms / 1000
                asyncio.get_running_loop().call_later(grace_s, self._prober.soon)
            case TakeSample():
                self._start_sample(last=True)
            case ForgetWake(revision):
                await self._forget_wake(revision)

    async def _replace(self, slot: int) -> None:
        lost = any(broker.slot == slot and broker.lost for broker in self._observed.brokers)
        why = "its machine is lost" if lost else "it does not answer"
        LOGGER.warning("%s/%d: %s, it is replaced", self.cluster_id, slot, why)
        now_ms = self._cell.clock.now_ms()
        before = self._replaced.get(slot)
        self._replaced[slot] = Replaced(1, now_ms) if before is None else before.again(now_ms)
        self._cell.metrics.count("replacements")
        self._prober.forget(slot)
        await self._ask(self._cell.driver.replace(self.cluster_id, slot))
        # One that is lost tells of nothing by itself.
        asyncio.get_running_loop().call_later(LOOK_AT_LOST_S, self.poke)

    async def _remove(self) -> None:
        self._applied = None
        now_ms = self._cell.clock.now_ms()
        self._remove_at_ms = now_ms + int(REMOVE_AGAIN_S * 1000)
        asyncio.get_running_loop().call_later(REMOVE_AGAIN_S, self.poke)
        permit = ""
        if self._removal is not None and self._cell.watch.held:
            permit = self._removal.broken(now_ms)
        removing = self._cell.driver.remove(self.cluster_id, break_glass=permit)
        outcome = await self._ask(removing)
        self._kept = outcome.answer is not Answer.ACCEPTED
        self.poke()

    def _cause(self, status: Status | None) -> str:
        """What brokers that start now are told that they start for."""
        if status is None:
            return ""
        before = self._status
        if before is None or before.phase is not Phase.RUNNING:
            return status.started_for
        if before.observed_generation == status.observed_generation:
            return status.started_for
        # Brokers that run keep theirs: what starts now is what the change asks for.
        return f"generation {status.observed_generation}"

    async def _apply(self, cause: str) -> None:
        plan = self._plan()
        if plan is None:
            return
        self._kept = True
        outcome = await self._ask(self._start(plan.caused_by(cause)))
        self._refused = outcome.message if outcome.answer is Answer.REFUSED else ""
        self._applied = plan if outcome.answer is Answer.ACCEPTED else None

    async def _start(self, plan: ClusterPlan) -> Outcome:
        if isinstance(self._cell.settings.driver, KubernetesSettings):
            # A pod mounts its cluster's folder, which nobody else makes.
            await asyncio.to_thread(make_folder, self._cell.settings.cell.dfs, self.cluster_id)
        return await self._cell.driver.apply(plan)

    async def _ask(self, request: Coroutine[Any, Any, Outcome]) -> Outcome:
        """A request to the driver; one whose outcome is not known is repeated."""
        try:
            async with asyncio.timeout(DRIVER_TIMEOUT_S):
                outcome = await request
        except (OSError, TimeoutError) as error:
            outcome = Outcome(Answer.UNKNOWN, str(error) or "no answer in time")
        if outcome.answer is Answer.UNKNOWN:
            self._cell.metrics.count("driver_unknown")
            LOGGER.warning("%s: outcome unknown: %s", self.cluster_id, outcome.message)
            self._poke_later()
        elif outcome.answer is Answer.REFUSED:
            LOGGER.warning("%s: refused: %s", self.cluster_id, outcome.message)
            self.poke()
        return outcome

    async def _tell(self, status: Status) -> None:
        """Writes the status where it changed; one that cannot be written is written later."""
        self._status = status
        if status == self._stored:
            return
        now_ms = self._cell.clock.now_ms()
        interval_ms = self._cell.settings.keeper.connections_interval_ms
        # How many are connected changes all the time, and nobody acts on it.
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
            # What was decided may rest on the write.
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
        interval_ms = self._cell.settings.keeper.sample_interval_ms
        return max(self._sampler.attempted_ms + interval_ms, self._sampler.next_ms)

    def _start_sample(self, *, last: bool = False) -> None:
        bootstrap = ",".join(broker.kafka for broker in self.brokers)
        if bootstrap:
            self._sampler.start(bootstrap, last=last)

    def _take_sample(self, bootstrap: str) -> Sequence[Mapping[str, object]]:
        password = super_password(self._cell.secret, self.cluster_id)
        return self._cell.sample_groups(bootstrap, SUPER_USER, password)

    async def _count_topics(self) -> Mapping[str, Sequence[int]]:
        return topics_in(await self._prober.pages_now())

    def _poke_later(self) -> None:
        asyncio.get_running_loop().call_later(RETRY_S, self.poke)
