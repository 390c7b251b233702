"""An S3-compatible server (`tests/s3_server`) for as long as a block lasts."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import boto3
import urllib3
from botocore.client import BaseClient
from botocore.config import Config

from tests.built import built
from tests.ports import free_ports

ACCESS_KEY = "freshet"
SECRET_KEY = "freshet-secret"
REGION = "us-east-1"
STOP_TIMEOUT_S = 30
# Doubling from 10 ms, to a minute in all.
START_RETRIES = urllib3.Retry(total=20, backoff_factor=0.01, backoff_max=5)


@dataclass(kw_only=True)
class S3Server:
    """A server with its folder and address. It can be ended and started again."""

    folder: Path
    port: int
    requests: int = 512
    host: str = "127.0.0.1"
    process: subprocess.Popen[bytes] | None = None
    names: Iterator[int] = field(default_factory=itertools.count)

    @property
    def endpoint(self) -> str:
        """Its URL."""
        return f"http://{self.host}:{self.port}"

    @property
    def key_file(self) -> Path:
        """An AWS shared-credentials file that opens every bucket."""
        return self.folder / "credentials"

    def start(self) -> None:
        """Starts it on its port and waits until it answers."""
        environment = {
            **os.environ,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        }
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        flags = [f"-listen={self.host}:{self.port}", f"-data={data}", f"-requests={self.requests}"]
        self.process = subprocess.Popen(
            [built("s3"), *flags], env=environment, stdout=subprocess.DEVNULL
        )
        with urllib3.PoolManager() as pool:
            answer = pool.request("GET", f"{self.endpoint}/healthz", retries=START_RETRIES)
        assert answer.status == 200, answer.data

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Ends it and waits for its end; what it keeps stays."""
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(STOP_TIMEOUT_S)

    def client(self) -> BaseClient:
        """A client, for many threads, that tries once: the test sees what the server says."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            config=Config(
                max_pool_connections=64,
                retries={"max_attempts": 0},
                s3={"addressing_style": "path"},
            ),
        )

    def make_bucket(self, name: str = "") -> str:
        """Makes a bucket, by default with a new name; returns its location without a prefix."""
        bucket = name or f"bucket-{next(self.names)}"
        self.client().create_bucket(Bucket=bucket)
        return self.location(bucket)

    def location(self, bucket: str, prefix: str = "") -> str:
        """The bucket, or what lies under a prefix of it, as settings name it."""
        path = f"{bucket}/{prefix}" if prefix else bucket
        query = f"endpoint={self.endpoint}&region={REGION}&key_file={self.key_file}"
        return f"s3://{path}?{query}"


@contextmanager
def running_s3(folder: Path, *, requests: int = 512, host: str = "127.0.0.1") -> Iterator[S3Server]:
    """A server that answers and keeps its buckets in the folder.

    Beyond `requests` at once it answers SlowDown.
    """
    server = S3Server(folder=folder, port=free_ports(1)[0], requests=requests, host=host)
    server.key_file.touch(mode=0o600)
    server.key_file.write_text(
        f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"
    )
    try:
        server.start()
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.stop()
