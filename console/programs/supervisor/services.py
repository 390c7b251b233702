"""The service's parts as child processes: what runs, with which words, after what.

Pure: settings in, specifications out.
"""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from console.programs.supervisor import postgres, redis
from console.programs.supervisor.child import Account, ChildSpec
from console.programs.supervisor.conditions import AnswersHttp, AnswersPing, Says
from console.programs.supervisor.leftovers import MARK
from console.settings.config import Config
from console.settings.schedule import NIGHTLY_QUEUE

ROOT = Path(__file__).resolve().parents[3]

POSTGRES, REDIS, MIGRATE = "postgres", "redis", "migrate"
KEEPER, GATEWAY, AGENT = "keeper", "gateway", "agent"
WEB, WORKER, NIGHTLY, BEAT = "web", "worker", "nightly", "beat"
# As they start; they stop in reverse. The migrations are no child that stays.
NAMES = (POSTGRES, REDIS, KEEPER, GATEWAY, AGENT, MIGRATE, WEB, WORKER, NIGHTLY, BEAT)

WORKER_PROCESSES = 2
POOL_MAX = "20"


def postgres_folder(config: Config) -> Path:
    """Where the embedded PostgreSQL keeps its data."""
    return config.home / "postgres"


def redis_folder(config: Config) -> Path:
    """Where the embedded Redis keeps its data."""
    return config.home / "redis"


def metrics_folder(config: Config, worker: str) -> Path:
    """Where the children of a worker leave their figures for their parent to add up."""
    return config.home / "metrics" / worker


def embeds_postgres(config: Config) -> bool:
    """Tells whether the settings name no other PostgreSQL than the embedded one."""
    return Path(config.database.host) == postgres_folder(config)


def embeds_redis(config: Config) -> bool:
    """Tells whether the settings name no other queue than the embedded one."""
    return config.queue.url == f"redis+socket://{redis_folder(config) / redis.SOCKET_NAME}"


def child_environment(config: Config, environ: Mapping[str, str], run: str) -> dict[str, str]:
    """What every child finds in its environment: ours, the home, the code, and the run's mark."""
    paths = [str(ROOT), *filter(None, environ.get("PYTHONPATH", "").split(":"))]
    return {
        **environ,
        "FRESHET_HOME": str(config.home),
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "PYTHONPATH": ":".join(dict.fromkeys(paths)),
        "PYTHONUNBUFFERED": "1",
        MARK: run,
    }


def specify(
    config: Config, environment: Mapping[str, str], account: Account | None
) -> list[ChildSpec]:
    """All children that stay, in the order in which they start."""
    specs = []
    if embeds_postgres(config):
        specs.append(_postgres(config, environment, account))
    if embeds_redis(config):
        specs.append(_redis(config, environment))
    stores = tuple(spec.name for spec in specs)
    return [
        *specs,
        _keeper(config, environment),
        _gateway(config, environment),
        _agent(config, environment),
        _web(config, environment),
        _worker(config, WORKER, environment, stores, "celery", WORKER_PROCESSES),
        # What takes minutes keeps no short task waiting.
        _worker(config, NIGHTLY, environment, stores, NIGHTLY_QUEUE, 1),
        _beat(config, environment, stores),
    ]


def migrate_command() -> tuple[str, ...]:
    """Brings the database to the code's shape, as its owner."""
    return (
        *(sys.executable, "-m", "django", "migrate", "--no-input", "--verbosity", "1"),
        *("--database", "owner"),
    )


def _celery(command: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "celery", "--app", "console.celery", "--quiet", command)


def _postgres(config: Config, environment: Mapping[str, str], account: Account | None) -> ChildSpec:
    data = postgres_folder(config)
    return ChildSpec(
        name=POSTGRES,
        command=postgres.command(data),
        ready=Says(re.compile("database system is ready to accept connections")),
        folder=data,
        # Nothing of ours: PostgreSQL reads variables of its own (PGDATA, LC_ALL, ...).
        environment={"PATH": environment.get("PATH", ""), "LC_ALL": "C.UTF-8"},
        # Ends transactions and writes a checkpoint; the default signal waits for every client.
        stop_signal=signal.SIGINT,
        stop_timeout_s=20.0,
        account=account,
        routine=re.compile(r"^LOG: "),
    )


