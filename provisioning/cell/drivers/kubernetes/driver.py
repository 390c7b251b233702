"""Brokers as pods of a Kubernetes cluster."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from provisioning.cell.drivers.base import (
    ACCEPTED,
    Answer,
    BrokerState,
    ClusterObservation,
    ClusterPlan,
    Outcome,
)
from provisioning.cell.drivers.kubernetes import guard, manifests
from provisioning.cell.drivers.kubernetes.api import Api, ApiError, Lost
from provisioning.cell.drivers.kubernetes.cache import Cache
from provisioning.cell.drivers.kubernetes.manifests import Manifest, namespace_of
from provisioning.cell.drivers.kubernetes.objects import Found, Key, Objects
from provisioning.cell.drivers.kubernetes.observe import (
    instance_of,
    is_ending,
    is_node_ready,
    observe,
    slot_of,
)
from provisioning.cell.drivers.kubernetes.options import KubernetesOptions
from provisioning.cell.drivers.kubernetes.pulse import Pulse
from provisioning.cell.drivers.kubernetes.rollout import permitted, unfinished

LOGGER = logging.getLogger(__name__)
T = TypeVar("T")

# Calls at a time.
THREADS = 16
# Until the image of what is there stands.
LISTED_S = 60.0
# Between two sweeps while brokers wait for a new pod.
ROLLOUT_INTERVAL_S = 5.0
LIST_AGAIN_S = 0.5
# How old an image of what is there may be for anything to follow from it.
STALE_S = 30.0
# What a refused call may be repeated for: it will be another time.
PASSING = {http.client.TOO_MANY_REQUESTS, http.client.CONFLICT, http.client.NOT_FOUND}


@dataclass(frozen=True)
class Wanted:
    """What was asked for last; of a cluster that sleeps, the brokers that it will have again."""

    plan: ClusterPlan | None
    runs: bool


class KubernetesDriver:
    """A namespace for each cluster, in it a Deployment of one pod for each broker."""

    def __init__(self, api: Api, options: KubernetesOptions, *, stale_s: float = STALE_S) -> None:
        """`stale_s`: for how long what was seen last counts where watches stay broken."""
        self._api = api
        self._options = options
        self._selector = manifests.selector(options)
        self._notify: Callable[[str], None] = lambda _cluster_id: None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="kubernetes")
        self._locks: dict[str, asyncio.Lock] = {}
        self._wanted: dict[str, Wanted] = {}
        # Clusters whose objects were all seen to be as the plan of the same cluster wants them.
        self._complete: dict[str, ClusterPlan] = {}
        # What was there when the driver began, until it is looked at.
        self._inherited: dict[str, dict[Key, Manifest]] = {}
        self._instances: dict[str, set[str]] = {}
        self._asked: set[str] = set()
        self._restarts: dict[str, int] = {}
        self._sweeping: asyncio.Task[None] | None = None
        # Running brokers that a sweep may give a new pod, and those that wait for theirs.
        self._rollouts_left = 0
        self._rollouts_waiting = 0
        self._namespaces, self._deployments, self._pods = (
            Cache(api, kind, self._selector, self._on_change, stale_s)
            for kind in ("Namespace", "Deployment", "Pod")
        )
        self._objects = Objects(api, self._remember, self._pods.of)
        # Of no cluster: nobody is told of a change, and nothing waits for the list.
        self._nodes = Cache(api, "Node", "", self._on_change, stale_s)
        # Of its own: what waits for others' calls tells nothing of the API server.
        self._pulse_thread = ThreadPoolExecutor(1, thread_name_prefix="pulse of Kubernetes")
        self._pulse = Pulse(self._beat, self._tell_of_trouble)
        self._was_unwell = False
        # Who looked while it was: of a new cluster there is nothing else by which to find it.
        self._left_in_doubt: set[str] = set()

    def notify(self, call: Callable[[str], None]) -> None:
        """See `Driver.notify`."""
        self._notify = call

    async def start(self) -> None:
        """Reads what is there. Raises `Lost` where the API server cannot be reached."""
        self._loop = asyncio.get_running_loop()
        caches = (self._namespaces, self._deployments, self._pods)
        for cache in (*caches, self._nodes):
            cache.start()
        for cache in caches:
            if not await self._call(cache.wait_listed, LISTED_S):
                message = f"{cache.kind}s could not be listed within {LISTED_S:.0f} s"
                raise Lost(message)
        self._inherited = await self._look_around()
        self._pulse.start()
        self._sweeping = asyncio.create_task(self._sweep_again(), name="sweep of Kubernetes")

    async def _look_around(self) -> dict[str, dict[Key, Manifest]]:
        """All that is there; an API server that is busy is asked again, for a while."""
        async with asyncio.timeout(LISTED_S):
            while True:
                try:
                    return await self._call(self._objects.list_all, self._selector)
                except (ApiError, Lost) as error:
                    LOGGER.warning("what is there could not be listed: %s", error)
                    await asyncio.sleep(LIST_AGAIN_S)

    async def close(self) -> None:
        """Ends; pods go on."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweeping
        await self._pulse.close()
        for cache in (self._namespaces, self._deployments, self._pods, self._nodes):
            await self._call(cache.close)
        self._threads.shutdown()
        self._pulse_thread.shutdown()
        self._api.close()

    async def clusters(self) -> frozenset[str]:
        """Clusters that have a namespace which nobody deletes."""
        return frozenset(
            found["metadata"]["labels"][manifests.CLUSTER]
            for found in self._namespaces.all()
            if not is_ending(found)
        )

    async def apply(self, plan: ClusterPlan) -> Outcome:
        """See `Driver.apply`."""
        self._note(plan.cluster_id, Wanted(plan, runs=True))
        return await self._request(plan.cluster_id, lambda: self._apply(plan))

    async def observe(self, cluster_id: str) -> ClusterObservation:
        """See `Driver.observe`."""
        # Whoever sees trouble first has all be told: else nobody would be told that it is over.
        self._tell_of_trouble()
        if self._was_unwell:
            self._left_in_doubt.add(cluster_id)
        name = namespace_of(cluster_id)
        return ClusterObservation(
            cluster_id,
            observe(self._deployments.of(name), self._pods.of(name), self._options, self._is_lost),
            self._restarts.get(cluster_id, 0),
            not self._was_unwell,
        )

    def unwell(self) -> str | None:
        """See `Driver.unwell`."""
        if self._pulse.trouble is not None:
            return self._pulse.trouble
        stale = [
            f"{cache.kind}s"
            for cache in (self._namespaces, self._deployments, self._pods)
            if not cache.current
        ]
        return f"nothing is heard of {', '.join(stale)}" if stale else None

    async def hold_deletions(self, *, held: bool, reason: str) -> Outcome:
        """See `Driver.hold_deletions`. The admission policies look at what is written here."""
        manifest = guard.health(self._options, held=held, reason=reason)
        try:
            await self._call(self._api.apply, manifest)
        except Lost as error:
            return Outcome(Answer.UNKNOWN, str(error))
        except ApiError as error:
            return Outcome(Answer.REFUSED, str(error))
        return ACCEPTED

    def _is_lost(self, node: str) -> bool:
        """Whether a node does not answer.

        One that is not known may be new; pods of one that is gone Kubernetes deletes itself.
        """
        return self._nodes.current and any(
            not is_node_ready(found) for found in self._nodes.of(node)
        )

    async def stop(self, cluster_id: str, *, clean: bool) -> Outcome:
        """See `Driver.stop`."""
        wanted = self._wanted.get(cluster_id)
        self._note(cluster_id, Wanted(wanted.plan if wanted else None, runs=False))
        return await self._request(cluster_id, lambda: self._stop(cluster_id, clean=clean))

    async def replace(self, cluster_id: str, slot: int) -> Outcome:
        """See `Driver.replace`."""
        wanted = self._wanted.get(cluster_id)
        if wanted is None or wanted.plan is None or not wanted.runs or slot not in _slots(wanted):
            return Outcome(Answer.REFUSED, f"no broker of {cluster_id} in slot {slot}")
        return await self._request(cluster_id, lambda: self._end_pods(cluster_id, slot))

    async def remove(self, cluster_id: str, *, break_glass: str = "") -> Outcome:
        """See `Driver.remove`. The namespace ends in the background."""
        self._wanted.pop(cluster_id, None)
        return await self._request(cluster_id, lambda: self._remove(cluster_id, break_glass))

    async def sweep(self) -> int:
        """Repairs what is not as it shall be, of all clusters; gives the number of writes."""
        everything = await self._call(self._objects.list_all, self._selector)
        every = dict(self._wanted)
        shall = await self._call(self._shall_be, every, everything)
        begun = await self._call(self._unfinished, shall, everything)
        self._rollouts_left = self._options.rollouts_max - begun
        self._rollouts_waiting = 0
        writes = 0
        for cluster_id, wanted in every.items():
            found = everything.get(namespace_of(cluster_id), {})
            async with self._lock(cluster_id):
                # What was asked for since has been done since.
                if self._wanted.get(cluster_id) is not wanted:
                    continue
                try:
                    writes += await self._call(self._repair, wanted, shall[cluster_id], found)
                except (ApiError, Lost) as error:
                    # One that cannot be repaired keeps nobody else from it.
                    LOGGER.warning("%s was not repaired: %s", cluster_id, error)
        return writes

    def _note(self, cluster_id: str, wanted: Wanted) -> None:
        # What has no name is refused.
        with contextlib.suppress(ValueError):
            namespace_of(cluster_id)
            self._wanted[cluster_id] = wanted

    async def _sweep_again(self) -> None:
        while True:
            pause_s = self._options.sweep_interval_s
            if self._rollouts_waiting:
                pause_s = min(pause_s, ROLLOUT_INTERVAL_S)
            await asyncio.sleep(pause_s)
            try:
                writes = await self.sweep()
            except (ApiError, Lost) as error:
                LOGGER.warning("a sweep was given up: %s", error)
                continue
            if writes:
                LOGGER.warning("a sweep repaired %d objects", writes)

    def _apply(self, plan: ClusterPlan) -> None:
        cluster_id, options = plan.cluster_id, self._options
        name = namespace_of(cluster_id)
        wanted = {broker.slot for broker in plan.brokers}
        known = self._complete.get(cluster_id) == plan
        found: Found = {
            ("Deployment", name, deployment["metadata"]["name"]): deployment
            for deployment in self._deployments.of(name)
        }
        if known:
            # Only that can have changed by what was asked for meanwhile.
            shall = [manifests.deployment(cluster_id, slot, 1, options) for slot in sorted(wanted)]
        else:
            self._complete.pop(cluster_id, None)
            found = {**self._inherited.pop(name, {}), **found}
            shall = manifests.manifests(plan, options)
        try:
            # A broker that runs is left alone: a sweep gives it a new pod in its turn.
            self._objects.settle(permitted(shall, found, 0).now, found)
        except ApiError:
            # Somebody took away what it needs, perhaps.
            self._complete.pop(cluster_id, None)
            raise
        for deployment in self._deployments.of(name):
            if slot_of(deployment) not in wanted:
                self._scale(deployment, 0)
        for broker in observe(self._deployments.of(name), self._pods.of(name), options):
            if broker.state is BrokerState.FAILED and broker.slot in wanted:
                # It would be tried again by itself, minutes later.
                self._end_pods(cluster_id, broker.slot)
        self._complete[cluster_id] = plan

    def _stop(self, cluster_id: str, *, clean: bool) -> None:
        # First: they may end although the answer is lost.
        self._ask_of(cluster_id)
        for found in self._deployments.of(namespace_of(cluster_id)):
            self._scale(found, 0)
        if not clean:
            self._end_pods(cluster_id)

    def _remove(self, cluster_id: str, break_glass: str) -> None:
        self._complete.pop(cluster_id, None)
        name = namespace_of(cluster_id)
        self._ask_of(cluster_id)
        found = self._look_at_namespace(name)
        if found is not None and not is_ending(found):
            # Nobody else may delete it: see the admission policies.
            freed = {"metadata": {"labels": {manifests.LIVE_DATA: "false"}}}
            self._namespaces.put(self._api.merge("Namespace", name, "", freed))
            if break_glass:
                guard.break_glass(self._api, self._options, name, break_glass)
            self._end_pods(cluster_id)
            self._api.delete("Namespace", name)
            self._look_at_namespace(name)
        self._api.delete("PersistentVolume", name)

    def _look_at_namespace(self, name: str) -> Manifest | None:
        """As it is; `clusters` knows it at once."""
        found = self._api.get("Namespace", name)
        if found is None:
            self._namespaces.drop(name, name)
        elif manifests.CLUSTER in found["metadata"].get("labels", {}):
            self._namespaces.put(found)
        return found

    def _end_pods(self, cluster_id: str, slot: int | None = None) -> None:
        for pod in self._pods.of(namespace_of(cluster_id)):
            if slot is None or slot_of(pod) == slot:
                self._asked.add(instance_of(pod))
                named = pod["metadata"]
                self._api.delete("Pod", named["name"], named["namespace"], grace_s=0)

    def _ask_of(self, cluster_id: str) -> None:
        for pod in self._pods.of(namespace_of(cluster_id)):
            self._asked.add(instance_of(pod))

    def _scale(self, found: Manifest, replicas: int) -> int:
        """Gives the number of writes."""
        if found["spec"]["replicas"] == replicas:
            return 0
        named = found["metadata"]
        change = {"spec": {"replicas": replicas}}
        try:
            put = self._api.merge("Deployment", named["name"], named["namespace"], change)
        except ApiError as error:
            if error.status == http.client.NOT_FOUND and not replicas:
                return 0
            raise
        self._deployments.put(put)
        return 1

    def _remember(self, put: Manifest) -> None:
        for cache in (self._namespaces, self._deployments):
            if put["kind"] == cache.kind:
                cache.put(put)

    def _shall_be(
        self, every: Mapping[str, Wanted], everything: Mapping[str, Found]
    ) -> dict[str, list[Manifest]]:
        """The objects of each cluster; none of one that is not there and shall not run."""
        shall = {}
        for cluster_id, wanted in every.items():
            name = namespace_of(cluster_id)
            found = everything.get(name, {})
            if wanted.runs and wanted.plan is not None:
                shall[cluster_id] = manifests.manifests(wanted.plan, self._options)
            elif ("Namespace", "", name) not in found:
                shall[cluster_id] = []
            else:
                there = max(len(_deployments(found)), 1)
                brokers = len(wanted.plan.brokers) if wanted.plan else there
                shall[cluster_id] = manifests.surroundings(cluster_id, brokers, self._options)
        return shall

    def _unfinished(
        self, shall: Mapping[str, list[Manifest]], everything: Mapping[str, Found]
    ) -> int:
        """Brokers that have their new pod and do not serve yet."""
        return sum(
            unfinished(objects, everything.get(namespace_of(cluster_id), {}))
            for cluster_id, objects in shall.items()
        )

    def _repair(self, wanted: Wanted, shall: list[Manifest], found: Found) -> int:
        if not shall:
            return 0
        rollout = permitted(shall, found, self._rollouts_left)
        self._rollouts_left -= rollout.rolling
        self._rollouts_waiting += rollout.waiting
        writes = self._objects.settle(rollout.now, found, logging.WARNING)
        slots = _slots(wanted) if wanted.runs else set()
        for deployment in _deployments(found):
            if slot_of(deployment) not in slots:
                writes += self._scale(deployment, 0)
        return writes

    async def _request(self, cluster_id: str, call: Callable[[], None]) -> Outcome:
        try:
            namespace_of(cluster_id)
        except ValueError as error:
            return Outcome(Answer.REFUSED, str(error))
        lock = self._lock(cluster_id)
        await lock.acquire()
        doing = asyncio.get_running_loop().run_in_executor(self._threads, call)
        # Who asked may wait no longer: what was begun is done all the same, before what comes next.
        doing.add_done_callback(lambda done: _release(lock, done))
        try:
            await asyncio.shield(doing)
        except Lost as error:
            return Outcome(Answer.UNKNOWN, str(error))
        except ApiError as error:
            # What is being deleted refuses what is new in it, for a while.
            passing = error.status in PASSING or "being terminated" in str(error)
            return Outcome(Answer.UNKNOWN if passing else Answer.REFUSED, str(error))
        return ACCEPTED

    def _lock(self, cluster_id: str) -> asyncio.Lock:
        return self._locks.setdefault(cluster_id, asyncio.Lock())

    async def _beat(self) -> None:
        loop, name = asyncio.get_running_loop(), self._options.system_namespace
        await loop.run_in_executor(self._pulse_thread, self._api.get, "Namespace", name)

    async def _call(self, call: Callable[..., T], *arguments: object) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, call, *arguments)

    def _tell_of_trouble(self) -> None:
        """Whether anything is known changes for all clusters at once."""
        unwell = self.unwell() is not None
        if unwell is not self._was_unwell:
            self._was_unwell = unwell
            known = {
                namespace["metadata"]["labels"][manifests.CLUSTER]
                for namespace in self._namespaces.all()
            }
            for cluster_id in sorted(known | self._wanted.keys() | self._left_in_doubt):
                self._notify(cluster_id)
            self._left_in_doubt.clear()

    def _on_change(self, cluster_id: str) -> None:
        """Called by the threads of the caches."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._changed, cluster_id)

    def _changed(self, cluster_id: str) -> None:
        live = {
            instance_of(pod)
            for pod in self._pods.of(namespace_of(cluster_id))
            if not is_ending(pod)
        }
        wanted = self._wanted.get(cluster_id)
        if wanted is not None and not wanted.runs:
            # Of a cluster that was asked to stop none ends by itself, be it seen ever so late.
            self._asked |= live
        gone = self._instances.get(cluster_id, set()) - live
        self._instances[cluster_id] = live
        unasked = gone - self._asked
        self._asked -= gone
        if unasked:
            self._restarts[cluster_id] = self._restarts.get(cluster_id, 0) + len(unasked)
        self._notify(cluster_id)


def _deployments(found: Found) -> list[Manifest]:
    return [each for (kind, _, _), each in found.items() if kind == "Deployment"]


def _slots(wanted: Wanted) -> set[int]:
    return set() if wanted.plan is None else {broker.slot for broker in wanted.plan.brokers}


def _release(lock: asyncio.Lock, done: asyncio.Future[None]) -> None:
    lock.release()
    if not done.cancelled():
        # Also where nobody waits for it any more.
        done.exception()
