"""`KubernetesDriver`: runs brokers as pods of a Kubernetes cluster."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
from collections.abc import Callable, Collection, Mapping
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
from provisioning.cell.drivers.kubernetes.objects import Key, Objects, ObjectsByKey
from provisioning.cell.drivers.kubernetes.observe import (
    instance_of,
    is_ending,
    is_node_ready,
    observe_brokers,
    slot_of,
)
from provisioning.cell.drivers.kubernetes.options import KubernetesOptions
from provisioning.cell.drivers.kubernetes.pulse import Pulse
from provisioning.cell.drivers.kubernetes.rollout import count_unfinished, permit_writes

LOGGER = logging.getLogger(__name__)
T = TypeVar("T")

# The most calls to the API server at a time.
THREADS = 16
# How long `start` waits for the first list of the existing objects.
LISTED_S = 60.0
# Interval of sweeps while brokers wait for a new pod.
ROLLOUT_INTERVAL_S = 5.0
# Pause before a list that failed is repeated.
LIST_AGAIN_S = 0.5
# Observations from caches that are older than this are marked as not known.
STALE_S = 30.0
# Refusals with these statuses pass by themselves, so the request may be repeated.
PASSING = {http.client.TOO_MANY_REQUESTS, http.client.CONFLICT, http.client.NOT_FOUND}


@dataclass(frozen=True)
class DesiredBrokers:
    """The last request for a cluster.

    `plan` are its brokers, also while it sleeps (`runs` is False); None where no plan was applied.
    """

    plan: ClusterPlan | None
    runs: bool


class KubernetesDriver:
    """Gives each cluster a namespace, with a Deployment of one pod for each of its brokers."""

    def __init__(self, api: Api, options: KubernetesOptions, *, stale_s: float = STALE_S) -> None:
        """`stale_s`: for how long the caches count as current while their watches are broken."""
        self._api = api
        self._options = options
        self._selector = manifests.selector(options)
        self._notify: Callable[[str], None] = lambda _cluster_id: None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="kubernetes")
        self._locks: dict[str, asyncio.Lock] = {}
        self._desired: dict[str, DesiredBrokers] = {}
        # The plan of each cluster whose objects were all seen to match it.
        self._complete: dict[str, ClusterPlan] = {}
        # The objects that existed when the driver started, until their cluster is first applied.
        self._inherited: dict[str, dict[Key, Manifest]] = {}
        self._instances: dict[str, set[str]] = {}
        self._asked_to_end: set[str] = set()
        self._restarts: dict[str, int] = {}
        self._sweeping: asyncio.Task[None] | None = None
        # How many running brokers the sweep may still give a new pod, and how many wait for theirs.
        self._rollouts_left = 0
        self._rollouts_waiting = 0
        self._namespaces, self._deployments, self._pods = (
            Cache(api, kind, self._selector, self._on_change, stale_s)
            for kind in ("Namespace", "Deployment", "Pod")
        )
        self._objects = Objects(api, self._remember_object, self._pods.of)
        # Nodes belong to no cluster, so no callback follows a change, and `start` does not wait.
        self._nodes = Cache(api, "Node", "", self._on_change, stale_s)
        # The pulse has a thread of its own: a call that waits for a free thread of the pool would
        # say nothing about the API server.
        self._pulse_thread = ThreadPoolExecutor(1, thread_name_prefix="pulse of Kubernetes")
        self._pulse = Pulse(self._ask_api_server, self._notify_if_failure_changed)
        self._was_unwell = False
        # Clusters that were observed while the API server was away. They are notified when it is
        # back, because a new cluster may have neither a namespace nor a plan to be found by.
        self._left_in_doubt: set[str] = set()

    def notify(self, call: Callable[[str], None]) -> None:
        """See `Driver.notify`."""
        self._notify = call

    async def start(self) -> None:
        """Reads the existing objects. Raises `Lost` where the API server cannot be reached."""
        self._loop = asyncio.get_running_loop()
        caches = (self._namespaces, self._deployments, self._pods)
        for cache in (*caches, self._nodes):
            cache.start()
        for cache in caches:
            if not await self._call_in_thread(cache.wait_listed, LISTED_S):
                message = f"{cache.kind}s could not be listed within {LISTED_S:.0f} s"
                raise Lost(message)
        self._inherited = await self._list_existing()
        self._pulse.start()
        self._sweeping = asyncio.create_task(self._sweep_again(), name="sweep of Kubernetes")

    async def _list_existing(self) -> dict[str, dict[Key, Manifest]]:
        """Lists all existing objects.

        Repeats the list for `LISTED_S` where the API server is busy.
        """
        async with asyncio.timeout(LISTED_S):
            while True:
                try:
                    return await self._call_in_thread(self._objects.list_all, self._selector)
                except (ApiError, Lost) as error:
                    LOGGER.warning(
                        "existing objects could not be listed, which is repeated: %s", error
                    )
                    await asyncio.sleep(LIST_AGAIN_S)

    async def close(self) -> None:
        """Stops the driver. Pods go on."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweeping
        await self._pulse.close()
        for cache in (self._namespaces, self._deployments, self._pods, self._nodes):
            await self._call_in_thread(cache.close)
        self._threads.shutdown()
        self._pulse_thread.shutdown()
        self._api.close()

    async def clusters(self) -> frozenset[str]:
        """The clusters that have a namespace which is not being deleted."""
        return frozenset(
            namespace["metadata"]["labels"][manifests.CLUSTER]
            for namespace in self._namespaces.all()
            if not is_ending(namespace)
        )

    async def apply(self, plan: ClusterPlan) -> Outcome:
        """See `Driver.apply`."""
        self._note_desired(plan.cluster_id, DesiredBrokers(plan, runs=True))
        return await self._run_request(plan.cluster_id, lambda: self._apply_plan(plan))

    async def observe(self, cluster_id: str) -> ClusterObservation:
        """See `Driver.observe`."""
        # The first observation that finds the API server away notifies all clusters. Otherwise the
        # pulse, which compares with the same flag, would not notify them when it is back.
        self._notify_if_failure_changed()
        if self._was_unwell:
            self._left_in_doubt.add(cluster_id)
        name = namespace_of(cluster_id)
        return ClusterObservation(
            cluster_id,
            observe_brokers(
                self._deployments.of(name), self._pods.of(name), self._options, self._is_lost
            ),
            self._restarts.get(cluster_id, 0),
            not self._was_unwell,
        )

    def unwell(self) -> str | None:
        """See `Driver.unwell`."""
        if self._pulse.failure is not None:
            return self._pulse.failure
        stale = [
            f"{cache.kind}s"
            for cache in (self._namespaces, self._deployments, self._pods)
            if not cache.current
        ]
        return f"no watch and no list of {', '.join(stale)} works" if stale else None

    async def hold_deletions(self, *, held: bool, reason: str) -> Outcome:
        """See `Driver.hold_deletions`. The admission policies read the object that this writes."""
        manifest = guard.health_config_map(self._options, held=held, reason=reason)
        try:
            await self._call_in_thread(self._api.apply, manifest)
        except Lost as error:
            return Outcome(Answer.UNKNOWN, str(error))
        except ApiError as error:
            return Outcome(Answer.REFUSED, str(error))
        return ACCEPTED

    def _is_lost(self, node: str) -> bool:
        """Whether a node does not answer.

        A node that the cache does not have counts as not lost: it may be new, and Kubernetes itself
        deletes the pods of a node that is gone.
        """
        return self._nodes.current and any(
            not is_node_ready(node_object) for node_object in self._nodes.of(node)
        )

    async def stop(self, cluster_id: str, *, clean: bool) -> Outcome:
        """See `Driver.stop`."""
        desired = self._desired.get(cluster_id)
        self._note_desired(
            cluster_id, DesiredBrokers(desired.plan if desired else None, runs=False)
        )
        return await self._run_request(
            cluster_id, lambda: self._stop_brokers(cluster_id, clean=clean)
        )

    async def replace(self, cluster_id: str, slot: int) -> Outcome:
        """See `Driver.replace`."""
        desired = self._desired.get(cluster_id)
        if (
            desired is None
            or desired.plan is None
            or not desired.runs
            or slot not in _slots_of(desired)
        ):
            return Outcome(Answer.REFUSED, f"no broker of {cluster_id} in slot {slot}")
        return await self._run_request(cluster_id, lambda: self._end_pods(cluster_id, slot))

    async def remove(self, cluster_id: str, *, break_glass: str = "") -> Outcome:
        """See `Driver.remove`. Kubernetes deletes the namespace in the background."""
        self._desired.pop(cluster_id, None)
        return await self._run_request(
            cluster_id, lambda: self._remove_cluster(cluster_id, break_glass)
        )

    async def sweep(self) -> int:
        """Writes the objects of all clusters that differ from their plan.

        Returns the number of writes.
        """
        everything = await self._call_in_thread(self._objects.list_all, self._selector)
        every = dict(self._desired)
        shall = await self._call_in_thread(self._desired_objects, every, everything)
        begun = await self._call_in_thread(self._count_unfinished, shall, everything)
        self._rollouts_left = self._options.rollouts_max - begun
        self._rollouts_waiting = 0
        writes = 0
        for cluster_id, desired in every.items():
            existing = everything.get(namespace_of(cluster_id), {})
            async with self._lock_of(cluster_id):
                # A request that came since the list has written these objects itself.
                if self._desired.get(cluster_id) is not desired:
                    continue
                try:
                    writes += await self._call_in_thread(
                        self._repair_cluster, desired, shall[cluster_id], existing
                    )
                except (ApiError, Lost) as error:
                    # A cluster that cannot be repaired must not keep the sweep from the others.
                    LOGGER.warning("%s was not repaired: %s", cluster_id, error)
        return writes

    def _note_desired(self, cluster_id: str, desired: DesiredBrokers) -> None:
        # A request for an id that makes no namespace is refused, so it is not kept either.
        with contextlib.suppress(ValueError):
            namespace_of(cluster_id)
            self._desired[cluster_id] = desired

    async def _sweep_again(self) -> None:
        while True:
            pause_s = self._options.sweep_interval_s
            if self._rollouts_waiting:
                pause_s = min(pause_s, ROLLOUT_INTERVAL_S)
            await asyncio.sleep(pause_s)
            try:
                writes = await self.sweep()
            except (ApiError, Lost) as error:
                LOGGER.warning("a sweep failed, and is repeated at the next interval: %s", error)
                continue
            if writes:
                LOGGER.warning("a sweep wrote %d objects that differed from their plan", writes)

    def _apply_plan(self, plan: ClusterPlan) -> None:
        cluster_id, options = plan.cluster_id, self._options
        name = namespace_of(cluster_id)
        slots = {broker.slot for broker in plan.brokers}
        known = self._complete.get(cluster_id) == plan
        existing: ObjectsByKey = {
            ("Deployment", name, deployment["metadata"]["name"]): deployment
            for deployment in self._deployments.of(name)
        }
        if known:
            # All other objects are as this plan needs them; only replicas can differ by a stop.
            shall = [manifests.deployment(cluster_id, slot, 1, options) for slot in sorted(slots)]
        else:
            self._complete.pop(cluster_id, None)
            existing = {**self._inherited.pop(name, {}), **existing}
            shall = manifests.manifests(plan, options)
        try:
            # With a budget of 0 a broker that runs is left alone: a sweep gives it its new pod.
            self._objects.write_differences(permit_writes(shall, existing, 0).now, existing)
        except ApiError:
            # Perhaps somebody deleted an object that it needs, so all are written next time.
            self._complete.pop(cluster_id, None)
            raise
        self._note_asked(cluster_id, kept=slots)
        for deployment in self._deployments.of(name):
            if slot_of(deployment) not in slots:
                self._scale_deployment(deployment, 0)
        for broker in observe_brokers(self._deployments.of(name), self._pods.of(name), options):
            if broker.state is BrokerState.FAILED and broker.slot in slots:
                # Kubernetes would restart it only minutes later, by its own growing pause.
                self._end_pods(cluster_id, broker.slot)
        self._complete[cluster_id] = plan

    def _stop_brokers(self, cluster_id: str, *, clean: bool) -> None:
        # Noted first, because the pods may end although the answer is lost; their end must not
        # count as a restart.
        self._note_asked(cluster_id)
        for deployment in self._deployments.of(namespace_of(cluster_id)):
            self._scale_deployment(deployment, 0)
        if not clean:
            self._end_pods(cluster_id)

    def _remove_cluster(self, cluster_id: str, break_glass: str) -> None:
        self._complete.pop(cluster_id, None)
        name = namespace_of(cluster_id)
        self._note_asked(cluster_id)
        namespace = self._look_at_namespace(name)
        if namespace is not None and not is_ending(namespace):
            # The admission policies refuse to delete a namespace with live data, so that label goes
            # first, by the keeper alone.
            freed = {"metadata": {"labels": {manifests.LIVE_DATA: "false"}}}
            self._namespaces.put(self._api.merge("Namespace", name, "", freed))
            if break_glass:
                guard.break_glass(self._api, self._options, name, break_glass)
            self._end_pods(cluster_id)
            self._api.delete("Namespace", name)
            self._look_at_namespace(name)
        self._api.delete("PersistentVolume", name)

    def _look_at_namespace(self, name: str) -> Manifest | None:
        """Reads a namespace and updates the cache, so that `clusters` is right at once."""
        namespace = self._api.get("Namespace", name)
        if namespace is None:
            self._namespaces.drop(name, name)
        elif manifests.CLUSTER in namespace["metadata"].get("labels", {}):
            self._namespaces.put(namespace)
        return namespace

    def _end_pods(self, cluster_id: str, slot: int | None = None) -> None:
        for pod in self._pods.of(namespace_of(cluster_id)):
            if slot is None or slot_of(pod) == slot:
                self._asked_to_end.add(instance_of(pod))
                metadata = pod["metadata"]
                self._api.delete("Pod", metadata["name"], metadata["namespace"], grace_s=0)

    def _note_asked(self, cluster_id: str, kept: Collection[int] = ()) -> None:
        """Notes that all pods are asked to end, but for those of the slots that are kept."""
        for pod in self._pods.of(namespace_of(cluster_id)):
            if slot_of(pod) not in kept:
                self._asked_to_end.add(instance_of(pod))

    def _scale_deployment(self, deployment: Manifest, replicas: int) -> int:
        """Sets the replicas of a Deployment. Returns the number of writes, 0 or 1."""
        if deployment["spec"]["replicas"] == replicas:
            return 0
        metadata = deployment["metadata"]
        change = {"spec": {"replicas": replicas}}
        try:
            put = self._api.merge("Deployment", metadata["name"], metadata["namespace"], change)
        except ApiError as error:
            if error.status == http.client.NOT_FOUND and not replicas:
                return 0
            raise
        self._deployments.put(put)
        return 1

    def _remember_object(self, put: Manifest) -> None:
        for cache in (self._namespaces, self._deployments):
            if put["kind"] == cache.kind:
                cache.put(put)

    def _desired_objects(
        self, every: Mapping[str, DesiredBrokers], everything: Mapping[str, ObjectsByKey]
    ) -> dict[str, list[Manifest]]:
        """The desired objects of each cluster; none where it has no namespace and shall not run."""
        shall = {}
        for cluster_id, desired in every.items():
            name = namespace_of(cluster_id)
            existing = everything.get(name, {})
            if desired.runs and desired.plan is not None:
                shall[cluster_id] = manifests.manifests(desired.plan, self._options)
            elif ("Namespace", "", name) not in existing:
                shall[cluster_id] = []
            else:
                there = max(len(_deployments_in(existing)), 1)
                brokers = len(desired.plan.brokers) if desired.plan else there
                shall[cluster_id] = manifests.surroundings(cluster_id, brokers, self._options)
        return shall

    def _count_unfinished(
        self, shall: Mapping[str, list[Manifest]], everything: Mapping[str, ObjectsByKey]
    ) -> int:
        """How many brokers of all clusters have their new pod and do not serve yet."""
        return sum(
            count_unfinished(objects, everything.get(namespace_of(cluster_id), {}))
            for cluster_id, objects in shall.items()
        )

    def _repair_cluster(
        self, desired: DesiredBrokers, shall: list[Manifest], existing: ObjectsByKey
    ) -> int:
        if not shall:
            return 0
        rollout = permit_writes(shall, existing, self._rollouts_left)
        self._rollouts_left -= rollout.rolling
        self._rollouts_waiting += rollout.waiting
        writes = self._objects.write_differences(rollout.now, existing, logging.WARNING)
        slots = _slots_of(desired) if desired.runs else set()
        for deployment in _deployments_in(existing):
            if slot_of(deployment) not in slots:
                writes += self._scale_deployment(deployment, 0)
        return writes

    async def _run_request(self, cluster_id: str, call: Callable[[], None]) -> Outcome:
        try:
            namespace_of(cluster_id)
        except ValueError as error:
            return Outcome(Answer.REFUSED, str(error))
        lock = self._lock_of(cluster_id)
        await lock.acquire()
        doing = asyncio.get_running_loop().run_in_executor(self._threads, call)
        # A caller may be cancelled while it waits. The call goes on in its thread all the same, so
        # the lock is only released once it is done: requests of one cluster stay in order.
        doing.add_done_callback(lambda done: _release_lock(lock, done))
        try:
            await asyncio.shield(doing)
        except Lost as error:
            return Outcome(Answer.UNKNOWN, str(error))
        except ApiError as error:
            # A namespace that is being deleted refuses new objects for a while.
            passing = error.status in PASSING or "being terminated" in str(error)
            return Outcome(Answer.UNKNOWN if passing else Answer.REFUSED, str(error))
        return ACCEPTED

    def _lock_of(self, cluster_id: str) -> asyncio.Lock:
        return self._locks.setdefault(cluster_id, asyncio.Lock())

    async def _ask_api_server(self) -> None:
        loop, name = asyncio.get_running_loop(), self._options.system_namespace
        await loop.run_in_executor(self._pulse_thread, self._api.get, "Namespace", name)

    async def _call_in_thread(self, call: Callable[..., T], *arguments: object) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, call, *arguments)

    def _notify_if_failure_changed(self) -> None:
        """Notifies all clusters when the API server goes away, and when it is back."""
        unwell = self.unwell() is not None
        if unwell is not self._was_unwell:
            self._was_unwell = unwell
            known = {
                namespace["metadata"]["labels"][manifests.CLUSTER]
                for namespace in self._namespaces.all()
            }
            for cluster_id in sorted(known | self._desired.keys() | self._left_in_doubt):
                self._notify(cluster_id)
            self._left_in_doubt.clear()

    def _on_change(self, cluster_id: str) -> None:
        """Receives changes from the threads of the caches, and hands them to the event loop."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._note_change, cluster_id)

    def _note_change(self, cluster_id: str) -> None:
        live = {
            instance_of(pod): slot_of(pod)
            for pod in self._pods.of(namespace_of(cluster_id))
            if not is_ending(pod)
        }
        desired = self._desired.get(cluster_id)
        if desired is not None:
            # No pod that was asked to stop, with its cluster or with its slot, counts as ended by
            # itself, however late its end is seen.
            slots = _slots_of(desired) if desired.runs else set()
            self._asked_to_end |= {instance for instance, slot in live.items() if slot not in slots}
        gone = self._instances.get(cluster_id, set()) - live.keys()
        self._instances[cluster_id] = set(live)
        unasked = gone - self._asked_to_end
        self._asked_to_end -= gone
        if unasked:
            self._restarts[cluster_id] = self._restarts.get(cluster_id, 0) + len(unasked)
        self._notify(cluster_id)


def _deployments_in(existing: ObjectsByKey) -> list[Manifest]:
    return [manifest for (kind, _, _), manifest in existing.items() if kind == "Deployment"]


def _slots_of(desired: DesiredBrokers) -> set[int]:
    return set() if desired.plan is None else {broker.slot for broker in desired.plan.brokers}


def _release_lock(lock: asyncio.Lock, done: asyncio.Future[None]) -> None:
    lock.release()
    if not done.cancelled():
        # Reads the exception, or asyncio would log it where the caller no longer waits.
        done.exception()
