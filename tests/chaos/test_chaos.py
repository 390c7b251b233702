"""A cluster that is hurt for a minute loses, duplicates and reorders nothing."""

import json
import random
import subprocess
import sys

import pytest

from tests.built import built
from tests.chaos.faults import KINDS, decks
from tests.imports import ROOT

# All kinds of faults once: each takes 2 to 9 seconds with the recovery from it.
MINUTES = 1.0
LIMIT_S = 600


@pytest.mark.full("stores")
@pytest.mark.timeout(LIMIT_S + 60)
def test_a_hurt_cluster_loses_duplicates_and_reorders_nothing(tmp_path):
    built("etcd")
    seed = random.randrange(1 << 32)
    command = [sys.executable, "-m", "tests.chaos", "--minutes", str(MINUTES), "--seed", str(seed)]
    done = subprocess.run(
        [*command, "--kills", "0", "--folder", tmp_path],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        timeout=LIMIT_S,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    report = json.loads(done.stdout)
    assert report["acknowledged"] > 0
    assert report["records"] == report["acknowledged"]
    assert not any(report["found"].values())
    assert len(report["faults"]) >= len(KINDS) // 2


def test_each_kind_of_fault_comes_once_before_any_comes_again():
    kinds = decks(random.Random(1))
    for _ in range(3):
        assert sorted(next(kinds) for _ in KINDS) == sorted(KINDS)


def test_a_seed_gives_the_same_faults_again():
    one, same, other = (decks(random.Random(seed)) for seed in ("7/0", "7/0", "7/1"))
    first = [next(one) for _ in range(40)]
    assert first == [next(same) for _ in range(40)]
    assert first != [next(other) for _ in range(40)]
