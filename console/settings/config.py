"""Every setting of the service, typed, from one TOML file and the environment.

No Django here: the supervisor, the keeper's launcher and Django's settings read the same `Config`.
The order is: the environment, then the file, then the default. The setting `name` of the section
`[section]` is `FRESHET_SECTION_NAME` in the environment; `SHORTHANDS` lists the shorter names.
`{home}` in a value stands for the data folder, `{port}` for the web server's port.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from brokers.settings.errors import SettingsError
from brokers.settings.fields import setting
from brokers.settings.reading import Environment, load_settings_file, parse_toml, read_settings
from brokers.settings.values import Reading
from console.settings.collectors import check_collector, missing_of_collector
from console.settings.home import default_home
from console.settings.sections import (
    Billing,
    Cell,
    Console,
    Database,
    Gateway,
    Limits,
    Log,
    Mail,
    Metrics,
    Outbound,
    Queue,
    Usage,
    Web,
)
from console.settings.sellers import check_billing

LOCAL = "local"
PRODUCTION = "production"

# Shorter names in the environment for what a person on a laptop changes.
SHORTHANDS = {
    "FRESHET_HTTP_PORT": ("web", "port"),
    "FRESHET_KAFKA_PORT": ("gateway", "kafka_port"),
    "FRESHET_TLS_PORT": ("gateway", "tls_port"),
}
ENVIRONMENT = Environment("FRESHET", SHORTHANDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings. `home` is the data folder."""

    home: Path
    mode: str = setting(
        LOCAL,
        "`local`: one person, one machine. `production` refuses to start until everything is set "
        "that a service for other people needs.",
        choices=(LOCAL, PRODUCTION),
    )
    secret_key: str = setting(
        "",
        "Signs sessions and links, seals second factors. 50 characters or more in production.",
        secret=True,
    )
    web: Web
    database: Database
    queue: Queue
    outbound: Outbound
    mail: Mail
    cell: Cell
    usage: Usage
    billing: Billing
    gateway: Gateway
    log: Log
    metrics: Metrics
    console: Console
    limits: Limits

    @property
    def local(self) -> bool:
        """Whether one person runs the whole service on one machine, on embedded servers."""
        return self.mode == LOCAL

    @property
    def own_ports(self) -> frozenset[int]:
        """Ports of this machine on which the service itself listens, besides those of clusters."""
        fake = urlsplit(self.billing.stripe_api_base)
        fakes = {fake.port} if fake.port is not None and fake.hostname == "127.0.0.1" else set()
        return frozenset({self.web.port, self.gateway.tls_port} | fakes)

    @property
    def secret_key_file(self) -> Path:
        """The file with the secret key that local mode makes at its first start."""
        return self.home / "secret_key"


def load_config(environ: Mapping[str, str] | None = None) -> Config:
    """Reads the settings from the file and the environment; writes nothing.

    Raises `SettingsError`, whose message names the file or the variable with the wrong setting.
    """
    env = os.environ if environ is None else environ
    home = Path(env.get("FRESHET_HOME") or default_home(env)).expanduser().absolute()
    file = Path(env.get("FRESHET_SETTINGS") or home / "settings.toml")
    is_read = "FRESHET_SETTINGS" in env or file.exists()
    table = load_settings_file(file, parse_toml) if is_read else {}
    try:
        return build_config(home, table, env)
    except SettingsError as error:
        source = ENVIRONMENT.source(error.setting, env) or (file if is_read else None)
        if source is None:
            raise
        message = f"{source}: {error}"
        raise SettingsError(message, error.setting) from error


def build_config(home: Path, table: Mapping[str, Any], environ: Mapping[str, str]) -> Config:
    """Merges a parsed settings file with the environment and checks the result.

    Raises `SettingsError`.
    """
    given = ENVIRONMENT.over(table, Config, environ)
    places = {"home": str(home)}
    first = read_settings(Config, given, reading=Reading(places, as_text=True), home=home)
    # Other settings may contain `{port}`, so they are read again once the port is known.
    places["port"] = str(first.web.port)
    config = read_settings(Config, given, reading=Reading(places, as_text=True), home=home)
    check_billing(config.billing)
    check_collector(config.billing)
    if config.local:
        _check_local(config)
    else:
        _check_production(config)
    return config


def _check_local(config: Config) -> None:
    """Raises `SettingsError` where other machines could reach a service in local mode.

    Whoever reaches it may sign up, and gets by without what a service for other people needs.
    """
    if not _is_loopback(config.web.bind):
        message = (
            f"web.bind is {config.web.bind!r}, want an address of the loopback: in local mode"
            " nothing else may reach the service"
        )
        raise SettingsError(message, "web.bind")


def _is_loopback(host: str) -> bool:
    """Returns whether a host's name or address is the machine itself, and no other can use it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_production(config: Config) -> None:
    """Raises `SettingsError` with all that a service for other people must set and has not.

    Local mode has a default for all of it.
    """
    public = urlsplit(config.web.public_url)
    missing = {
        "secret_key must have 50 characters or more": len(config.secret_key) < 50,
        "web.public_url must be an https address": public.scheme != "https",
        "web.allowed_hosts must name the hosts served": not config.web.allowed_hosts,
        "mail.backend must be smtp": config.mail.backend != "smtp",
        "mail.host must name the SMTP server": not config.mail.host,
        "database.app_password must be set": not config.database.app_password,
        "billing.seller_address must be set": not config.billing.seller_address,
        "billing.seller_country must be set": not config.billing.seller_country,
        **missing_of_collector(config.billing),
    }
    problems = [text for text, wrong in missing.items() if wrong]
    if problems:
        raise SettingsError("; ".join(problems))
