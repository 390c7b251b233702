"""A real keeper's samples of a real broker, from the bucket to PostgreSQL and to REST."""

import dataclasses
import time
from pathlib import Path

import orjson
import pytest

from console.base.common.conf import config
from console.base.common.tenancy import organization_scope
from provisioning.cell.keeper.settings import (
    CellSettings,
    DriverSettings,
    KeeperSettings,
    LoopSettings,
)
from provisioning.cell.sample_files import encode_file, file_key, sample_line
from provisioning.clusters.services.sample_ingest import ingest_samples, samples_store
from provisioning.limits import groups_used
from provisioning.models import SampleFile, SampleMinute
from tests.provisioning.control.world import access_of, prepare_cell
from tests.provisioning.kafka.clients import commit, produce_records
from tests.provisioning.keeper.processes import Cell, KeeperServer
from tests.provisioning.keeper.written import written_after
from tests.provisioning.survivors import kill_survivors
from tests.supervisor.run import wait_until


@pytest.fixture
def own_cell(tmp_path, settings):
    """A cell of this test alone, whose keeper finds no clusters of other tests."""
    place = dataclasses.replace(
        config().cell,
        metadata=f"sqlite://{tmp_path}/cell/metadata.sqlite",
        dfs=tmp_path / "cell" / "dfs",
        bucket=f"file://{tmp_path}/cell/bucket",
        secret=tmp_path / "cell" / "secret",
    )
    settings.FRESHET = dataclasses.replace(config(), cell=place)
    prepare_cell()
    for name in ("dfs", "bucket"):
        (tmp_path / "cell" / name).mkdir()
    return place


@pytest.fixture
def file_interval_ms():
    """As in production, so that the last sample is seen to come at once."""
    return LoopSettings(Path()).sample_file_interval_ms


@pytest.fixture
def keeper_settings(own_cell, tmp_path, file_interval_ms):
    folder = tmp_path / "keeper"
    cell = CellSettings(own_cell.metadata, own_cell.dfs, own_cell.bucket, own_cell.secret)
    loop = LoopSettings(
        folder,
        scrape_interval_ms=50,
        sample_interval_ms=100,
        sample_file_interval_ms=file_interval_ms,
        awake_min_ms=1,
    )
    broker = {"topics": {"offsets_partitions": 4}, "threads": {"runtime": 1}}
    yield KeeperSettings(cell, loop, DriverSettings(backoff_quiet_ms=100), broker)
    kill_survivors(folder / "run")


@pytest.fixture
def keeper(keeper_settings):
    with KeeperServer(keeper_settings) as server:
        yield server


@pytest.fixture
def slept(api, reconcile, keeper, own_cell):
    """A cluster with a group that is behind; it went to sleep. Gives its id and the group."""
    made = api().post("/clusters", {"name": "sampled", "deletion_protection": False})
    cluster_id = made.json()["resource_id"]
    wait_until(lambda: not reconcile(cluster_id), "it runs")
    body = {"name": "orders", "partitions": 2}
    assert api().post(f"/clusters/{cluster_id}/topics", body).status_code == 201
    access = access_of(cluster_id)
    now_ms = time.time_ns() // 1_000_000
    produce_records(access, "orders", [(n % 2, b"x", now_ms) for n in range(9)])
    commit(access, "billing", {("orders", 0): 2, ("orders", 1): 1})
    shown = api().get(f"/clusters/{cluster_id}/groups/billing").json()
    assert (shown["sampled_at"], int(shown["lag"])) == (None, 6)
    assert api().post(f"/clusters/{cluster_id}:sleep", {}).status_code == 202
    wait_until(lambda: not reconcile(cluster_id), "it sleeps")
    Cell(own_cell.metadata).until(lambda status: status.phase == "asleep", cluster_id)
    return cluster_id, shown


def test_the_lag_of_a_cluster_that_slept_is_what_it_was(api, tenant, slept):
    cluster_id, shown = slept
    # The file is there before the cluster sleeps, so one pass is enough.
    assert ingest_samples().samples >= 1
    asleep = api().get(f"/clusters/{cluster_id}/groups/billing").json()
    assert asleep["sampled_at"] is not None
    assert (asleep["lag"], asleep["state"]) == (shown["lag"], shown["state"])
    places = [(p["topic"], p["partition"], p["committed"], p["end"], p["lag"]) for p in
              shown["partitions"]]  # fmt: skip
    assert places == [
        (p["topic"], p["partition"], p["committed"], p["end"], p["lag"])
        for p in asleep["partitions"]
    ]
    text = api().get("/metrics").content.decode()
    labels = f'cluster="sampled",cluster_id="{cluster_id}",group="billing",topic="orders"'
    assert f"freshet_group_lag_records{{{labels}}} 6.0" in text
    with organization_scope(tenant.id):
        assert groups_used(tenant.id, cluster_id) == 1
        series = SampleMinute.objects.latest("at").series
    assert series["groups"]["billing"]["orders"][0] == 6
    assert "orders" in series["topics"] or series["topics"] == {}


@pytest.mark.parametrize("file_interval_ms", [500])
def test_no_older_keepers_sample_replaces_a_newer_one(api, slept, keeper, own_cell):
    """The first keeper is killed; what it wrote late has a lower term than the second one's."""
    cluster_id, _ = slept
    ingest_samples()
    (first,) = set(SampleFile.objects.values_list("term", flat=True))
    keeper.kill()
    woken_ms = time.time_ns() // 1_000_000
    keeper.start()
    Cell(own_cell.metadata).wake(cluster_id)
    written_after(own_cell.bucket, cluster_id, woken_ms)
    ingest_samples()
    terms = set(SampleFile.objects.values_list("term", flat=True))
    assert min(terms) == first
    assert len(terms) == 2
    late_ms = time.time_ns() // 1_000_000
    line = sample_line(cluster_id, late_ms, orjson.dumps({"groups": [{"group": "stale"}]}))
    data = encode_file([line], {}, emitted_at_ms=late_ms, term=first, whole=False)
    assert samples_store().put_new(file_key(late_ms, first), data)
    done = ingest_samples()
    assert (done.samples, done.damaged) == (0, 0)
    assert SampleFile.objects.filter(term=first, emitted_at_ms=late_ms).exists()
