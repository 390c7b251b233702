"""Every setting of the service, typed, from one TOML file and the environment.

No Django here: the supervisor, the keeper's launcher and Django's settings read the same `Config`.
The order is: the environment, then the file, then the default. The setting `name` of the section
`[section]` is `FRESHET_SECTION_NAME` in the environment; `SHORTHANDS` lists the shorter names.
`{home}` in a value stands for the data folder, `{port}` for the web server's port.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints
from urllib.parse import urlsplit

from brokers.metadata_records import BROKERS_PER_CLUSTER_MAX
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
    Queue,
    Usage,
    Web,
)

LOCAL = "local"
PRODUCTION = "production"
LOG_FORMATS = ("text", "json")
LOG_LEVELS = ("debug", "info", "warning", "error")

# Shorter names in the environment for what a person on a laptop changes.
SHORTHANDS = {
    "FRESHET_HTTP_PORT": ("web", "port"),
    "FRESHET_KAFKA_PORT": ("gateway", "kafka_port"),
    "FRESHET_TLS_PORT": ("gateway", "tls_port"),
}
SECTIONS: dict[str, type] = {
    "web": Web,
    "database": Database,
    "queue": Queue,
    "mail": Mail,
    "cell": Cell,
    "usage": Usage,
    "billing": Billing,
    "gateway": Gateway,
    "log": Log,
    "metrics": Metrics,
    "console": Console,
    "limits": Limits,
}

Section = TypeVar("Section")


class ConfigError(Exception):
    """A setting is unknown, of the wrong type, or missing. The text names it."""


@dataclass(frozen=True, slots=True)
class Config:
    """All settings. `home` is the data folder; `mode` is `local` or `production`."""

    home: Path
    mode: str
    secret_key: str
    web: Web
    database: Database
    queue: Queue
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
        """Tells whether one person runs all of it on one machine, on embedded stand-ins."""
        return self.mode == LOCAL

    @property
    def secret_key_file(self) -> Path:
        """Where local mode keeps the key that it made at its first start."""
        return self.home / "secret_key"


def load_config(environ: Mapping[str, str] | None = None) -> Config:
    """Reads file and environment. Raises `ConfigError`; writes nothing."""
    env = os.environ if environ is None else environ
    home = Path(env.get("FRESHET_HOME") or default_home(env)).expanduser().absolute()
    file = Path(env.get("FRESHET_SETTINGS") or home / "settings.toml")
    return build_config(home, _read_file(file, required="FRESHET_SETTINGS" in env), env)


def build_config(home: Path, table: Mapping[str, Any], environ: Mapping[str, str]) -> Config:
    """Puts a parsed settings file and the environment together and checks the result."""
    unknown = sorted(set(table) - set(SECTIONS) - {"mode", "secret_key"})
    if unknown:
        message = f"unknown setting {unknown[0]!r}"
        raise ConfigError(message)
    mode = environ.get("FRESHET_MODE") or table.get("mode", LOCAL)
    if mode not in {LOCAL, PRODUCTION}:
        message = f"mode is {mode!r}; it is {LOCAL!r} or {PRODUCTION!r}"
        raise ConfigError(message)
    given = {name: _given(name, table.get(name, {}), environ) for name in SECTIONS}
    web = _section(Web, given["web"], "web", {"home": str(home)})
    places = {"home": str(home), "port": str(web.port)}
    config = Config(
        home=home,
        mode=mode,
        secret_key=environ.get("FRESHET_SECRET_KEY") or str(table.get("secret_key", "")),
        web=_section(Web, given["web"], "web", places),
        database=_section(Database, given["database"], "database", places),
        queue=_section(Queue, given["queue"], "queue", places),
        mail=_section(Mail, given["mail"], "mail", places),
        cell=_section(Cell, given["cell"], "cell", places),
        usage=_section(Usage, given["usage"], "usage", places),
        billing=_section(Billing, given["billing"], "billing", places),
        gateway=_section(Gateway, given["gateway"], "gateway", places),
        log=_section(Log, given["log"], "log", places),
        metrics=_section(Metrics, given["metrics"], "metrics", places),
        console=_section(Console, given["console"], "console", places),
        limits=_section(Limits, given["limits"], "limits", places),
    )
    problems = _problems(config)
    if problems:
        raise ConfigError("; ".join(problems))
    return config


def _read_file(file: Path, *, required: bool) -> dict[str, Any]:
    if not required and not file.exists():
        return {}
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"{file}: {error}"
        raise ConfigError(message) from error


def _given(section: str, table: object, environ: Mapping[str, str]) -> dict[str, object]:
    """What file and environment say about a section, the environment winning."""
    if not isinstance(table, Mapping):
        message = f"{section} is a section"
        raise ConfigError(message)
    names = {field.name for field in dataclasses.fields(SECTIONS[section])}
    unknown = sorted(set(table) - names)
    if unknown:
        message = f"unknown setting {section}.{unknown[0]}"
        raise ConfigError(message)
    given = dict(table)
    for name in names:
        value = environ.get(f"FRESHET_{section}_{name}".upper())
        if value is not None:
            given[name] = value
    for variable, (owner, name) in SHORTHANDS.items():
        if owner == section and environ.get(variable):
            given[name] = environ[variable]
    return given


def _section(
    kind: type[Section], given: Mapping[str, object], name: str, places: Mapping[str, str]
) -> Section:
    types = get_type_hints(kind)
    values = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        value = given.get(field.name, field.default)
        values[field.name] = _typed(value, types[field.name], f"{name}.{field.name}", places)
    return kind(**values)


def _typed(value: object, kind: object, name: str, places: Mapping[str, str]) -> object:
    """A value from TOML, from the environment (always text) or from a default, as its type."""
    if isinstance(value, Path):  # a default
        value = str(value)
    if isinstance(value, str):
        for place, text in places.items():
            value = value.replace(f"{{{place}}}", text)
    convert = {
        str: _text,
        int: _integer,
        bool: _boolean,
        Path: _path,
        tuple[str, ...]: _texts,
    }[kind]  # type: ignore[index]
    try:
        return convert(value)
    except (TypeError, ValueError) as error:
        message = f"{name}: {error}"
        raise ConfigError(message) from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        message = f"a text is expected, not {value!r}"
        raise TypeError(message)
    return value


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        message = f"a whole number is expected, not {value!r}"
        raise TypeError(message)
    return int(value)


def _boolean(value: object) -> bool:
    known: dict[object, bool] = {True: True, False: False, "true": True, "false": False}
    if not isinstance(value, bool | str) or value not in known:
        message = f"true or false is expected, not {value!r}"
        raise ValueError(message)
    return known[value]


def _path(value: object) -> Path:
    return Path(_text(str(value))).expanduser()


def _texts(value: object) -> tuple[str, ...]:
    """A list of texts; in the environment separated by commas."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if not isinstance(value, list | tuple):
        message = f"a list of texts is expected, not {value!r}"
        raise TypeError(message)
    return tuple(_text(part) for part in value)


