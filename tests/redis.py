"""The embedded Redis, as `make up` runs it, for as long as a block lasts."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redis import Redis
from redis.backoff import ConstantBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry

from console.programs.supervisor.redis import SOCKET_NAME, server_command

STOP_TIMEOUT_S = 30
# Every 20 ms, for a minute.
ATTEMPTS = 3_000
PAUSE_S = 0.02


@contextmanager
def running_redis(url: str | None = None) -> Iterator[str]:
    """Starts a server and yields its URL as Celery writes it; with `url`, at that earlier place."""
    # A socket's name may have 108 bytes, and the path of a test's own folder is longer.
    with tempfile.TemporaryDirectory(prefix="redis-", ignore_cleanup_errors=True) as fresh:
        folder = Path(fresh) if url is None else Path(url.removeprefix("redis+socket://")).parent
        folder.mkdir(exist_ok=True)
        with _served(folder) as address:
            yield address
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    server = subprocess.Popen(server_command(folder), stdout=subprocess.DEVNULL)
    try:
        socket = folder / SOCKET_NAME
        retry = Retry(ConstantBackoff(PAUSE_S), ATTEMPTS, (RedisConnectionError,))
        with Redis(unix_socket_path=str(socket), retry=retry) as client:
            client.ping()
        yield f"redis+socket://{socket}"
    finally:
        server.terminate()
        server.wait(STOP_TIMEOUT_S)
