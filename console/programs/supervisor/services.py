"""The service's parts as child processes: with which command and after which others each starts.

Pure: settings in, specifications out.
"""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from console.programs.stripe_fake import keys
from console.programs.supervisor import postgres, redis
from console.programs.supervisor.child import Account, ChildSpec
from console.programs.supervisor.conditions import AnswersHttp, AnswersPing, Says
from console.programs.supervisor.leftovers import MARK
from console.settings.config import Config
from console.settings.schedule import NIGHTLY_QUEUE, OUTBOUND_QUEUE

ROOT = Path(__file__).resolve().parents[3]

POSTGRES, REDIS, MIGRATE = "postgres", "redis", "migrate"
KEEPER, GATEWAY, AGENT = "keeper", "gateway", "agent"
WEB, WORKER, NIGHTLY, BEAT = "web", "worker", "nightly", "beat"
OUTBOUND, STRIPE = "outbound", "stripe"
# In the order of their start; they stop in reverse. The migrations end by themselves.
NAMES = (
    POSTGRES, REDIS, KEEPER, GATEWAY, AGENT, STRIPE, MIGRATE, WEB, WORKER, NIGHTLY, OUTBOUND, BEAT,
)  # fmt: skip

WORKER_PROCESSES = 2
POOL_MAX = "20"
# On a busy machine brokers and gateway, whose clients wait, run before the control plane.
BEHIND_BROKERS = 5


def postgres_folder(config: Config) -> Path:
    """Returns the folder in which the embedded PostgreSQL keeps its data."""
    return config.home / "postgres"


def redis_folder(config: Config) -> Path:
    """Returns the folder in which the embedded Redis keeps its data."""
    return config.home / "redis"


def metrics_folder(config: Config, worker: str) -> Path:
    """Returns the folder in which a worker's processes write their metrics for it to add up."""
    return config.home / "metrics" / worker


def embeds_postgres(config: Config) -> bool:
    """Returns whether the settings name the embedded PostgreSQL and no other one."""
    return Path(config.database.host) == postgres_folder(config)


def embeds_redis(config: Config) -> bool:
    """Returns whether the settings name the embedded Redis and no other queue."""
    return config.queue.url == f"redis+socket://{redis_folder(config) / redis.SOCKET_NAME}"


def stripe_address(config: Config) -> str:
    """Returns the address at which the fake of Stripe listens, if this start has one."""
    return config.billing.stripe_api_base or f"http://127.0.0.1:{keys.PORT}"


def stripe_port(config: Config) -> int:
    """Returns the port of `stripe_address`."""
    return urlsplit(stripe_address(config)).port or keys.PORT


def embeds_stripe(config: Config) -> bool:
    """Returns whether invoices are collected by the fake of Stripe, as no key of Stripe is set."""
    billing = config.billing
    address = urlsplit(stripe_address(config))
    here = address.scheme == "http" and address.hostname == "127.0.0.1"
    return config.local and billing.collector == "stripe" and not billing.stripe_api_key and here


def child_environment(config: Config, environ: Mapping[str, str], run: str) -> dict[str, str]:
    """Returns the environment of every child: `environ`, the home, the code and the run's mark.

    With the fake of Stripe it also has the settings that name the fake.
    """
    paths = [str(ROOT), *filter(None, environ.get("PYTHONPATH", "").split(":"))]
    return {
        **environ,
        **(_stripe_settings(config) if embeds_stripe(config) else {}),
        "FRESHET_HOME": str(config.home),
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "PYTHONPATH": ":".join(dict.fromkeys(paths)),
        "PYTHONUNBUFFERED": "1",
        MARK: run,
    }


def _stripe_settings(config: Config) -> dict[str, str]:
    return {
        "FRESHET_BILLING_STRIPE_API_BASE": stripe_address(config),
        "FRESHET_BILLING_STRIPE_API_KEY": keys.SECRET_KEY,
        "FRESHET_BILLING_STRIPE_WEBHOOK_SECRET": keys.WEBHOOK_SECRET,
    }


