"""What earlier releases stored is still read: by the scan, by the inspector and by a broker."""

import json
import shutil
from pathlib import Path

import pytest

from brokers import Broker, _core
from tests.brokers.lanes import CHECKPOINT, DATA, INSTALL, USAGE
from tests.brokers.logscan import LogScan
from tests.brokers.sample_writer import TOPIC, consume, expected

SAMPLES = sorted(path.parent for path in Path(__file__).parent.glob("samples/*/dfs"))
CORE_SAMPLES = Path(__file__).parents[2] / "brokers/core/crates/storage/tests/samples"


@pytest.fixture(params=SAMPLES, ids=lambda sample: sample.name)
def sample(request, tmp_path):
    """A copy: opening it changes it."""
    return shutil.copytree(request.param, tmp_path / "sample")


def test_scan_reads_every_sample(sample):
    scan = LogScan(sample / "dfs", sample / "bucket", sample / "metadata.sqlite")
    values = [record.value for _, record in scan.records(TOPIC)]
    assert values == expected(1) + expected(2)
    first, second = scan.lanes.values()
    assert first.seal is not None
    assert first.leftovers[0].entries
    assert {DATA, USAGE, INSTALL, CHECKPOINT} == {block.kind for block in second.blocks}
    assert [owner.owner for owner in (first, second)] == [2, 2]


def test_broker_starts_on_every_sample_and_goes_on(sample):
    with Broker(sample) as broker:
        report = json.loads(_core.inspect(broker.settings, verify=True))
        assert report["damage"] == []
        values = consume(broker.bootstrap, 2 * len(expected(1)), "another")
        assert values == expected(1) + expected(2)
        assert broker.incarnation == 3


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_scan_reads_the_samples_of_the_engine(version):
    """Lanes that the engine's own tests wrote, with a clean end; there is no metadata store."""
    scan = LogScan(CORE_SAMPLES / version, CORE_SAMPLES / version, None, "c")
    kinds = {block.kind for lane in scan.lanes.values() for block in lane.blocks}
    assert kinds >= {DATA, USAGE, INSTALL, CHECKPOINT}
    assert scan.lanes[2].seal is not None
    for partition in scan.installed:
        manifest = scan.manifest(partition)
        assert manifest is not None
        assert sum(batch.count for batch in scan.segment_batches(manifest)) > 0
