"""The keeper's settings: read, written, refused."""

import dataclasses
import re
import tomllib
from pathlib import Path

import pytest

from brokers import _core
from brokers.settings.errors import SettingsError
from brokers.settings.writing import overrides_of, settings_toml
from provisioning.cell.keeper.plan import cluster_plan
from provisioning.cell.keeper.records import Spec, SpecState
from provisioning.cell.keeper.settings import (
    CellSettings,
    DriverSettings,
    KeeperSettings,
    LoopSettings,
    load_settings,
    parse_settings,
)

CELL = CellSettings("/cell/m", Path("/cell/dfs"), "/cell/bucket", Path("/cell/secret"))
SETTINGS = KeeperSettings(CELL, LoopSettings(Path("/cell/keeper")))
MINIMUM = settings_toml(SETTINGS)


def test_what_is_written_is_read():
    given = dataclasses.replace(
        SETTINGS,
        keeper=dataclasses.replace(SETTINGS.keeper, standby=False, scrape_interval_ms=7),
        driver=DriverSettings(log_files=9),
        broker={"cache": {"hot_bytes": 1 << 20}, "log": {"level": "warn"}},
    )
    assert parse_settings(settings_toml(given)) == given


def test_only_places_must_be_set():
    text = """
    [cell]
    metadata = "/cell/m"
    dfs = "/cell/dfs"
    bucket = "/cell/bucket"
    secret = "/cell/secret"
    [keeper]
    folder = "/cell/keeper"
    """
    assert parse_settings(text) == SETTINGS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MINIMUM + "[other]\n", "unknown setting other"),
        (MINIMUM.replace("standby", "stand_by"), "unknown setting keeper.stand_by"),
        (MINIMUM.replace("folder =", "# "), "keeper.folder must be set"),
        (
            MINIMUM.replace("standby = true", "standby = 1"),
            "keeper.standby is 1, want true or false",
        ),
        (MINIMUM.replace("failures_max = 5", "failures_max = true"), "failures_max is True"),
        (MINIMUM.replace("failures_max = 5", "failures_max = 0"), "of 1 or more"),
        (MINIMUM.replace('"/cell/dfs"', '""'), "cell.dfs is '', want a path"),
        (MINIMUM.replace('kind = "local"', 'kind = "nomad"'), "driver.kind"),
        (MINIMUM + "[broker.listener]\nkafka = 'x'\n", "broker.listener: the keeper itself"),
        (MINIMUM + "[broker]\ncache = 1\n", "sections only"),
        (MINIMUM.replace('"info"', '"loud"'), "keeper.log_level is 'loud', want one of debug,"),
        ("cell = 1", "cell is 1, want a section"),
        ("[cell", "Expected"),
    ],
)
def test_what_makes_no_sense_is_refused(text, said):
    with pytest.raises(SettingsError, match=re.escape(said)):
        parse_settings(text)


def test_what_is_said_at_the_start_wins_over_the_file():
    given = ["cell.metadata=/other/m", "keeper.failures_max = 7", "keeper.standby=false"]
    settings = parse_settings(MINIMUM, given)
    assert settings.cell.metadata == type(settings.cell.metadata)("/other/m")
    assert (settings.keeper.failures_max, settings.keeper.standby) == (7, False)
    assert settings.cell.secret == CELL.secret
    # Also for a setting that is not in the file.
    assert parse_settings("", overrides_of(tomllib.loads(MINIMUM))) == SETTINGS


@pytest.mark.parametrize("given", ["keeper", "keeper=1", "=1", "keeper.=1", "keeper.folder"])
def test_what_is_no_setting_is_refused_at_the_start(given):
    with pytest.raises(SettingsError, match=re.escape("<section>.<setting>=<value>")):
        parse_settings(MINIMUM, [given])


def test_an_error_names_the_file(tmp_path):
    file = tmp_path / "keeper.toml"
    with pytest.raises(SettingsError, match=r"keeper.toml: .*No such file"):
        load_settings(file)
    file.write_text("x = 1")
    with pytest.raises(SettingsError, match=r"keeper.toml: unknown setting x"):
        load_settings(file)


SPEC = Spec("cl_a", 1, SpecState.ACTIVE, 2, 0)


def test_a_plan_is_settings_that_a_broker_takes():
    plan = cluster_plan(
        SPEC, dataclasses.replace(SETTINGS, broker={"cache": {"hot_bytes": 1}}), bytes(32)
    )
    assert [broker.slot for broker in plan.brokers] == [0, 1]
    for broker in plan.brokers:
        resolved = tomllib.loads(_core.resolve_settings(STORAGE, overrides_of(broker.settings)))
        assert resolved["storage"]["cluster"] == "cl_a"
        assert resolved["broker"]["node_id"] == broker.slot
        assert resolved["security"]["super_users"] == ["User:__freshet"]
        assert resolved["security"]["allow_everyone_if_no_acl_found"] is False
        assert resolved["listener"]["sasl"] == ["PLAIN", "SCRAM-SHA-512"]
        assert resolved["listener"]["super_users_only"] is True
        assert resolved["cache"]["hot_bytes"] == 1
        for listener in ("kafka", "link", "metrics", "brokers"):
            assert resolved["listener"][listener] == "127.0.0.1:0"


def test_a_broker_has_the_same_settings_at_any_scale():
    """So that a change of the scale restarts no broker."""
    one, three = (
        cluster_plan(dataclasses.replace(SPEC, scale=scale), SETTINGS, bytes(32)).brokers
        for scale in (1, 3)
    )
    assert one[0] == three[0]


STORAGE = "[storage]\ndfs = '-'\nbucket = '-'\nmetadata = '-'\n"


def test_a_broker_gets_what_is_derived_for_its_own_cluster():
    secret = bytes(range(32))
    plans = [cluster_plan(dataclasses.replace(SPEC, cluster_id=i), SETTINGS, secret) for i in "ab"]
    texts = [str(dict(plan.brokers[0].settings)) for plan in plans]
    assert secret.hex() not in texts[0]
    secrets = [set(re.findall(r"[0-9a-f]{64}", text)) for text in texts]
    assert [len(secret) for secret in secrets] == [2, 2]
    assert not secrets[0] & secrets[1]