def specify_children(
    config: Config, environment: Mapping[str, str], account: Account | None
) -> list[ChildSpec]:
    """Returns all children that stay, in the order in which they start."""
    specs = []
    if embeds_postgres(config):
        specs.append(_postgres_spec(config, environment, account))
    if embeds_redis(config):
        specs.append(_redis_spec(config, environment))
    stores = tuple(spec.name for spec in specs)
    return [
        *specs,
        _keeper_spec(config, environment),
        _gateway_spec(config, environment),
        _agent_spec(config, environment),
        *([_stripe_spec(config, environment)] if embeds_stripe(config) else []),
        _web_spec(config, environment),
        _worker_spec(config, WORKER, environment, stores, "celery", WORKER_PROCESSES),
        # Tasks that take minutes have a worker of their own, so that no short task waits for them.
        _worker_spec(config, NIGHTLY, environment, stores, NIGHTLY_QUEUE, 1),
        _outbound_spec(environment, tuple(name for name in stores if name == REDIS)),
        _beat_spec(config, environment, stores),
    ]


def migrate_command() -> tuple[str, ...]:
    """Returns the command that migrates the database, as its owner."""
    return (
        *(sys.executable, "-m", "django", "migrate", "--no-input", "--verbosity", "1"),
        *("--database", "owner"),
    )


def _celery_command(command: str, app: str = "console.celery") -> tuple[str, ...]:
    return (sys.executable, "-m", "celery", "--app", app, "--quiet", command)


def _postgres_spec(
    config: Config, environment: Mapping[str, str], account: Account | None
) -> ChildSpec:
    data = postgres_folder(config)
    return ChildSpec(
        name=POSTGRES,
        command=postgres.server_command(data),
        ready=Says(re.compile("database system is ready to accept connections")),
        folder=data,
        # No further variables, as PostgreSQL reads some of its own (PGDATA, LC_ALL, ...).
        environment={"PATH": environment.get("PATH", ""), "LC_ALL": "C.UTF-8"},
        # SIGINT ends transactions and writes a checkpoint; SIGTERM would wait for every client.
        stop_signal=signal.SIGINT,
        stop_timeout_s=20.0,
        account=account,
        routine=re.compile(r"^LOG: "),
    )


def _redis_spec(config: Config, environment: Mapping[str, str]) -> ChildSpec:
    folder = redis_folder(config)
    return ChildSpec(
        name=REDIS,
        command=redis.server_command(folder),
        ready=AnswersPing(folder / redis.SOCKET_NAME),
        folder=folder,
        environment=environment,
        # Lines on its start and stop, and advice on kernel settings for forks of gigabytes.
        routine=re.compile(
            r"oO0OoO0|Redis version=|Configuration loaded|Server initialized|overcommit_memory"
            r"|SIGTERM scheduling|User requested shutdown|ready to exit"
        ),
    )


def _keeper_spec(config: Config, environment: Mapping[str, str]) -> ChildSpec:
    return ChildSpec(
        name=KEEPER,
        command=(
            *(sys.executable, "-m", "provisioning.cell.keeper"),
            *("--config", str(keeper_file(config))),
        ),
        ready=Says(re.compile(r"^ready\b")),
        folder=ROOT,
        environment=environment,
        # Before it ends it stops all brokers of the cell (see `home.KEEPER_STOP_MS`).
        stop_timeout_s=20.0,
        own_session=False,
    )


def _gateway_spec(config: Config, environment: Mapping[str, str]) -> ChildSpec:
    arguments = ("brokers", "gateway", "--config", str(gateway_file(config)))
    return _program_spec(GATEWAY, arguments, environment)


def _agent_spec(config: Config, environment: Mapping[str, str]) -> ChildSpec:
    arguments = ("metering.agent", "--config", str(agent_file(config)))
    return _program_spec(AGENT, arguments, environment)


def _stripe_spec(config: Config, environment: Mapping[str, str]) -> ChildSpec:
    arguments = (
        "console.programs.stripe_fake",
        *("--port", str(stripe_port(config)), "--state", str(stripe_state(config))),
        *("--webhook", f"http://127.0.0.1:{config.web.port}{keys.WEBHOOK_PATH}"),
    )
    return _program_spec(STRIPE, arguments, environment)


