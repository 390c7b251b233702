"""The keeper's settings of brokers as pods, and the plans that follow from them."""

import base64
import dataclasses
import os
import re
import tomllib
from pathlib import Path

import pytest

from brokers.settings.errors import SettingsError
from brokers.settings.writing import settings_toml
from provisioning.cell.drivers.kubernetes.manifests import settings_secret
from provisioning.cell.drivers.kubernetes.options import KubernetesOptions, Resources
from provisioning.cell.keeper.kubernetes import (
    FILES_BYTES_MAX,
    BrokerFiles,
    KubernetesSettings,
    make_driver,
    make_folder,
)
from provisioning.cell.keeper.plan import cluster_plan
from provisioning.cell.keeper.records import Spec, SpecState
from provisioning.cell.keeper.settings import (
    CellSettings,
    KeeperSettings,
    LoopSettings,
    parse_settings,
)

OPTIONS = KubernetesOptions("eu-1", "freshet:0.1", {"hostPath": {"path": "/dfs/{cluster}"}})
CELL = CellSettings("/cell/m", Path("/cell/dfs"), "/cell/bucket", Path("/cell/secret"))
DRIVER = KubernetesSettings(options=OPTIONS)
SETTINGS = KeeperSettings(CELL, LoopSettings(Path("/cell/keeper")), DRIVER)
MINIMUM = settings_toml(SETTINGS)
SPEC = Spec("cl_a", 1, SpecState.ACTIVE, 1, 0)


def test_what_is_written_is_read():
    options = dataclasses.replace(
        OPTIONS,
        resources=Resources(cpu="1", memory_max="2Gi"),
        node_selector={"pool": "brokers", "kubernetes.io/os": "linux"},
        tolerations=({"key": "brokers", "operator": "Exists"},),
        egress=(("10.0.9.0/24", (2379,)), ("0.0.0.0/0", ())),
        request_timeout_s=2.5,
        sweep_interval_s=7,
    )
    driver = KubernetesSettings(
        options=options,
        kubeconfig="/cell/kubeconfig",
        broker_files=Path("/cell/files"),
        broker_metadata="etcd://10.0.9.1:2379/cell",
        broker_bucket="s3://records",
    )
    given = dataclasses.replace(SETTINGS, driver=driver, broker={"log": {"level": "warn"}})
    assert parse_settings(settings_toml(given)) == given
    assert parse_settings(MINIMUM) == SETTINGS


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("image =", "picture =", "unknown setting driver.picture"),
        ('cell = "eu-1"', "", "driver.cell must be set"),
        ("image = ", "image = 1 # ", "driver.image is 1, want a text"),
        ("user = 10001", "user = 0", "driver.user is 0, want a whole number of 1 or more"),
        ("egress = []", "egress = ['10.0.0.0/8']", "driver.egress is"),
        ("egress = []", "egress = [['10.0.0.0/8', ['2379']]]", "driver.egress is"),
        ("tolerations = []", "tolerations = {}", "want a list of tables"),
        ('cpu = "250m"', "cpu = 1", "driver.resources.cpu is 1, want a text"),
        ('cpu = "250m"', 'disk = "1"', "unknown setting driver.resources.disk"),
        ("[driver]", "[driver]\nbroker_files = ''", "driver.broker_files is '', want a path"),
        ("sweep_interval_s = 60.0", "sweep_interval_s = 0.0", "want a number of more than 0"),
    ],
)
def test_what_makes_no_sense_is_refused(before, after, said):
    assert before in MINIMUM
    with pytest.raises(SettingsError, match=re.escape(said)):
        parse_settings(MINIMUM.replace(before, after))


def test_brokers_get_their_own_locations_of_metadata_and_bucket(tmp_path):
    driver = dataclasses.replace(
        DRIVER,
        broker_metadata="etcd://e:1/root?user={cluster}&password_file=/etc/freshet/etcd",
        broker_bucket="s3://records?key_file=/etc/freshet/s3",
    )
    settings = dataclasses.replace(SETTINGS, driver=driver)
    (tmp_path / "s3").write_text("everybody's")
    (tmp_path / "cl_a").mkdir()
    (tmp_path / "cl_a" / "etcd").write_text("its own")
    (tmp_path / "cl_b").mkdir()
    (tmp_path / "cl_b" / "etcd").write_text("another's")
    files = BrokerFiles(tmp_path)
    plan = cluster_plan(SPEC, settings, bytes(32), files.of("cl_a"))
    secret = settings_secret(plan.brokers[0], OPTIONS)["data"]
    decoded = {name: base64.b64decode(value) for name, value in secret.items()}
    assert {name: decoded[name] for name in ("etcd", "s3")} == {
        "etcd": b"its own",
        "s3": b"everybody's",
    }
    storage = tomllib.loads(decoded["broker.toml"].decode())["storage"]
    assert storage == {
        "dfs": "/dfs",
        "bucket": "s3://records?key_file=/etc/freshet/s3",
        "metadata": "etcd://e:1/root?user=cl_a&password_file=/etc/freshet/etcd",
        "cluster": "cl_a",
    }


def test_a_changed_file_makes_another_plan(tmp_path):
    key = tmp_path / "key"
    key.write_text("before")
    files = BrokerFiles(tmp_path)
    before = cluster_plan(SPEC, SETTINGS, bytes(32), files.of("cl_a"))
    assert cluster_plan(SPEC, SETTINGS, bytes(32), files.of("cl_a")) == before
    key.write_text("behind")
    os.utime(key, ns=(1, 1))
    after = cluster_plan(SPEC, SETTINGS, bytes(32), files.of("cl_a"))
    assert after != before
    assert after.brokers[0].files == {"key": b"behind"}
    assert "behind" not in repr(after)


def test_more_files_than_a_secret_takes_are_refused(tmp_path):
    (tmp_path / "large").write_bytes(bytes(FILES_BYTES_MAX + 1))
    with pytest.raises(SettingsError, match=r"broker_files: .* has more than"):
        BrokerFiles(tmp_path).of("cl_a")


def test_no_way_to_the_api_server_is_said(tmp_path):
    settings = dataclasses.replace(DRIVER, kubeconfig=str(tmp_path / "none"))
    with pytest.raises(SettingsError, match=r"driver\.kubeconfig"):
        make_driver(settings)


def test_a_clusters_folder_is_made_once_and_for_its_brokers_alone(tmp_path):
    for _ in range(2):
        make_folder(tmp_path, "cl_a")
        (tmp_path / "cl_a" / f"kept-{len(list((tmp_path / 'cl_a').iterdir()))}").touch()
    assert len(list((tmp_path / "cl_a").iterdir())) == 2
    assert (tmp_path / "cl_a").stat().st_mode & 0o777 == 0o700
    with pytest.raises(FileNotFoundError):
        make_folder(tmp_path / "not-mounted", "cl_a")
