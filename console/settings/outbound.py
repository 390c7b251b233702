"""The settings of the worker that calls addresses of tenants: of all settings only what it needs.

It has neither the secret key nor a password of the database, so `Config` could not be read there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from brokers.settings.fields import setting, settings_of
from brokers.settings.reading import load_settings_file, parse_toml, read_settings
from brokers.settings.values import Reading
from console.settings.config import ENVIRONMENT, LOCAL, PRODUCTION
from console.settings.home import default_home
from console.settings.sections import Log, Metrics, Outbound, Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundConfig:
    """The part of `Config` that the worker reads, with the same names."""

    mode: str = setting(LOCAL, "As in `Config`.", choices=(LOCAL, PRODUCTION))
    queue: Queue
    outbound: Outbound
    log: Log
    metrics: Metrics

    @property
    def local(self) -> bool:
        """Whether one person runs the whole service on one machine."""
        return self.mode == LOCAL


def load_outbound_config(environ: Mapping[str, str] | None = None) -> OutboundConfig:
    """Reads the settings from the same file and environment as `load_config`.

    Raises `SettingsError`.
    """
    env = os.environ if environ is None else environ
    home = Path(env.get("FRESHET_HOME") or default_home(env)).expanduser().absolute()
    file = Path(env.get("FRESHET_SETTINGS") or home / "settings.toml")
    is_read = "FRESHET_SETTINGS" in env or file.exists()
    table = load_settings_file(file, parse_toml) if is_read else {}
    own = {name: table[name] for name in settings_of(OutboundConfig) if name in table}
    given = ENVIRONMENT.over(own, OutboundConfig, env)
    places = {"home": str(home)}
    config = read_settings(OutboundConfig, given, reading=Reading(places, as_text=True))
    # A secret that was written by an editor ends with the end of its line.
    return replace(config, queue=replace(config.queue, url=config.queue.url.strip()))
