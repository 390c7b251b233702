"""What a load of small requests costs at least: a server that writes, syncs and answers, and does
nothing else (`least.c`), takes it. Where a broker is slower, the difference is its own.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace

from tests.bench import paced
from tests.bench.generators import Produced, run_light
from tests.bench.programs import Program
from tests.bench.sides import BROKER_CPU, work_folder
from tests.ports import free_ports


def play_load(shape: paced.Shape, rate: int, seconds: float) -> Produced:
    """Sends to such a server, which has the brokers' CPU, at a rate for so long."""
    (port,) = free_ports(1)
    records = round(rate * (seconds + paced.SKIP_S))
    load = paced.load_of(shape, f"127.0.0.1:{port}", records, rate)
    with tempfile.NamedTemporaryFile(dir=work_folder()) as file:
        server = Program("least", (port, file.name, load.topic), cpu=BROKER_CPU)
        try:
            server.wait_until_ready()
            return run_light(replace(load, settings={"partitions": shape.partitions}))
        finally:
            server.close()
