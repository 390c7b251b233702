"""The data folder: its folders, the secrets and settings files in it, and the ports of a start."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from brokers.locations import absolute, local_path
from brokers.secrets import create_cell_secret
from brokers.settings.writing import sections_toml
from console.programs.supervisor import services
from console.programs.supervisor.ports import Port
from console.settings.config import Config
from console.settings.home import read_or_make_secret

Sections = Mapping[str, Mapping[str, str | int | bool]]

# How long the keeper waits for its brokers to stop. `services._keeper_spec` gives the keeper
# longer.
KEEPER_STOP_MS = 15_000


def make_home(config: Config) -> None:
    """Makes the data folder, which only its owner can read, and the folder of the logs."""
    config.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    # An existing folder may be open to others. The search bit may stay: see `postgres.open_way`.
    config.home.chmod(stat.S_IMODE(config.home.stat().st_mode) & (stat.S_IRWXU | stat.S_IXOTH))
    (config.home / "log").mkdir(mode=0o700, exist_ok=True)


def make_folders(config: Config) -> None:
    """Makes the folders that the parts expect to exist. PostgreSQL makes its own."""
    folders = [config.home / "beat", config.cell.dfs, config.cell.secret.parent]
    folders += [config.cell.keeper, config.gateway.folder]
    folders += [config.usage.progress, config.usage.agent_folder]
    objects = (config.cell.bucket, config.usage.location)
    folders += [path for location in objects if (path := local_path(location)) is not None]
    metadata = local_path(config.cell.metadata)
    if metadata is not None:
        folders.append(metadata.parent)
    if config.mail.backend == "folder":
        folders.append(config.mail.folder)
    if services.embeds_redis(config):
        folders.append(services.redis_folder(config))
    for worker in (services.WORKER, services.NIGHTLY):
        # Figures that the children of an earlier run left must not be added to those of this run.
        shutil.rmtree(services.metrics_folder(config, worker), ignore_errors=True)
        folders.append(services.metrics_folder(config, worker))
    for folder in folders:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def make_secrets(config: Config) -> None:
    """Makes Django's secret key and the cell's secret, mode 0600, where they do not exist."""
    if not config.secret_key:
        read_or_make_secret(config.secret_key_file)
    create_cell_secret(config.cell.secret)


def listening_ports(config: Config) -> list[Port]:
    """Returns the ports that a start listens on, and first the one that the first cluster gets."""
    kafka = Port(config.gateway.kafka_port, "Kafka", "FRESHET_KAFKA_PORT")
    return [kafka, *own_ports(config)]


def own_ports(config: Config) -> list[Port]:
    """Returns the ports that a start listens on, but for those of clusters."""
    listeners = [
        Port(config.web.port, "the console and REST", "FRESHET_HTTP_PORT"),
        Port(config.gateway.tls_port, "Kafka over TLS", "FRESHET_TLS_PORT"),
    ]
    if services.embeds_stripe(config):
        number = services.stripe_port(config)
        listeners.append(Port(number, "the fake of Stripe", "FRESHET_BILLING_STRIPE_API_BASE"))
    return listeners


def write_settings(config: Config) -> None:
    """Writes the settings files of keeper, gateway and agent, which read no other settings."""
    _write_toml(services.keeper_file(config), keeper_settings(config))
    _write_toml(services.gateway_file(config), gateway_settings(config))
    _write_toml(services.agent_file(config), agent_settings(config))


def keeper_settings(config: Config) -> Sections:
    """Returns the keeper's settings by section (see `provisioning.cell.keeper.settings`)."""
    return {
        "cell": {
            "metadata": absolute(config.cell.metadata),
            "dfs": str(config.cell.dfs),
            "bucket": absolute(config.cell.bucket),
            "secret": str(config.cell.secret),
        },
        "keeper": {
            "folder": str(config.cell.keeper),
            "metrics": config.metrics.keeper,
            # Another keeper of this home can only be one that is stopping: this one waits for it.
            "standby": True,
            "stop_brokers_on_exit": True,
            "stop_timeout_ms": KEEPER_STOP_MS,
        },
    }


def gateway_settings(config: Config) -> Sections:
    """Returns the gateway's settings by section (see `docs/reference/gateway-settings.md`)."""
    return {
        "cell": {
            "metadata": absolute(config.cell.metadata),
            "secret": str(config.cell.secret),
        },
        "listener": {
            "tls": f"127.0.0.1:{config.gateway.tls_port}",
            "domain": config.gateway.domain,
            "metrics": config.metrics.gateway,
        },
        "tls": {"folder": str(config.gateway.folder)},
    }


def agent_settings(config: Config) -> Sections:
    """Returns the metering agent's settings by section (see `metering.agent.settings`)."""
    return {
        "cell": {
            "id": config.cell.id,
            "metadata": absolute(config.cell.metadata),
            "dfs": str(config.cell.dfs),
            "bucket": absolute(config.cell.bucket),
        },
        "usage": {
            "location": absolute(config.usage.location),
            "progress": str(config.usage.progress),
        },
        "agent": {
            "metrics": config.metrics.agent,
            "period_ms": config.usage.agent_period_s * 1000,
            "window_minutes": config.usage.window_minutes,
        },
    }


def _write_toml(file: Path, sections: Sections) -> None:
    origin = "# Written at each start from settings.toml and the environment.\n\n"
    temporary = file.with_suffix(".tmp")
    temporary.write_text(origin + sections_toml(sections), encoding="utf-8")
    temporary.replace(file)
