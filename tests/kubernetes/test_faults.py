"""The driver over a proxy to the API server on which each request fails once."""

import asyncio
import itertools
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus

import pytest

from provisioning.cell.drivers.base import Answer, BrokerPlan, ClusterPlan
from provisioning.cell.drivers.kubernetes.api import Api, Lost
from provisioning.cell.drivers.kubernetes.cache import SETTLED_S
from provisioning.cell.drivers.kubernetes.driver import KubernetesDriver
from provisioning.cell.drivers.kubernetes.manifests import namespace_of
from tests.kubernetes.control_plane import writes
from tests.kubernetes.faulty_proxy import FAULTS, WATCH_FAULTS, FaultyProxy
from tests.kubernetes.rig import options
from tests.provisioning.driver_conformance import (
    LIMIT_S,
    PAUSE_S,
    Watched,
    accepted,
    replaced,
    running,
)

pytestmark = pytest.mark.full

# The driver's time limit of a request: later answers count as lost.
TIMEOUT_S = 1.0
STALE_S = SETTLED_S + 1.0
NUMBERS = itertools.count()


def plan_of(cluster_id):
    settings = {"storage": {"bucket": "records", "cluster": cluster_id}, "listener": {}}
    return ClusterPlan(cluster_id, (BrokerPlan(cluster_id, 0, settings),))


class Way:
    """A proxy with a kind of fault for each of some clusters, and drivers that use it."""

    def __init__(self, control_plane, folder, faults):
        self.faults = faults
        spaces = {namespace_of(cluster_id): fault for cluster_id, fault in faults.items()}
        self.proxy = FaultyProxy(control_plane.kubeconfig("keeper"), spaces)
        self._kubeconfig = control_plane.kubeconfig("keeper", self.proxy.url)
        self._options = options(folder)

    @asynccontextmanager
    async def driving(self):
        api = Api.connect(str(self._kubeconfig), timeout_s=TIMEOUT_S)
        driver = KubernetesDriver(api, self._options, stale_s=STALE_S)
        await driver.start()
        try:
            yield driver
        finally:
            for cluster_id in await driver.clusters():
                await accepted(partial(driver.remove, cluster_id))
            await driver.close()


@pytest.fixture
def way(control_plane, marked_nodes, tmp_path):
    """Makes a `Way` to clusters, each of which has a fault of its own."""
    made = []

    def make(faults):
        names = {f"cl_fault{next(NUMBERS)}": fault for fault in faults}
        made.append(Way(control_plane, tmp_path, names))
        return made[0]

    yield make
    for faulty in made:
        faulty.proxy.close()


def gone(seen):
    return not seen.brokers


async def nothing_left(control_plane, driver, proxy):
    """Checks that all requests took effect, and that nothing else exists."""
    await asyncio.to_thread(proxy.wait_for_late_ones)
    with control_plane.recorded() as requests:
        async with asyncio.timeout(LIMIT_S):
            while (written := await swept(driver)) is None:
                await asyncio.sleep(PAUSE_S)
    assert (written, writes(requests)) == (0, [])


async def swept(driver):
    """The number of a sweep's writes; None where the sweep failed."""
    try:
        return await driver.sweep()
    except Lost:
        return None


