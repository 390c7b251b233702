"""Kafka's jars, fetched by Maven into `.peer/` once per version of `pom.xml`."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
POM = HERE / "pom.xml"
CACHE = ROOT / ".peer"


def jar_folder() -> Path:
    """Where the jars of the present `pom.xml` lie once fetched."""
    digest = hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    return CACHE / f"libs-{digest}"


def fetch_jars() -> Path:
    """Fetches the jars unless they are there, and returns their folder.

    A fetch that is cut off leaves nothing that a later one would take for complete.
    """
    folder = jar_folder()
    if folder.is_dir():
        return folder
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    subprocess.run(
        [
            "mvn",
            "--batch-mode",
            "--no-transfer-progress",
            f"--file={POM}",
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            f"-DoutputDirectory={partial}",
        ],
        check=True,
    )
    partial.rename(folder)
    return folder


def classpath() -> str:
    """The class path of every tool and broker. Raises `FileNotFoundError` before set-up."""
    folder = jar_folder()
    if not folder.is_dir():
        message = f"{folder} is missing: run `make setup`"
        raise FileNotFoundError(message)
    return f"{folder}/*"
