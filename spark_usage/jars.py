"""`python -m spark_usage.jars FOLDER`: the jars that Spark needs for `s3a://`, by Maven, 11 MB.

Into the folder that the setting `usage.spark_jars` names, or into Spark's own `jars/`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

POM = Path(__file__).parent / "pom.xml"

EXIT_USAGE = 2


def copy_jars(pom: Path, folder: Path) -> None:
    """Copies what a POM names at run time into a folder; Maven makes it.

    Raises `CalledProcessError`, and `FileNotFoundError` where there is no Maven.
    """
    subprocess.run(
        [
            "mvn",
            "--batch-mode",
            "--no-transfer-progress",
            f"--file={pom}",
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            f"-DoutputDirectory={folder.absolute()}",
        ],
        check=True,
    )


def main(arguments: list[str]) -> int:
    """Fetches them; returns the status to exit with."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.stderr.write("usage: python -m spark_usage.jars FOLDER\n")
        return EXIT_USAGE
    copy_jars(POM, Path(arguments[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
