"""The driver's sweep, many clusters, *restricted* and drains, over nodes that only mark pods."""

import asyncio
import itertools
import re
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from http import HTTPStatus

import pytest

from provisioning.cell.drivers.base import BrokerPlan, BrokerState, ClusterPlan
from provisioning.cell.drivers.kubernetes.manifests import deployment, namespace_of
from tests.kubernetes.control_plane import counted, writes
from tests.kubernetes.rig import connect, options
from tests.provisioning.driver_conformance import LIMIT_S, Watched, accepted, running

pytestmark = pytest.mark.full

CLUSTERS = 200
NUMBERS = itertools.count()
# Namespace, claim, volume, quota, account, network policy, budget; and two for each broker.
SURROUNDINGS, PER_BROKER = 7, 2


def plan_of(cluster_id, brokers=1):
    settings = {"storage": {"bucket": "records", "cluster": cluster_id}, "listener": {}}
    return ClusterPlan(
        cluster_id, tuple(BrokerPlan(cluster_id, slot, settings) for slot in range(brokers))
    )


def served(brokers):
    return lambda seen: running(seen) and len(seen.brokers) == brokers


@pytest.fixture
def cell(control_plane, marked_nodes, tmp_path):
    """Makes drivers of one cell."""

    @asynccontextmanager
    async def driving():
        driver = connect(control_plane.kubeconfig("keeper"), options(tmp_path))
        await driver.start()
        try:
            yield driver
        finally:
            for cluster_id in await driver.clusters():
                await driver.remove(cluster_id)
            await driver.close()

    return driving


@pytest.fixture
def cluster_id():
    return f"cl_swept{next(NUMBERS)}"


async def swept(plane, driver):
    """Sweeps. Returns the writes that the API server saw, and checks the driver's own count."""
    with plane.recorded() as requests:
        said = await driver.sweep()
    written = writes(requests)
    assert len(written) == said
    return [request.resource for request in written]


def changes(space):
    """The path of each object of a cluster, with a change that somebody makes to it."""
    core, volume = f"/api/v1/namespaces/{space}", f"/api/v1/persistentvolumes/{space}"
    apps, network = "/apis/apps/v1/namespaces", "/apis/networking.k8s.io/v1/namespaces"
    enforce = {"pod-security.kubernetes.io/enforce": "privileged"}
    return [
        (core, {"metadata": {"labels": enforce}}),
        (volume, {"spec": {"persistentVolumeReclaimPolicy": "Delete"}}),
        (f"{core}/persistentvolumeclaims/dfs", {"metadata": {"labels": {"freshet.dev/cell": "x"}}}),
        (f"{core}/resourcequotas/brokers", {"spec": {"hard": {"pods": "99"}}}),
        (f"{core}/serviceaccounts/brokers", {"automountServiceAccountToken": True}),
        (f"{core}/secrets/broker-0", {"data": {"broker.toml": "eA=="}}),
        (f"{network}/{space}/networkpolicies/brokers", {"spec": {"policyTypes": ["Egress"]}}),
        (
            f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets/brokers",
            {"spec": {"minAvailable": 0}},
        ),
        (f"{apps}/{space}/deployments/broker-1", {"spec": {"replicas": 0}}),
    ]


KEPT_WHILE_USED = ("persistentvolumes", "persistentvolumeclaims")


def test_what_somebody_changes_or_deletes_is_put_right(control_plane, admin, cell, cluster_id):
    async def scenario():
        async with cell() as driver:
            watched = Watched(driver, cluster_id)
            await accepted(lambda: driver.apply(plan_of(cluster_id, 2)))
            await watched.until(served(2))
            assert await swept(control_plane, driver) == []
            for path, change in changes(namespace_of(cluster_id)):
                assert admin.patch(path, change).status == HTTPStatus.OK, path
                repaired = await swept(control_plane, driver)
                assert len(repaired) == 1, path
                assert await swept(control_plane, driver) == [], path
            for path, _ in changes(namespace_of(cluster_id))[1:]:
                plural = path.split("/")[-2]
                if plural in KEPT_WHILE_USED:
                    continue
                assert admin.ask("DELETE", path).status == HTTPStatus.OK, path
                assert await swept(control_plane, driver) == [plural]
                assert await swept(control_plane, driver) == []
            await watched.until(served(2))

    asyncio.run(scenario())


