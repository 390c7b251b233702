"""The data folder: its folders, the secrets made in it, the ports that it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from brokers.secrets import create_cell_secret
from console.settings.config import Config
from console.settings.home import read_or_make_secret
from console.supervisor import services
from console.supervisor.errors import StartError
from console.supervisor.ports import Port


def make_home(config: Config) -> None:
    """Makes the data folder, for nobody else to look into, and the folder of the logs."""
    config.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (config.home / "log").mkdir(mode=0o700, exist_ok=True)


def make_folders(config: Config) -> None:
    """Makes what the parts expect to be there. PostgreSQL makes its own."""
    folders = [config.home / "beat", config.cell.dfs, config.cell.secret.parent]
    folders += [config.cell.keeper, config.gateway.folder]
    folders += [Path(store.partition("://")[2]) for store in _local_stores(config)]
    if config.mail.backend == "folder":
        folders.append(config.mail.folder)
    if services.embeds_redis(config):
        folders.append(services.redis_folder(config))
    for folder in folders:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _local_stores(config: Config) -> Iterator[str]:
    if config.cell.bucket.startswith("file://"):
        yield config.cell.bucket
    if config.cell.metadata.startswith("sqlite://"):
        yield str(Path(config.cell.metadata.partition("://")[2]).parent)


def make_secrets(config: Config) -> None:
    """Makes Django's key and the cell's secret, mode 0600, each unless it is there."""
    if not config.secret_key:
        read_or_make_secret(config.secret_key_file)
    create_cell_secret(config.cell.secret)


def ports(config: Config) -> list[Port]:
    """What a start listens on. Of the range of Kafka ports the first, which the first cluster gets.

    Raises StartError when the settings themselves are at odds.
    """
    kafka = range(config.gateway.kafka_port, config.gateway.kafka_port + config.gateway.kafka_ports)
    listeners = [
        Port(config.web.port, "the console and REST", "FRESHET_HTTP_PORT"),
        Port(config.gateway.tls_port, "Kafka over TLS", "FRESHET_TLS_PORT"),
    ]
    for port in listeners:
        if port.number in kafka:
            raise StartError(
                f"Port {port.number} ({port.purpose}) lies in the range of Kafka ports,"
                f" {kafka.start}–{kafka.stop - 1}: set {port.setting} or FRESHET_KAFKA_PORT."
            )
    return [*listeners, Port(kafka.start, "Kafka", "FRESHET_KAFKA_PORT")]


def write_gateway_settings(config: Config) -> None:
    """Writes the gateway's settings file from ours."""
    lines = []
    for section, settings in gateway_settings(config).items():
        lines.append(f"[{section}]")
        lines += [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    file = services.gateway_file(config)
    temporary = file.with_suffix(".tmp")
    temporary.write_text("\n".join(lines) + "\n")
    temporary.replace(file)


def gateway_settings(config: Config) -> dict[str, dict[str, str | int]]:
    """The gateway's settings by section."""
    return {
        "storage": {"metadata": config.cell.metadata.removeprefix("sqlite://")},
        "gateway": {
            "folder": str(config.gateway.folder),
            "secret": str(config.cell.secret),
            "tls": f"127.0.0.1:{config.gateway.tls_port}",
            "domain": config.gateway.domain,
        },
    }
