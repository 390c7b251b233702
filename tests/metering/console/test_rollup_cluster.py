"""The control plane rolls a day up on a cluster of Spark, with all files in a bucket."""

import contextlib
import dataclasses
import json
import os
import signal

import psutil
import pytest

from console.base.common.conf import config
from metering.choices import RunState
from metering.errors import RollupFailed
from metering.models import RollupPointer
from metering.periods import DAY, FILES_KEPT
from metering.services.ingest import ingest_usage
from metering.services.pruning import FOLDERS_KEPT, prune_folders
from metering.services.rollup import roll_up
from metering.services.run_folders import parse_folder, run_store
from metering.services.totals import files_of_day
from metering.stores import open_usage_store
from spark_usage.jars import POM as S3A_POM
from tests.metering.console.test_rollup import TODAY, emit, home, rows
from tests.peer.jars import jar_folder
from tests.spark import oracle
from tests.spark.cluster import running_cluster

pytestmark = [
    pytest.mark.full("stores"),
    # Three jobs on a cluster whose machines all share this one.
    pytest.mark.timeout(1200),
    pytest.mark.django_db,
    pytest.mark.usefixtures("clock", "home"),
]
__all__ = ["home"]
EXECUTORS = ("spark.executor.memory=512m", "spark.driver.host=127.0.0.1")


@pytest.fixture
def cluster(tmp_path):
    with running_cluster(tmp_path) as started:
        yield started


@pytest.fixture
def in_bucket(s3_server, settings, store, cluster):
    """Moves the usage files into a bucket; roll-ups are made on the cluster from now on."""

    def move():
        usage = dataclasses.replace(
            config().usage,
            location=s3_server.make_bucket(),
            rollups=s3_server.make_bucket(),
            spark_master=cluster.url,
            spark_settings=EXECUTORS,
            spark_jars=str(jar_folder(S3A_POM)),
        )
        settings.FRESHET = dataclasses.replace(config(), usage=usage)
        bucket = open_usage_store(usage.location)
        for key in store.list(""):
            bucket.put_new(key, store.get(key))

    return move


def is_driver(process):
    """Whether a child runs the job; one that has ended, unknown to its parent, does not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        command = process.cmdline()
        return "spark_usage.jobs.rollup" in command and process.name().startswith("python")
    return False


def drivers():
    """The jobs that this process started."""
    return [child for child in psutil.Process().children(recursive=True) if is_driver(child)]


def on_paper(store, folder):
    """What the oracle makes of the day's files."""
    ingest_usage(store=store)
    run = folder / "run.json"
    inputs = [dataclasses.asdict(file) for file in files_of_day(config().cell.id, TODAY)]
    plain = {"day": TODAY.isoformat(), "usage_root": str(store.root), "inputs": inputs}
    run.write_text(json.dumps(plain))
    return oracle.roll_up(run)


def test_a_killed_worker_and_a_killed_driver_change_no_byte(
    agent, store, tmp_path, cluster, in_bucket, clock
):
    for number in range(20):
        emit(agent, range(number * 10, number * 10 + 10), incarnation=1 + number % 3)
        emit(agent.twin("agent-2"), range(number * 10, number * 10 + 5), incarnation=1 + number % 3)
    expected = on_paper(store, tmp_path)
    in_bucket()

    def kill_driver(line):
        if line.startswith("stage 4"):
            (driver,) = drivers()
            os.kill(driver.pid, signal.SIGKILL)

    with pytest.raises(RollupFailed):
        roll_up(day=TODAY, say=kill_driver)
    assert not RollupPointer.objects.exists()

    def kill_worker(line):
        if line.startswith("stage 3") and "worker-1" in cluster.processes:
            cluster.kill("worker-1")

    second = roll_up(day=TODAY, say=kill_worker)
    assert second.state == RunState.PUBLISHED
    assert second.content_sha256 == expected.content_sha256
    assert sum(rows("day").values()) == sum(map(int, expected.control_totals.values()))
    cluster.start_worker("worker-3")
    third = roll_up(day=TODAY)
    assert third.state == RunState.UNCHANGED
    clock.now += FOLDERS_KEPT + 2 * DAY
    assert prune_folders() == 2
    # Hours are read from the run that is published.
    folders = {folder for key in run_store().list("") if (folder := parse_folder(key))}
    assert {folder.run_id for folder in folders} == {second.pk}
    clock.now += FILES_KEPT
    assert prune_folders() == 1
    assert list(run_store().list("")) == []