def test_another_image_reaches_one_broker_of_a_cluster_and_few_of_a_cell_at_a_time(
    control_plane, admin, marked_nodes, tmp_path
):
    """And it reaches no further brokers while the first ones do not serve."""
    clusters = [f"cl_rolled{next(NUMBERS)}" for _ in range(3)]

    def of_image(image):
        """The slots of the brokers that have the new image."""
        slots = []
        for cluster_id in clusters:
            path = f"/apis/apps/v1/namespaces/{namespace_of(cluster_id)}/deployments"
            for item in admin.get(path)["items"]:
                (container,) = item["spec"]["template"]["spec"]["containers"]
                if container["image"] == image:
                    slots.append((cluster_id, item["metadata"]["name"]))
        return slots

    async def all_served(driver):
        for cluster_id in clusters:
            await Watched(driver, cluster_id).until(served(2))

    async def scenario():
        own = options(tmp_path, rollouts_max=2)
        before = connect(control_plane.kubeconfig("keeper"), own)
        await before.start()
        for cluster_id in clusters:
            await accepted(partial(before.apply, plan_of(cluster_id, 2)))
        await all_served(before)
        await before.close()
        driver = connect(control_plane.kubeconfig("keeper"), replace(own, image="freshet:next"))
        await driver.start()
        for cluster_id in clusters:
            await accepted(partial(driver.apply, plan_of(cluster_id, 2)))
        assert of_image("freshet:next") == []
        marked_nodes.hold()
        assert await driver.sweep() == own.rollouts_max
        first = of_image("freshet:next")
        assert first == [(cluster_id, "broker-0") for cluster_id in clusters[:2]]
        assert await driver.sweep() == 0
        assert of_image("freshet:next") == first
        marked_nodes.go_on()
        await all_served(driver)
        while len(of_image("freshet:next")) < 2 * len(clusters):
            assert await driver.sweep() <= own.rollouts_max
            await all_served(driver)
        assert await driver.sweep() == 0
        for cluster_id in clusters:
            await driver.remove(cluster_id)
        await driver.close()

    asyncio.run(scenario())


def test_a_deleted_claim_and_volume_come_again_when_no_pod_uses_them(
    control_plane, admin, cell, cluster_id
):
    async def scenario():
        async with cell() as driver:
            watched, space = Watched(driver, cluster_id), namespace_of(cluster_id)
            await accepted(lambda: driver.apply(plan_of(cluster_id)))
            await watched.until(served(1))
            for path, _ in changes(space):
                if path.split("/")[-2] in KEPT_WHILE_USED:
                    assert admin.ask("DELETE", path).status == HTTPStatus.OK
            assert await swept(control_plane, driver) == []
            assert running(await driver.observe(cluster_id)), "what it had it keeps"
            await accepted(lambda: driver.stop(cluster_id, clean=True))
            await watched.until_gone()
            await accepted(lambda: driver.apply(plan_of(cluster_id)))
            async with asyncio.timeout(LIMIT_S):
                while not running(await driver.observe(cluster_id)):
                    await driver.sweep()

    asyncio.run(scenario())


def test_a_deleted_namespace_comes_again(admin, cell, cluster_id):
    async def scenario():
        async with cell() as driver:
            watched, space = Watched(driver, cluster_id), namespace_of(cluster_id)
            await accepted(lambda: driver.apply(plan_of(cluster_id)))
            uid = admin.get(f"/api/v1/namespaces/{space}")["metadata"]["uid"]
            assert admin.ask("DELETE", f"/api/v1/namespaces/{space}").status == HTTPStatus.OK
            async with asyncio.timeout(LIMIT_S):
                while True:
                    namespace = admin.ask("GET", f"/api/v1/namespaces/{space}").document
                    if namespace.get("metadata", {}).get("uid", uid) != uid:
                        break
                    await driver.sweep()
                await driver.sweep()
            await watched.until(served(1))

    asyncio.run(scenario())


def test_what_an_earlier_keeper_left_is_found_and_left_alone(control_plane, cell, cluster_id):
    """The keeper decides which clusters exist, so the sweep removes none."""

    async def scenario():
        async with cell() as earlier:
            await accepted(lambda: earlier.apply(plan_of(cluster_id)))
            await Watched(earlier, cluster_id).until(served(1))
            async with cell() as driver:
                assert await driver.clusters() == {cluster_id}
                assert await swept(control_plane, driver) == []
                with control_plane.recorded() as requests:
                    await accepted(lambda: driver.apply(plan_of(cluster_id)))
                assert writes(requests) == [], "all is there already"
                assert running(await driver.observe(cluster_id))

    asyncio.run(scenario())


