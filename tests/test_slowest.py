"""A slow everyday test is noticed, unless it is on the list, whose entries exist and say why."""

import ast
import subprocess
import sys

import pytest

from tests import slowest
from tests.imports import ROOT
from tests.slowest import Took

SLEEPER = """
import threading, pytest

@pytest.fixture
def service():
    threading.Event().wait(1)

class TestIt:
    @pytest.mark.parametrize("n", [1])
    def test_long(self, n):
        threading.Event().wait(0.2)

def test_short(service):
    pass
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The JUnit report of a run of pytest with the options of `.ci/test`."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "tests").mkdir()
    (folder / "tests" / "test_sample.py").write_text(SLEEPER)
    options = ["-p", "no:django", "-o", "junit_duration_report=call", "--junitxml=report.xml"]
    command = [sys.executable, "-m", "pytest", "-q", *options, "--rootdir=.", "tests"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / "report.xml"


def test_the_time_of_a_test_is_its_own_without_that_of_fixtures(report):
    long, short = slowest.read_reports([report])
    assert long.function == ("tests/test_sample.py", "test_long")
    assert long.name == "test_long[1]"
    assert short.function == ("tests/test_sample.py", "test_short")
    assert short.seconds < 1
    assert long.seconds >= 0.2


@pytest.mark.parametrize(
    ("limit", "busy", "known", "status"),
    [
        ("0.1", False, False, 1),
        ("0.1", True, False, 0),
        ("0.1", False, True, 0),
        ("60", False, False, 0),
    ],
)
def test_a_slow_test_fails_a_run(report, limit, busy, known, status, monkeypatch, capsys):
    listed = {("tests/test_sample.py", "test_long"): "it sleeps"} if known else {}
    monkeypatch.setattr(slowest, "allowed", lambda: listed)
    monkeypatch.setattr(slowest, "is_busy", lambda: busy)
    assert slowest.main([limit, str(report)]) == status
    said = capsys.readouterr().out
    assert "slowest of 2 tests" in said
    assert ("tests/slow_tests.toml" in said) == (bool(status) or busy)


def test_those_of_all_processes_are_shown_in_one_order(tmp_path):
    reports = []
    for number, seconds in enumerate(["1.5", "2.5"]):
        reports.append(tmp_path / f"{number}.xml")
        case = f'<testcase classname="tests.a.test_x" name="test_{number}" time="{seconds}"/>'
        reports[-1].write_text(f"<testsuites><testsuite>{case}</testsuite></testsuites>")
    assert slowest.read_reports(reports) == [
        Took(2.5, "tests.a.test_x", "test_1"),
        Took(1.5, "tests.a.test_x", "test_0"),
    ]


def test_each_test_of_the_list_exists_and_says_why():
    for (file, name), reason in slowest.allowed().items():
        tree = ast.parse((ROOT / file).read_bytes())
        functions = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        assert name in functions, file
        assert len(reason.split()) >= 5, name
