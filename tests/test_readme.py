"""What README.md says is so, and each folder's README.md names the folders in it."""

import re
import shlex
import tomllib
from pathlib import PurePosixPath

import click
import pytest

from console.programs.cli.app import build_root
from tests import parts
from tests.checkout import tracked_files
from tests.imports import ROOT

LINES_MAX = 150

# Folders that no README.md needs to name.
UNNAMED = {
    "migrations": "Django finds them; the page of the models describes what they make",
    "src": "the README.md beside it is the page of what is in it",
}


@pytest.fixture(scope="module")
def readme():
    return (ROOT / "README.md").read_text()


@pytest.fixture(scope="module")
def files():
    return tracked_files(ROOT)


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def section_of(text, title):
    """The text below a heading of the second level."""
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def table_under(text, first_heading):
    """The rows of the table whose first column has that heading, as lists of cells."""
    lines = text.split(f"\n| {first_heading} |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def code_in(text):
    """What stands between backticks."""
    return re.findall(r"`([^`]+)`", text)


def test_it_is_short(readme):
    assert len(readme.splitlines()) <= LINES_MAX


def test_the_map_has_each_folder(readme, files):
    named = {code_in(cells[0])[0].rstrip("/") for cells in table_under(readme, "Folder")}
    assert named == {PurePosixPath(file).parts[0] for file in files if "/" in file}


def test_places_exist(readme):
    places = {place for cells in table_under(readme, "Where is…") for place in code_in(cells[1])}
    paths = {place for place in places if place.count("/") > 1}
    assert len(paths) > 8
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_paths_in_the_text_exist(readme):
    paths = set(re.findall(r"(?<![\w./])(?:brokers|docs|frontend|\.ci)/[\w./-]+", readme))
    paths -= {"frontend/dist"}  # set-up builds it
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_it_names_the_targets_of_make(readme):
    makefile = (ROOT / "Makefile").read_text()
    assert set(re.findall(r"\bmake ([a-z-]+)", readme)) == set(
        re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)
    )


def test_it_names_the_parts_of_all_tests(readme):
    row = next(cells for cells in table_under(readme, "Target") if "test-all" in cells[0])
    named = code_in(row[1].split("one part:")[1].split(";")[0])
    assert named == list(parts.parts())


def test_the_layers_are_those_that_import_linter_holds(readme, project):
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(entry["layers"] for entry in contracts if entry["type"] == "layers")
    block = readme.split("A package imports those on lines below it")[1].split("```")[1]
    assert block.split("\n")[1:-1] == layers


def test_the_packages_without_django_are_those_that_import_linter_holds(readme, project):
    contracts = project["tool"]["importlinter"]["contracts"]
    held = next(entry for entry in contracts if entry["name"].startswith("The data plane imports"))
    sentence = readme.split("import no\nDjango")[0].split("\n\n")[-1]
    named = set(code_in(sentence))
    assert len(named) == 5
    assert named <= set(held["source_modules"])


def test_needed_versions_are_those_that_set_up_asks_for(readme):
    setup = (ROOT / ".ci/setup").read_text()
    minimum = dict(re.findall(r"^(\w+)_minimum=(\S+)", setup, re.MULTILINE))
    needed = readme.split("They need")[1].split("On Debian")[0]
    for tool in ("Python", "Rust", "Node", "Java", "Go"):
        assert f"{tool} {minimum[tool.lower()]}" in needed, tool


def find_command(words):
    """The command of `freshet` that these words begin with."""
    command: click.Command = build_root()
    context = click.Context(command)
    for word in words:
        if not isinstance(command, click.Group):
            break
        below = command.get_command(context, word)
        assert below is not None, words
        command = below
    return command


