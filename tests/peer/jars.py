"""Kafka's jars, and Spark's for S3, fetched by Maven into `.peer/` once per version of a POM."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from spark_usage.jars import copy_jars

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
POM = HERE / "pom.xml"
CACHE = ROOT / ".peer"


def jar_folder(pom: Path = POM) -> Path:
    """The folder in which the jars of the present POM are once they are fetched."""
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    return CACHE / f"libs-{digest}"


def fetch_jars(pom: Path = POM) -> Path:
    """Fetches the jars unless they are there, and returns their folder.

    A fetch that is cut off leaves nothing that a later one would take for complete.
    """
    folder = jar_folder(pom)
    if folder.is_dir():
        return folder
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    copy_jars(pom, partial)
    partial.rename(folder)
    return folder


def classpath() -> str:
    """The class path of every tool and broker. Raises `FileNotFoundError` before set-up."""
    folder = jar_folder()
    if not folder.is_dir():
        message = f"{folder} is missing: run `make setup`"
        raise FileNotFoundError(message)
    return f"{folder}/*"