def test_every_request_takes_effect_whatever_fault_it_meets(control_plane, way):
    """Each request of each step fails once, with another kind of fault for each cluster."""
    faulty = way(FAULTS)
    first = {}

    async def create(watched, cluster_id):
        await accepted(lambda: watched.driver.apply(plan_of(cluster_id)))
        first[cluster_id] = (await watched.until(running, cluster_id)).brokers[0].name

    async def replace(watched, cluster_id):
        await accepted(lambda: watched.driver.replace(cluster_id, 0))
        await watched.until(replaced(first[cluster_id]), cluster_id)

    async def sleep(watched, cluster_id):
        await accepted(lambda: watched.driver.stop(cluster_id, clean=True))
        await watched.until(gone, cluster_id)

    async def wake(watched, cluster_id):
        await create(watched, cluster_id)
        assert (await watched.driver.observe(cluster_id)).restarts == 0, "all were asked to end"

    async def delete(watched, cluster_id):
        await accepted(lambda: watched.driver.remove(cluster_id))
        await watched.until(gone, cluster_id)
        assert cluster_id not in await watched.driver.clusters()

    async def scenario():
        async with faulty.driving() as driver:
            # A driver has one callback, so it passes the change on to the cluster's watcher.
            by_name = {name: Watched(driver, name) for name in faulty.faults}
            driver.notify(lambda cluster_id: by_name[cluster_id].on_change(cluster_id))
            for step in (create, replace, sleep, wake, delete):
                async with asyncio.TaskGroup() as steps:
                    for name, watched in by_name.items():
                        steps.create_task(step(watched, name), name=f"{faulty.faults[name]}")
                await nothing_left(control_plane, driver, faulty.proxy)
                faulty.proxy.next_round()
            assert await driver.clusters() == frozenset()

    asyncio.run(scenario())
    assert set(faulty.proxy.done) >= set(FAULTS), "each went wrong"
    assert set(faulty.proxy.watches_done) == set(WATCH_FAULTS)


def pod_of(seen):
    return seen.brokers[0].name.rpartition(".")[0]


def test_nothing_is_known_of_what_cannot_be_watched(control_plane, admin, way):
    faulty = way([None])
    (cluster_id,) = faulty.faults
    proxy, space = faulty.proxy, namespace_of(cluster_id)

    def end(pod):
        answer = admin.ask("DELETE", f"/api/v1/namespaces/{space}/pods/{pod}")
        assert answer.status == HTTPStatus.OK

    async def scenario():
        async with faulty.driving() as driver:
            watched = Watched(driver, cluster_id)

            async def known_again(name):
                await watched.until(lambda seen: seen.known and replaced(name)(seen))
                assert driver.unwell() is None

            await accepted(lambda: driver.apply(plan_of(cluster_id)))
            seen = await watched.until(lambda seen: seen.known and running(seen))
            # The API server answers everything but watches.
            proxy.no_watches = proxy.no_lists = True
            proxy.cut_watches()
            end(pod_of(seen))
            seen = await watched.until(lambda seen: not seen.known)
            # The first kind whose cache is stale is named.
            assert driver.unwell().startswith("no watch and no list of ")
            proxy.no_watches = proxy.no_lists = False
            await known_again(seen.brokers[0].name)
            # Where watches fail, lists keep the caches current.
            proxy.no_watches = True
            proxy.cut_watches()
            seen = await driver.observe(cluster_id)
            end(pod_of(seen))
            await watched.until(replaced(seen.brokers[0].name))
            proxy.no_watches = False
            # Connections are refused.
            proxy.close()
            outcome = await driver.replace(cluster_id, 0)
            assert outcome.answer is Answer.UNKNOWN
            seen = await watched.until(lambda seen: not seen.known)
            end(pod_of(seen))
            proxy.open()
            await known_again(seen.brokers[0].name)
            await nothing_left(control_plane, driver, proxy)

    asyncio.run(scenario())


def test_all_clusters_are_notified_of_a_failure_that_an_observation_saw_first(way, monkeypatch):
    """And of its end: the failure may begin and end between two beats of the pulse."""
    faulty = way([None, None])
    old, new = faulty.faults

    async def scenario():
        async with faulty.driving() as driver:
            await accepted(lambda: driver.apply(plan_of(old)))
            await Watched(driver, old).until(lambda seen: seen.known)
            for failure, expected in (("as the test wants it", {old}), (None, {old, new})):
                monkeypatch.setattr(driver, "unwell", lambda failure=failure: failure)
                notified: set[str] = set()
                driver.notify(notified.add)
                seen = await driver.observe(new)
                assert (seen.known, notified) == (failure is None, expected)

    asyncio.run(scenario())