def test_commands_of_the_command_line_exist(readme):
    lines = section_of(readme, "From nothing to a message").splitlines()
    shown = [line.split("| ")[-1] for line in lines if re.match(r"(echo \S+ \| )?freshet ", line)]
    assert len(shown) > 4
    for line in shown:
        words = shlex.split(line)[1:]
        command = find_command(words)
        options = {name for option in command.params for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= options, line


def advertised_apis():
    versions = ROOT / "brokers/core/crates/wire/src/protocol/versions.rs"
    table = versions.read_text().split("ADVERTISED: &[ApiRange] = &[")[1].split("];")[0]
    return set(re.findall(r"ApiKey::(\w+)", table))


def test_the_table_of_apis_is_read():
    assert {"Produce", "Fetch", "JoinGroup", "InitProducerId"} <= advertised_apis()


def has_no_api(*names):
    return not advertised_apis() & set(names)


def has_no_module(files, folder, *names):
    """Whether no module of a folder is called so, in Python and in Rust."""
    modules = (file for file in files if file.startswith(folder) and file.endswith((".py", ".rs")))
    stems = {PurePosixPath(file).stem for file in modules}
    assert stems
    return not stems & set(names)


def has_no_word(words, *folders):
    code = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert code
    return not [path for path in code if re.search(words, path.read_text(), re.IGNORECASE)]


def offers_no_mechanism(name):
    page = (ROOT / "docs/reference/gateway-settings.md").read_text()
    assert "SCRAM-SHA-512" in page
    return name not in page


# What README.md calls missing → whether it is: once this fails, the sentence is to be changed.
MISSING = {
    "Scaling by load": lambda files: has_no_module(
        files, "provisioning/", "autoscaler", "balance", "balancer"
    ),
    "Transactions": lambda _: has_no_api("AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"),
    "The new group protocol": lambda _: has_no_api("ConsumerGroupHeartbeat"),
    "share groups": lambda _: has_no_api("ShareGroupHeartbeat", "ShareFetch"),
    "Sign-in by an identity provider": lambda _: has_no_word(r"\boidc\b", "console/base"),
    "client certificates": lambda _: has_no_word(r"client_ca\b", "brokers", "provisioning/cell"),
}


def test_what_it_calls_missing_is_missing(readme, files):
    named = set(re.findall(r"\*\*(.+?)\*\*", section_of(readme, "What is missing")))
    assert named == MISSING.keys()
    assert [name for name, is_missing in MISSING.items() if not is_missing(files)] == []
    assert offers_no_mechanism("OAUTHBEARER")


def folders_without_name(files, texts):
    """Sub-folders that the README.md of their folder does not name, as `folder: name`.

    `files` are all files of the checkout, `texts` the text of each README.md by its folder. A name
    counts in code (between backticks) and in the target of a link.
    """
    complaints = []
    folders = {parent for file in files for parent in PurePosixPath(file).parents}
    for folder in sorted(folders):
        page = texts.get(folder.parent)
        if not folder.name or page is None or folder.name in UNNAMED:
            continue
        code = " ".join(re.findall(r"```.*?```|`[^`]+`|\]\([^)]+\)", page, re.DOTALL))
        if folder.name not in re.findall(r"[\w-]+", code):
            complaints.append(f"{folder.parent}: {folder.name}")
    return complaints


def test_each_page_names_the_folders_in_its_folder(files):
    pages = [PurePosixPath(file) for file in files if PurePosixPath(file).name == "README.md"]
    texts = {page.parent: (ROOT / page).read_text() for page in pages if page.parent.name}
    assert folders_without_name(files, texts) == []


def test_a_folder_without_name_is_noticed():
    files = {"a/README.md", "a/b/c.py", "a/migrations/0001.py", "a/d-e/f.py"}
    texts = {PurePosixPath("a"): "About b, and `d-e/`."}
    assert folders_without_name(files, texts) == ["a: b"]
    texts[PurePosixPath("a")] += " `a/b` is it."
    assert folders_without_name(files, texts) == []


CRATES = "brokers/core/crates"


def missing_paths(page, files):
    """Paths in the code spans of a page of explanation at which there is nothing.

    A path begins at the root of the checkout or at the crates of the engine; a name without a
    folder is that of any file.
    """
    exists = {str(p) for file in files for p in (PurePosixPath(file), *PurePosixPath(file).parents)}
    names = {PurePosixPath(file).name for file in files}
    spans = [span.rstrip("/") for span in code_in(page) if re.fullmatch(r"[\w.-]+[\w./-]*", span)]
    paths = [span for span in spans if "/" in span and not span.startswith(("api/", "v1/"))]
    bare = [span for span in spans if re.fullmatch(r"[\w-]+\.(py|rs|md|toml)", span)]
    return [path for path in paths if not {path, f"{CRATES}/{path}"} & exists] + [
        name for name in bare if name not in names
    ]


def test_pages_of_explanation_name_files_that_exist(files):
    pages = [file for file in files if file.startswith("docs/explanation/")]
    assert len(pages) > 6
    missing = {page: missing_paths((ROOT / page).read_text(), files) for page in pages}
    assert {page: paths for page, paths in missing.items() if paths} == {}


def test_a_path_that_is_gone_is_noticed():
    files = {f"{CRATES}/a/b.rs", "c/d.py"}
    assert missing_paths("`a/b.rs`, `c/`, `d.py`, `make up`, `org_…`", files) == []
    assert missing_paths("`a/x.rs`, `x.py`", files) == ["a/x.rs", "x.py"]
