"""Layers and archives: what is in them, and that they are built once."""

import hashlib
import json
import os
import sys
import tarfile
from pathlib import Path, PurePosixPath

from tests.kubernetes.image.archive import Layer, write_image
from tests.kubernetes.image.contents import system
from tests.kubernetes.image.files import LIBRARIES, LOADER, Contents


def folder_of(tmp_path):
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "text").write_text("a text")
    (folder / "inner" / "text").chmod(0o600)
    (folder / "program").write_text("#!/bin/sh")
    (folder / "program").chmod(0o700)
    (folder / "left").mkdir()
    (folder / "left" / "out").touch()
    return folder


def read(tar, name):
    file = tar.extractfile(name)
    assert file is not None
    return file.read()


def contents_of(folder):
    contents = Contents()
    contents.add("/opt/it", folder, without=["left"])
    contents.links[PurePosixPath("/bin")] = "usr/bin"
    contents.texts[PurePosixPath("/etc/name")] = "value\n"
    contents.folders[PurePosixPath("/tmp")] = 0o1777  # noqa: S108 (of an image)
    return contents


def test_a_layer_belongs_to_root_and_may_be_read_by_all(tmp_path):
    layer = contents_of(folder_of(tmp_path)).layer("it", tmp_path)
    with tarfile.open(layer.path) as tar:
        members = {member.name: member for member in tar.getmembers()}
        assert read(tar, "opt/it/inner/text") == b"a text"
        assert read(tar, "etc/name") == b"value\n"
    assert {name for name, member in members.items() if member.isdir()} == {
        "opt", "opt/it", "opt/it/inner", "etc", "tmp",
    }  # fmt: skip
    assert {(member.uid, member.gid) for member in members.values()} == {(0, 0)}
    assert members["opt/it/inner/text"].mode == 0o644
    assert members["opt/it/program"].mode == 0o755
    assert members["tmp"].mode == 0o1777
    assert members["bin"].linkname == "usr/bin"
    assert layer.digest == f"sha256:{hashlib.sha256(layer.path.read_bytes()).hexdigest()}"


def test_a_layer_is_made_anew_where_a_file_changed(tmp_path):
    folder = folder_of(tmp_path)
    first = contents_of(folder).layer("it", tmp_path)
    written = first.path.stat().st_mtime_ns
    again = contents_of(folder).layer("it", tmp_path)
    assert (again, again.path.stat().st_mtime_ns) == (first, written)
    os.utime(folder / "program", ns=(1, 1))
    assert contents_of(folder).layer("it", tmp_path).path != first.path


def test_an_archive_names_its_layers_by_what_is_in_them(tmp_path):
    layer = contents_of(folder_of(tmp_path)).layer("it", tmp_path)
    write_image(tmp_path / "image.tar", "it:1", [layer], {"User": "1"})
    with tarfile.open(tmp_path / "image.tar") as tar:
        (manifest,) = json.loads(read(tar, "manifest.json"))
        config = read(tar, manifest["Config"])
        (inside,) = [read(tar, layer_name) for layer_name in manifest["Layers"]]
    assert manifest["RepoTags"] == ["it:1"]
    assert manifest["Config"] == f"{hashlib.sha256(config).hexdigest()}.json"
    assert json.loads(config)["rootfs"]["diff_ids"] == [layer.digest]
    assert json.loads(config)["config"] == {"User": "1"}
    assert inside == layer.path.read_bytes()


def test_a_program_comes_with_its_libraries():
    contents = Contents()
    contents.add("/bin/python", Path(sys.executable).resolve())
    contents.add_libraries()
    assert LIBRARIES / "libc.so.6" in contents.files
    assert LOADER in contents.files


def test_the_system_has_python_certificates_and_the_user():
    contents = system()
    assert PurePosixPath("/usr/local/bin/python3.11") in contents.files
    assert PurePosixPath("/usr/bin/bash") in contents.files
    assert "10001" in contents.texts[PurePosixPath("/etc/passwd")]
    assert not [file for file in contents.files if "site-packages" in file.parts]


def test_a_folder_is_a_layer_too(tmp_path):
    layer = Layer.of_tree(folder_of(tmp_path), tmp_path / "tree.tar")
    with tarfile.open(layer.path) as tar:
        assert "./inner/text" in tar.getnames()
        assert {member.uid for member in tar.getmembers()} == {0}