def _redis(config: Config, environment: Mapping[str, str]) -> ChildSpec:
    folder = redis_folder(config)
    return ChildSpec(
        name=REDIS,
        command=redis.command(folder),
        ready=AnswersPing(folder / redis.SOCKET_NAME),
        folder=folder,
        environment=environment,
        # How it starts and stops, and advice to set the kernel up for forks of gigabytes.
        routine=re.compile(
            r"oO0OoO0|Redis version=|Configuration loaded|Server initialized|overcommit_memory"
            r"|SIGTERM scheduling|User requested shutdown|ready to exit"
        ),
    )


def _keeper(config: Config, environment: Mapping[str, str]) -> ChildSpec:
    return ChildSpec(
        name=KEEPER,
        command=(
            *(sys.executable, "-m", "provisioning.cell.keeper"),
            *("--config", str(keeper_file(config))),
        ),
        ready=Says(re.compile(r"^ready\b")),
        folder=ROOT,
        environment=environment,
        # It stops the cell's brokers, all at once, before it ends.
        stop_timeout_s=20.0,
        own_session=False,
    )


def _gateway(config: Config, environment: Mapping[str, str]) -> ChildSpec:
    return ChildSpec(
        name=GATEWAY,
        command=(
            *(sys.executable, "-m", "brokers", "gateway"),
            *("--config", str(gateway_file(config))),
        ),
        ready=Says(re.compile(r"^ready\b")),
        folder=ROOT,
        environment=environment,
    )


def _agent(config: Config, environment: Mapping[str, str]) -> ChildSpec:
    return ChildSpec(
        name=AGENT,
        command=(
            *(sys.executable, "-m", "metering.agent"),
            *("--config", str(agent_file(config))),
        ),
        ready=Says(re.compile(r"^ready\b")),
        folder=ROOT,
        environment=environment,
    )


def agent_file(config: Config) -> Path:
    """The metering agent's settings file, which each start writes."""
    return config.usage.agent_folder / "agent.toml"


def keeper_file(config: Config) -> Path:
    """The keeper's settings file, which each start writes."""
    return config.cell.keeper / "keeper.toml"


def gateway_file(config: Config) -> Path:
    """The gateway's settings file, which each start writes."""
    return config.gateway.folder / "gateway.toml"


def _web(config: Config, environment: Mapping[str, str]) -> ChildSpec:
    return ChildSpec(
        name=WEB,
        command=(
            *(sys.executable, "-m", "uvicorn", "console.asgi:application"),
            *("--host", config.web.bind, "--port", str(config.web.port), "--lifespan", "off"),
            *("--no-access-log", "--log-level", "warning", "--timeout-graceful-shutdown", "5"),
            # `web.behind_proxy` decides whether forwarded addresses are believed.
            "--no-proxy-headers",
        ),
        ready=AnswersHttp(config.web.port, "/healthz"),
        folder=ROOT,
        # Only here: workers fork, and the threads of a pool do not come along.
        environment={"FRESHET_DATABASE_POOL_MAX": POOL_MAX, **environment},
        after=(MIGRATE,),
    )


def _worker(
    config: Config,
    name: str,
    environment: Mapping[str, str],
    stores: tuple[str, ...],
    queue: str,
    processes: int,
) -> ChildSpec:
    return ChildSpec(
        name=name,
        command=(
            *_celery("worker"),
            *("--hostname", f"{name}@%h", "--queues", queue),
            *("--concurrency", str(processes), "--loglevel", "INFO"),
            # There is nobody to greet, and greeting takes a second.
            *("--without-mingle", "--without-gossip", "--without-heartbeat"),
        ),
        ready=Says(re.compile(r"@\S+ ready\.")),
        folder=ROOT,
        # Root or not: it takes JSON only, so nobody's message runs as code.
        environment={
            **environment,
            "PYTHONWARNINGS": "ignore:You're running the worker",
            # prometheus_client's name for where children leave their figures.
            "PROMETHEUS_MULTIPROC_DIR": str(metrics_folder(config, name)),
        },
        after=(MIGRATE, *stores),
        stop_timeout_s=15.0,
        routine=re.compile(r"Task \S+ (received|succeeded)|Warm shutdown|Connected to|^\s*$"),
    )


def _beat(config: Config, environment: Mapping[str, str], stores: tuple[str, ...]) -> ChildSpec:
    return ChildSpec(
        name=BEAT,
        command=(
            *_celery("beat"),
            *("--schedule", str(config.home / "beat" / "schedule"), "--pidfile="),
            *("--loglevel", "INFO"),
        ),
        ready=Says(re.compile(r"beat: Starting")),
        folder=ROOT,
        environment=environment,
        after=(MIGRATE, *stores),
        routine=re.compile(r"Sending due task"),
    )