def _problems(config: Config) -> list[str]:
    """What a service that others reach must have said. Local mode has a default for all of it."""
    problems = _log_problems(config.log) + _limit_problems(config.limits)
    if config.local:
        return problems
    public = urlsplit(config.web.public_url)
    missing = {
        "secret_key must have 50 characters or more": len(config.secret_key) < 50,
        "web.public_url must be an https address": public.scheme != "https",
        "web.allowed_hosts must name the hosts served": not config.web.allowed_hosts,
        "mail.backend must be smtp": config.mail.backend != "smtp",
        "mail.host must name the SMTP server": not config.mail.host,
        "database.app_password must be set": not config.database.app_password,
    }
    return problems + [text for text, wrong in missing.items() if wrong]


def _limit_problems(limits: Limits) -> list[str]:
    most = BROKERS_PER_CLUSTER_MAX
    if limits.brokers <= most:
        return []
    return [
        f"limits.brokers is {limits.brokers}; several brokers per cluster are not supported yet, "
        f"so it is {most}"
    ]


def _log_problems(log: Log) -> list[str]:
    given = {"format": (log.format, LOG_FORMATS), "level": (log.level, LOG_LEVELS)}
    return [
        f"log.{name} is {value!r}; it is one of {', '.join(known)}"
        for name, (value, known) in given.items()
        if value not in known
    ]
