"""The contents of the image's layers.

They are Python with what it needs of a system, Freshet's dependencies, Java with Spark, and
Freshet. The project's `Containerfile` makes an equal image by its own means.
"""

from __future__ import annotations

import compileall
import importlib.metadata
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from spark_usage.jars import POM as S3A_POM
from tests.kubernetes.image.files import LIBRARIES, Contents
from tests.peer.jars import fetch_jars

ROOT = Path(__file__).parents[3]
USER = 10001
PREFIX = PurePosixPath("/usr/local")
HOME = PurePosixPath("/opt/freshet")
JAVA = PREFIX / "java"
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
STANDARD = PREFIX / "lib" / f"python{VERSION}"
SITE = STANDARD / "site-packages"
PACKAGES = ("billing", "brokers", "console", "metering", "provisioning", "spark_usage")
# Programs for the scripts that start Spark, and for people who look into a pod.
PROGRAMS = (
    "bash", "sh", "basename", "cat", "chmod", "cp", "date", "df", "dirname", "echo", "env", "find",
    "grep", "head", "hostname", "id", "kill", "ln", "ls", "mkdir", "mv", "nice", "ps", "pwd",
    "readlink", "realpath", "rm", "sed", "sleep", "sort", "stat", "tail", "tr", "uname", "which",
)  # fmt: skip
# Libraries that are loaded by name and not linked: those for PDFs, for lookups and for threads.
LOADED = (
    "libgcc_s.so.1", "libstdc++.so.6", "libpango-1.0.so.0", "libpangoft2-1.0.so.0",
    "libharfbuzz.so.0", "libharfbuzz-subset.so.0", "libfontconfig.so.1", "libgobject-2.0.so.0",
    "libglib-2.0.so.0",
)  # fmt: skip
OF_SYSTEM = ("/etc/fonts", "/etc/ssl/certs/ca-certificates.crt", "/usr/share/fonts/truetype")
NAMES = f"""root:x:0:0:root:/root:/bin/sh
freshet:x:{USER}:{USER}:Freshet:/tmp:/bin/sh
"""
# Parts of Python that no server needs.
UNUSED = (
    "site-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3",
    "config-3.11-x86_64-linux-gnu",
)  # fmt: skip
OPTIMIZED_OUT = re.compile(r"\.opt-[12]\.pyc$")


def system() -> Contents:
    """The layer with Python, a few programs and libraries, and the user."""
    contents = Contents()
    base = Path(sys.base_prefix)
    interpreter = PREFIX / "bin" / f"python{VERSION}"
    contents.add(interpreter, (base / "bin" / f"python{VERSION}").resolve())
    for name in ("python", "python3"):
        contents.links[PREFIX / "bin" / name] = interpreter.name
    standard = Path(sysconfig.get_path("stdlib"))
    contents.add(STANDARD, standard, without=UNUSED)
    for path in [file for file in contents.files if OPTIMIZED_OUT.search(file.name)]:
        del contents.files[path]
    for name in PROGRAMS:
        if program := shutil.which(name, path="/usr/bin:/bin"):
            contents.add(f"/usr/bin/{name}", Path(program).resolve())
    known = _known_libraries()
    for name in LOADED:
        if name in known:
            contents.add(LIBRARIES / name, known[name])
    for place in OF_SYSTEM:
        if Path(place).exists():
            contents.add(place, Path(place))
    contents.add_libraries()
    contents.links[PurePosixPath("/bin")] = "usr/bin"
    contents.links[PurePosixPath("/lib")] = "usr/lib"
    contents.texts[PurePosixPath("/etc/passwd")] = NAMES
    contents.texts[PurePosixPath("/etc/group")] = f"root:x:0:\nfreshet:x:{USER}:\n"
    contents.texts[PurePosixPath("/etc/nsswitch.conf")] = "hosts: files dns\n"
    contents.folders[PurePosixPath("/tmp")] = 0o1777  # noqa: S108 (of the image)
    return contents


def dependencies(*, groups: Iterable[str]) -> Contents:
    """The layer with the dependencies of these groups of `pyproject.toml`, and their own."""
    contents = Contents()
    for distribution in _closure(groups):
        if canonicalize_name(distribution.name) != "pyspark":
            _add_distribution(contents, distribution)
    contents.add_libraries()
    return contents


