"""The `Containerfile`, which no test can build: its paths exist, and its pins are the project's."""

import fnmatch
import json
import re
import tomllib

import pytest

from tests.kubernetes.image import contents
from tests.kubernetes.image.build import config

ROOT = contents.ROOT
TEXT = (ROOT / "Containerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def instructions():
    """The (stage, instruction, rest) of each instruction."""
    joined = re.sub(r"\\\n", " ", TEXT)
    stage, lines = "", []
    for line in joined.splitlines():
        if line and not line.startswith("#"):
            instruction, _, rest = line.partition(" ")
            if instruction == "FROM":
                stage = rest.partition(" AS ")[2]
            lines.append((stage, instruction, " ".join(rest.split())))
    return lines


def rests(instruction, stage=None):
    return [
        rest for of, name, rest in instructions() if name == instruction and stage in {None, of}
    ]


def test_every_stage_and_base_is_declared():
    declared = {rest.partition("=")[0] for rest in rests("ARG")}
    stages = []
    for rest in rests("FROM"):
        base, _, name = rest.partition(" AS ")
        assert base in stages or base.strip("${}") in declared, rest
        stages.append(name)
    copied = re.findall(r"--from=(\S+)", TEXT)
    assert copied
    assert set(copied) <= set(stages)


def test_what_is_copied_is_there_and_not_ignored():
    ignored = [
        line.strip("/")
        for line in (ROOT / ".containerignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    for rest in rests("COPY"):
        *sources, _ = [part for part in rest.split() if not part.startswith("--")]
        for source in [] if "--from" in rest else sources:
            assert (ROOT / source).exists(), source
            assert not any(fnmatch.fnmatch(source.strip("/"), pattern) for pattern in ignored), (
                source
            )


def test_every_package_is_in_the_wheel():
    assert set(PROJECT["tool"]["maturin"]["python-packages"]) == set(contents.PACKAGES)
    assert {f"{name}/" for name in contents.PACKAGES} <= set(" ".join(rests("COPY")).split())


@pytest.mark.parametrize("name", ["maturin", "pyspark", "uv"])
def test_pins_are_those_of_the_project(name):
    (pinned,) = re.findall(rf"\b{name}==(\S+)", TEXT)
    declared = (ROOT / "pyproject.toml").read_text() + (ROOT / ".ci/setup").read_text()
    versions = re.findall(rf'"{name}==(\d[^"]+)"|{name}_version=(\d\S+)', declared)
    assert {pinned} == {version for pair in versions for version in pair if version}


def test_both_images_run_alike():
    own = config(spark=False)
    assert rests("USER", "freshet") == [own["User"]]
    assert rests("WORKDIR", "freshet") == [own["WorkingDir"]]
    assert json.loads(rests("ENTRYPOINT")[0]) == own["Entrypoint"]
    given = dict(pair.split("=", 1) for pair in rests("ENV", "freshet")[0].split())
    mine = dict(pair.split("=", 1) for pair in own["Env"])
    assert given == {name: value for name, value in mine.items() if name != "PATH"}
    (python,) = re.findall(r"ARG PYTHON_IMAGE=python:(\d+\.\d+)", TEXT)
    assert python == PROJECT["project"]["requires-python"].removeprefix(">=")


def test_bases_name_no_registry():
    for rest in rests("ARG"):
        assert "/" not in rest, rest
