"""stripe-mock for as long as a block lasts, and the OpenAPI file that it answers by."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import urllib3

from tests.built import built
from tests.ports import free_ports

MODULE = Path(__file__).parent / "mock"
KEY = "sk_test_123"
STOP_TIMEOUT_S = 30
START_RETRIES = urllib3.Retry(total=20, backoff_factor=0.01, backoff_max=5)


@contextmanager
def running_mock() -> Iterator[str]:
    """Runs stripe-mock; gives its address."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    process = subprocess.Popen(
        [built("stripe-mock"), "-http-addr", address], stdout=subprocess.DEVNULL
    )
    try:
        with urllib3.PoolManager() as pool:
            pool.request("GET", f"http://{address}/", retries=START_RETRIES)
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(STOP_TIMEOUT_S)


def load_description() -> dict[str, Any]:
    """Returns Stripe's OpenAPI file from stripe-mock's module."""
    listed = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Dir}}", "github.com/stripe/stripe-mock"],
        cwd=MODULE,
        check=True,
        capture_output=True,
        text=True,
    )
    file = Path(listed.stdout.strip()) / "embedded" / "openapi" / "spec3.json"
    description: dict[str, Any] = json.loads(file.read_text())
    return description
