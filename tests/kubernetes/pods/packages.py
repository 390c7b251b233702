"""Provides containerd, runc and the CNI plugins from Debian's packages, without installing them.

They are unpacked into `.tools/pods`, with the image that every pod needs, and used again by later
runs.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.kubernetes.image.archive import Layer, write_image

ROOT = Path(__file__).parents[3]
TOOLS = ROOT / ".tools" / "pods"
PACKAGES = ("containerd", "runc", "containernetworking-plugins", "libseccomp2", "libbtrfs0")
PAUSE_SOURCE = Path(__file__).with_name("pause.c")
PAUSE_IMAGE = "localhost/pause:1"


def ready_tools() -> Path:
    """The folder with `root` (the unpacked packages) and `pause.tar`. It is made if missing.

    Raises `subprocess.CalledProcessError` where a package cannot be downloaded.
    """
    TOOLS.mkdir(parents=True, exist_ok=True)
    with (TOOLS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (TOOLS / "root").exists():
            _unpack()
        if not (TOOLS / "pause.tar").exists():
            _make_pause()
    return TOOLS


def environment() -> dict[str, str]:
    """The environment with which the unpacked programs find each other and their libraries."""
    root = TOOLS / "root" / "usr"
    libraries = sorted(root.glob("lib/*-linux-gnu"))
    path = [str(root / "sbin"), str(root / "bin"), os.environ.get("PATH", "")]
    return {
        **os.environ,
        "PATH": ":".join(path),
        "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
    }


def _unpack() -> None:
    with tempfile.TemporaryDirectory(dir=TOOLS) as scratch:
        folder = Path(scratch)
        _download(folder)
        for package in sorted(folder.glob("*.deb")):
            subprocess.run(["dpkg", "-x", package, folder / "root"], check=True)
        (folder / "root").rename(TOOLS / "root")


def _download(folder: Path) -> None:
    # apt would download as another user, which may not write to this folder.
    command = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", *PACKAGES]
    first = subprocess.run(command, cwd=folder, check=False, capture_output=True)
    if first.returncode:
        subprocess.run(["apt-get", "-qq", "update"], check=True)
        subprocess.run(command, cwd=folder, check=True)


def _make_pause() -> None:
    with tempfile.TemporaryDirectory(dir=TOOLS) as scratch:
        folder = Path(scratch)
        tree = folder / "tree"
        tree.mkdir()
        compiler = ["cc", "-static", "-O2", "-o", str(tree / "pause"), str(PAUSE_SOURCE)]
        subprocess.run(compiler, check=True)
        layer = Layer.of_tree(tree, folder / "layer.tar")
        write_image(folder / "pause.tar", PAUSE_IMAGE, [layer], {"Entrypoint": ["/pause"]})
        shutil.move(folder / "pause.tar", TOOLS / "pause.tar")