def spark() -> Contents:
    """The layer with Spark, what it needs to read `s3a://`, and a Java that runs it."""
    contents = Contents()
    _add_distribution(contents, importlib.metadata.distribution("pyspark"))
    for jar in sorted(fetch_jars(S3A_POM).iterdir()):
        contents.add(SITE / "pyspark" / "jars" / jar.name, jar)
    home = _java_home()
    contents.add(
        JAVA, home, without=("jmods", "src.zip", "man", "include", "demo", "legal", "docs")
    )
    contents.add_libraries()
    # Java's own libraries find each other, so they need not be looked up.
    for target in [file for file in contents.files if file.parent == LIBRARIES]:
        if contents.files[target].is_relative_to(home):
            del contents.files[target]
    return contents


def freshet(scratch: Path) -> Contents:
    """The layer with this checkout.

    It holds the packages with their bytecode, the extension without debugging symbols, and the
    built console where there is one.
    """
    contents = Contents()
    staged = scratch / "freshet"
    for name in PACKAGES:
        for path in _sources(name):
            target = staged / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
    shutil.copy2(ROOT / "manage.py", staged)
    # The image's user may not write bytecode there, so it is added.
    compileall.compile_dir(
        staged,
        quiet=1,
        stripdir=str(staged),
        prependdir=str(HOME),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    for compiled in staged.rglob("*.pyc"):
        # With the time of its source, so that the layer is the same as long as the source is.
        source = compiled.parents[1] / f"{compiled.name.partition('.')[0]}.py"
        os.utime(compiled, ns=(0, source.stat().st_mtime_ns))
    contents.add(HOME, staged)
    if (ROOT / "frontend" / "dist").exists():
        contents.add(HOME / "frontend" / "dist", ROOT / "frontend" / "dist")
    _add_metadata(contents)
    return contents


def extension(scratch: Path, built: Path | None = None) -> Contents:
    """The path of the extension: the checkout's, or another build of it."""
    contents = Contents()
    if built is None:
        (built,) = (ROOT / "brokers").glob("_core*.so")
    target = scratch / built.name
    shutil.copy2(built, target)
    subprocess.run(["strip", "--strip-debug", "--preserve-dates", target], check=True)
    contents.add(HOME / "brokers" / built.name, target)
    contents.add_libraries()
    return contents


def _sources(package: str) -> Iterator[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", package],
        check=True,
        capture_output=True,
        cwd=ROOT,
    ).stdout
    for name in sorted(filter(None, listed.decode().split("\0"))):
        path = ROOT / name
        if path.exists() and not name.startswith(
            ("brokers/core/", "provisioning/deliverables/terraform/")
        ):
            yield path


def _add_metadata(contents: Contents) -> None:
    """Adds the metadata from which Freshet reads its own version."""
    distribution = importlib.metadata.distribution("freshet")
    for file in distribution.files or ():
        if file.parent.name.endswith(".dist-info") and file.name in {
            "METADATA",
            "entry_points.txt",
        }:
            contents.add(SITE / PurePosixPath(str(file)), Path(str(distribution.locate_file(file))))


def _add_distribution(contents: Contents, distribution: importlib.metadata.Distribution) -> None:
    tag = f".{sys.implementation.cache_tag}.pyc"
    for file in distribution.files or ():
        inside = PurePosixPath(str(file))
        if ".." in inside.parts or "__pycache__" in inside.parts:
            continue
        path = Path(str(distribution.locate_file(file)))
        contents.add(SITE / inside, path)
        compiled = path.parent / "__pycache__" / f"{path.stem}{tag}"
        if path.suffix == ".py" and compiled.exists():
            contents.add(SITE / inside.parent / "__pycache__" / compiled.name, compiled)


def _closure(groups: Iterable[str]) -> list[importlib.metadata.Distribution]:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    waiting = [Requirement(line) for group in groups for line in declared[group]]
    distributions: dict[tuple[str, frozenset[str]], importlib.metadata.Distribution] = {}
    while waiting:
        requirement = waiting.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in distributions:
            continue
        distributions[key] = importlib.metadata.distribution(requirement.name)
        for line in distributions[key].requires or ():
            needed = Requirement(line)
            extras = requirement.extras or {""}
            if needed.marker is None or any(
                needed.marker.evaluate({"extra": extra}) for extra in extras
            ):
                waiting.append(needed)
    unique = {canonicalize_name(one.name): one for one in distributions.values()}
    return [unique[name] for name in sorted(unique)]


def _known_libraries() -> dict[str, Path]:
    listed = subprocess.run(["ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
    rows = re.findall(r"^\t(\S+) \(libc6,x86-64.*=> (\S+)$", listed, re.MULTILINE)
    return {name: Path(path) for name, path in reversed(rows)}


def _java_home() -> Path:
    said = subprocess.run(
        ["java", "-XshowSettings:properties", "-version"],
        check=True,
        capture_output=True,
        text=True,
    ).stderr
    (home,) = re.findall(r"java\.home = (\S+)", said)
    return Path(home)