@pytest.mark.timeout(900)
def test_many_clusters_come_sleep_wake_and_go(control_plane, cell):
    names = [f"cl_many{number}" for number in range(CLUSTERS)]

    async def do_to_all(ask, holds, driver):
        """Does something to all clusters at once, and waits until it holds of all.

        Returns the requests that this took.
        """
        arrived = {name: asyncio.Event() for name in names}

        async def look(name):
            if holds(await driver.observe(name)):
                arrived[name].set()

        tasks = set()

        def on_change(name):
            task = asyncio.get_running_loop().create_task(look(name))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        driver.notify(on_change)
        with control_plane.recorded() as requests:
            await asyncio.gather(*(accepted(partial(ask, name)) for name in names))
            for name in names:
                await look(name)
            async with asyncio.timeout(2 * LIMIT_S):
                for event in arrived.values():
                    await event.wait()
        return requests

    async def scenario():
        async with cell() as driver:
            made = await do_to_all(lambda name: driver.apply(plan_of(name)), running, driver)
            assert len(writes(made)) == CLUSTERS * (SURROUNDINGS + PER_BROKER)
            assert await swept(control_plane, driver) == []
            slept = await do_to_all(
                lambda name: driver.stop(name, clean=True), lambda seen: not seen.brokers, driver
            )
            assert counted(beside_pulse(slept)) == {"patch": CLUSTERS}
            assert await swept(control_plane, driver) == []
            woken = await do_to_all(lambda name: driver.apply(plan_of(name)), running, driver)
            assert counted(writes(woken)) == {"patch": CLUSTERS}
            with control_plane.recorded() as requests:
                assert await driver.sweep() == 0
            # Nine kinds, in pages of 500.
            assert counted(beside_pulse(requests)) == {"list": 9}
            await do_to_all(driver.remove, lambda seen: not seen.brokers, driver)
            assert await driver.clusters() == frozenset()

    asyncio.run(scenario())


def beside_pulse(requests):
    """The requests without those that depend on time: the pulse's, and watches that begin again."""
    pulse = ("get", "namespaces", "freshet-system")
    asked = [
        request for request in requests if (request.verb, request.resource, request.name) != pulse
    ]
    return [request for request in asked if request.verb != "watch"]


VOLUMES = ("settings", "dfs", "scratch")
BROKEN = [
    ("securityContext", {"runAsNonRoot": False}),
    ("hostNetwork", True),
    ("volumes", [{"name": name, "hostPath": {"path": "/"}} for name in VOLUMES]),
]


@pytest.mark.parametrize(("field", "value"), BROKEN, ids=[field for field, _ in BROKEN])
def test_nothing_in_a_namespace_of_a_cluster_does_more_than_restricted(
    admin, cell, cluster_id, tmp_path, field, value
):
    async def scenario():
        async with cell() as driver:
            await accepted(lambda: driver.apply(plan_of(cluster_id)))
            pod = deployment(cluster_id, 0, 1, options(tmp_path))["spec"]["template"]
            pod["metadata"]["name"] = "by-hand"
            path = f"/api/v1/namespaces/{namespace_of(cluster_id)}/pods"
            passed = admin.ask("POST", path, pod, dryRun="All")
            assert passed.status == HTTPStatus.CREATED, passed
            pod["spec"][field] = value
            refused = admin.ask("POST", path, pod, dryRun="All")
            assert refused.status == HTTPStatus.FORBIDDEN
            assert re.search('violates PodSecurity "restricted', refused.message)

    asyncio.run(scenario())


def test_a_drain_takes_one_broker_at_a_time(admin, cell, cluster_id, marked_nodes):
    async def scenario():
        async with cell() as driver:
            watched, space = Watched(driver, cluster_id), namespace_of(cluster_id)
            await accepted(lambda: driver.apply(plan_of(cluster_id, 2)))
            seen = await watched.until(served(2))
            first, second = (broker.name.rpartition(".")[0] for broker in seen.brokers)
            # The first broker has not been replaced yet.
            marked_nodes.hold()
            await until_evicted(admin, space, first)
            await watched.until(lambda seen: seen.brokers[0].state is not BrokerState.RUNNING)
            for _ in range(3):
                answer = evict(admin, space, second)
                assert answer.status == HTTPStatus.TOO_MANY_REQUESTS
                assert "disruption budget" in answer.message
            marked_nodes.go_on()
            await watched.until(served(2))
            await until_evicted(admin, space, second)
            await watched.until(
                lambda seen: served(2)(seen) and seen.brokers[1].name != f"{second}.0"
            )

    asyncio.run(scenario())


def evict(admin, space, pod):
    path = f"/api/v1/namespaces/{space}/pods/{pod}/eviction"
    named = {"name": pod, "namespace": space}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": named}
    return admin.ask("POST", path, body)


async def until_evicted(admin, space, pod):
    """Evicts, and repeats that while the budget's controller has not counted the pods yet."""
    async with asyncio.timeout(LIMIT_S):
        while evict(admin, space, pod).status != HTTPStatus.CREATED:
            await asyncio.sleep(0.05)
