"""Settings, their defaults, and the page that describes them agree."""

import re
import tomllib
from pathlib import Path

import pytest

from brokers import _core
from brokers.config import load_settings
from brokers.errors import BrokerError, ConfigError
from brokers.settings.writing import overrides_of, toml_value

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "broker-settings.md"
ROW = re.compile(r"\| `(\w+\.\w+)` \| (`(.*?)`|unset) \|")
STORAGE = "[storage]\ndfs = 'd'\nbucket = 'b'\nmetadata = 'm'\n"
# Has no default that could be written down: it depends on another setting.
UNSET = {"security.allow_everyone_if_no_acl_found"}


def documented():
    rows = (ROW.match(line) for line in PAGE.read_text().splitlines())
    return {row.group(1): row.group(3) for row in rows if row}


def defaults():
    sections = tomllib.loads(_core.default_settings())
    return {
        f"{section}.{name}": value
        for section, settings in sections.items()
        for name, value in settings.items()
    }


def test_page_lists_every_setting_and_no_other():
    assert set(documented()) == set(defaults()) | UNSET


def test_page_gives_every_default():
    said = {name: value for name, value in documented().items() if name not in UNSET}
    assert said == {name: toml_value(value) for name, value in defaults().items()}
    assert all(documented()[name] is None for name in UNSET)


def test_every_row_has_four_cells_and_a_meaning():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert len(rows) == len(documented())
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 4
        assert cells[3].endswith((".", ")"))


def test_optional_setting_is_accepted():
    text = f"{STORAGE}[security]\nallow_everyone_if_no_acl_found = true\n"
    resolved = tomllib.loads(_core.resolve_settings(text, []))
    assert resolved["security"]["allow_everyone_if_no_acl_found"] is True


def test_file_is_read_with_overrides(tmp_path):
    path = tmp_path / "broker.toml"
    path.write_text(f"{STORAGE}[topics]\nauto_create = false\n")
    settings = tomllib.loads(load_settings(path, ["listener.sasl=['PLAIN']", "log.level=debug"]))
    assert settings["topics"]["auto_create"] is False
    assert settings["listener"]["sasl"] == ["PLAIN"]
    assert settings["log"]["level"] == "debug"
    assert settings["storage"]["cluster"] == "local"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[topics]\nauto_create = 1\n", r"broker.toml: line 6: topics.auto_create: invalid type"),
        ("[topics]\nauto = 1\n", r"broker.toml: line 6: topics.auto: unknown field"),
        ("[groups\n", r"broker.toml: line 5: "),
        ("[listener]\nkafka = 'x'\n", r"line 6: listener.kafka: must be host:port"),
        ("[listener]\nlink = '127.0.0.1:0'\n", r"listener.link_secret: must have at least 32"),
        ("[lane]\nfile_bytes_first = 1\n", r"line 6: lane.file_bytes_first: must be a multiple"),
        ("[log]\nlevel = 'inof'\n", r"line 6: log.level: must be one of"),
        ("[storage2]\n", r"line 5: storage2: unknown field"),
        ("[security]\nsuper_users = ['admin']\n", r"line 6: security.super_users: "),
    ],
)
def test_wrong_settings_name_file_line_and_key(tmp_path, text, said):
    path = tmp_path / "broker.toml"
    path.write_text(STORAGE + text)
    with pytest.raises(ConfigError, match=said):
        load_settings(path)


def test_missing_storage_is_named(tmp_path):
    path = tmp_path / "broker.toml"
    path.write_text("")
    with pytest.raises(ConfigError, match=r"storage\.dfs: must be set"):
        load_settings(path)
    with pytest.raises(ConfigError, match=r"absent\.toml: .*No such file"):
        load_settings(tmp_path / "absent.toml")


def test_python_values_become_toml():
    values = {
        "text": 'a "quoted" \\ line\n',
        "yes": True,
        "seconds": 2.5,
        "many": [1, "two"],
        "table": [{"name": "a", "password": "é"}],
    }
    text = "\n".join(line.removeprefix("s.") for line in overrides_of({"s": values}))
    assert tomllib.loads(text) == values
    with pytest.raises(ConfigError, match="no setting takes a NoneType"):
        toml_value(None)


def test_every_error_is_a_broker_error():
    with pytest.raises(BrokerError):
        _core.BrokerProcess("")