def _program_spec(name: str, arguments: Sequence[str], environment: Mapping[str, str]) -> ChildSpec:
    """A program of this project, by its module and arguments, that says when it is ready."""
    return ChildSpec(
        name=name,
        command=(sys.executable, "-m", *arguments),
        ready=Says(re.compile(r"^ready\b")),
        folder=ROOT,
        environment=environment,
    )


def stripe_state(config: Config) -> Path:
    """Returns the file in which the fake of Stripe keeps its state."""
    return config.home / "stripe" / "state.sqlite"


def agent_file(config: Config) -> Path:
    """Returns the metering agent's settings file, which each start writes."""
    return config.usage.agent_folder / "agent.toml"


def keeper_file(config: Config) -> Path:
    """Returns the keeper's settings file, which each start writes."""
    return config.cell.keeper / "keeper.toml"


def gateway_file(config: Config) -> Path:
    """Returns the gateway's settings file, which each start writes."""
    return config.gateway.folder / "gateway.toml"


def _web_spec(config: Config, environment: Mapping[str, str]) -> ChildSpec:
    return ChildSpec(
        name=WEB,
        command=(
            *(sys.executable, "-m", "console.programs.web"),
            *("--host", config.web.bind, "--port", str(config.web.port)),
        ),
        ready=AnswersHttp(config.web.port, "/healthz"),
        folder=ROOT,
        # Only web has a pool: workers fork, and the threads of a pool do not survive a fork.
        environment={"FRESHET_DATABASE_POOL_MAX": POOL_MAX, **environment},
        after=(MIGRATE,),
        niceness=BEHIND_BROKERS,
    )


def _worker_spec(
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
            *_celery_command("worker"),
            *("--hostname", f"{name}@%h", "--queues", queue),
            *("--concurrency", str(processes), "--loglevel", "INFO"),
            # These look for other workers, which takes a second, and there are none.
            *("--without-mingle", "--without-gossip", "--without-heartbeat"),
        ),
        ready=Says(re.compile(r"@\S+ ready\.")),
        folder=ROOT,
        # Celery warns of running as root. It accepts only JSON, so no message can run as code.
        environment={
            **environment,
            "PYTHONWARNINGS": "ignore:You're running the worker",
            # The variable of prometheus_client for the folder of the processes' metrics.
            "PROMETHEUS_MULTIPROC_DIR": str(metrics_folder(config, name)),
        },
        after=(MIGRATE, *stores),
        stop_timeout_s=15.0,
        niceness=BEHIND_BROKERS,
        routine=re.compile(r"Task \S+ (received|succeeded)|Warm shutdown|Connected to|^\s*$"),
    )


def _outbound_spec(environment: Mapping[str, str], stores: tuple[str, ...]) -> ChildSpec:
    """The worker of calls to addresses of organizations, which needs the queue and no database."""
    return ChildSpec(
        name=OUTBOUND,
        command=(
            *_celery_command("worker", "console.programs.outbound.worker"),
            *("--hostname", f"{OUTBOUND}@%h", "--queues", OUTBOUND_QUEUE, "--loglevel", "INFO"),
            *("--without-mingle", "--without-gossip", "--without-heartbeat"),
        ),
        ready=Says(re.compile(r"@\S+ ready\.")),
        folder=ROOT,
        environment={**environment, "PYTHONWARNINGS": "ignore:You're running the worker"},
        after=stores,
        niceness=BEHIND_BROKERS,
        routine=re.compile(r"Task \S+ (received|succeeded)|Warm shutdown|Connected to|^\s*$"),
    )


def _beat_spec(
    config: Config, environment: Mapping[str, str], stores: tuple[str, ...]
) -> ChildSpec:
    return ChildSpec(
        name=BEAT,
        command=(
            *_celery_command("beat"),
            *("--schedule", str(config.home / "beat" / "schedule"), "--pidfile="),
            *("--loglevel", "INFO"),
        ),
        ready=Says(re.compile(r"beat: Starting")),
        folder=ROOT,
        environment=environment,
        after=(MIGRATE, *stores),
        niceness=BEHIND_BROKERS,
        routine=re.compile(r"Sending due task"),
    )
