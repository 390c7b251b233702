"""All settings files answer alike: those that Python reads, and those that the engine reads."""

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from brokers.config import load_settings as load_broker_settings
from brokers.errors import ConfigError
from brokers.gateway import resolve_settings as resolve_gateway_settings
from brokers.settings.writing import sections_toml
from console.settings.config import load_config
from metering.agent.settings import load_settings as load_agent_settings
from provisioning.cell.keeper.settings import load_settings as load_keeper_settings

TABLE = tomllib.loads((Path(__file__).parent / "settings_cases.toml").read_text())
# Reads the settings file at a path with overrides; gives what has all settings.
Load = Callable[[Path, Sequence[str]], Any]


def load_console_settings(path: Path, overrides: Sequence[str]) -> object:
    """The console takes overrides from the environment."""
    environ = {"FRESHET_HOME": str(path.parent), "FRESHET_SETTINGS": str(path)}
    for override in overrides:
        name, _, value = override.partition("=")
        environ[f"FRESHET_{name.replace('.', '_')}".upper()] = value
    return load_config(environ)


LOADS: dict[str, Load] = {
    "broker": lambda path, given: tomllib.loads(load_broker_settings(path, given)),
    "gateway": lambda path, given: tomllib.loads(
        load_broker_settings(path, given, resolve_gateway_settings)
    ),
    "keeper": load_keeper_settings,
    "agent": load_agent_settings,
    "console": load_console_settings,
}


@dataclass
class Case:
    """A case of the table, for one system."""

    system: str
    about: dict[str, Any]
    case: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.system}: {self.case['what']}"

    @property
    def setting(self) -> str:
        """The name of the setting that the case is about."""
        return str(self.about[self.case["of"]])

    @property
    def text(self) -> str:
        """The settings file."""
        sections = tomllib.loads(self.about["base"])
        section, _, name = self.setting.partition(".")
        if self.case.get("lacks"):
            del sections[section][name]
        if "value" in self.case:
            value = self.case["value"].replace("<beyond>", self.about.get("beyond", ""))
            sections.setdefault(section, {})[name] = tomllib.loads(f"x = {value}")["x"]
        if "also" in self.case:
            section, _, name = self.placed(self.case["also"]).partition(".")
            sections.setdefault(section, {})[name] = 1
        before = self.case.get("before", "")
        if "flat" in self.case:
            sections.pop(section, None)
            before = f"{section} = 1"
        return "\n".join((before, sections_toml(sections), self.case.get("text", "")))

    @property
    def overrides(self) -> list[str]:
        """Overrides that are given beside the settings file."""
        if "raw" in self.case:
            return [self.placed(self.case["raw"])]
        return [f"{self.setting}={self.case['override']}"] if "override" in self.case else []

    def placed(self, text: str) -> str:
        """A text of the table, with the section of this system's setting."""
        return text.replace("<section>", self.setting.partition(".")[0])

    def value_in(self, settings: Any) -> object:
        """The setting's value."""
        for name in self.setting.split("."):
            settings = settings[name] if isinstance(settings, dict) else getattr(settings, name)
        return settings


CASES = [
    Case(system, about, case)
    for case in TABLE["cases"]
    for system, about in TABLE["systems"].items()
    if case["of"] in about and case.get("except") != system
]


def test_every_system_has_its_cases():
    assert set(TABLE["systems"]) == set(LOADS)
    said = {case["says"] for case in TABLE["cases"] if "says" in case}
    assert said == set(TABLE["says"])
    for system in LOADS:
        assert sum(system == case.system for case in CASES) >= len(TABLE["cases"]) - 4


@pytest.mark.parametrize("case", CASES, ids=str)
def test_systems_answer_alike(case, tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text(case.text)
    load = LOADS[case.system]
    if "gives" in case.case:
        assert case.value_in(load(path, case.overrides)) == case.case["gives"]
        return
    with pytest.raises(ConfigError) as raised:
        load(path, case.overrides)
    said = str(raised.value)
    assert re.search(TABLE["says"][case.case["says"]][case.about["written"]], said)
    if case.case["says"] != "syntax":
        name = case.placed(case.case.get("named", case.setting))
        assert re.search(rf"(^|[\s']){re.escape(name)}($|[\s':])", said), said
    if not case.overrides:
        assert said.startswith(f"{path}: ")
