"""The fake as a program: what `make up` starts, killed and started again."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from console.programs.stripe_fake.keys import SECRET_KEY
from tests.ports import free_block
from tests.stripe.calls import client_of
from tests.stripe.receiver import receiving

ROOT = Path(__file__).resolve().parents[2]


class Program:
    """`python -m console.programs.stripe_fake` on a port and a file of its own."""

    def __init__(self, *arguments):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "console.programs.stripe_fake", *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self._output = self._process.stdout
        line = self._output.readline()
        assert line.startswith("ready on "), line
        self.base = line.removeprefix("ready on ").strip()

    def end(self, number=signal.SIGTERM):
        self._process.send_signal(number)
        status = self._process.wait(30)
        self._output.close()
        return status


@pytest.fixture
def arguments(tmp_path):
    return ["--port", str(free_block()[0]), "--state", str(tmp_path / "below" / "state.sqlite")]


def test_it_goes_on_where_it_was_killed(arguments):
    with receiving() as receiver:
        program = Program(*arguments, "--webhook", receiver.url)
        made = client_of(program.base, SECRET_KEY).customers.create({"name": "Ada"})
        receiver.wait_for(1)
        assert program.end(signal.SIGKILL) == -signal.SIGKILL
        program = Program(*arguments, "--webhook", receiver.url)
        try:
            v1 = client_of(program.base, SECRET_KEY)
            assert v1.customers.retrieve(made.id).name == "Ada"
            v1.customers.create({"name": "Grace"})
            receiver.wait_for(2)
        finally:
            assert program.end() == 0


def test_its_state_is_its_owners_alone(arguments):
    before = os.umask(0o077)
    try:
        program = Program(*arguments)
    finally:
        os.umask(before)
    program.end()
    file = Path(arguments[-1])
    assert file.stat().st_mode & 0o077 == 0
    assert file.parent.stat().st_mode & 0o077 == 0
