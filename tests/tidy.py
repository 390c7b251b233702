"""House rules that no linter holds, as pure functions from a file's path and text to complaints.

`test_tidy.py` applies them to every file of the checkout, and to samples that break them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

LINES_MAX = 600
LINES_MAX_TEST = 800
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100
BYTES_MAX = 1024 * 1024

# The Terraform provider: a package's own comment is its page.
PROVIDER = PurePosixPath("provisioning/deliverables/terraform/internal")
# Packages of it that know nothing of Terraform.
PLAIN_PACKAGES = ("api", "batch", "cache")

# Every feature of the console has the same shape, which this folder's page describes.
FEATURES = PurePosixPath("frontend/src/features")

SOURCE_SUFFIXES = {".py", ".pyi", ".rs", ".ts", ".tsx", ".go", ".c", ".sh"}

# Written in pieces, so that this file obeys its own rules.
UNFINISHED = re.compile(
    "|".join(
        [
            r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b",
            r"\bto" r"do!\(",
            r"\bunimplemented" r"!\(",
        ]
    )
)
SKIPPED = re.compile(
    r"mark\.ski" r"p|pytest\.ski" r"p|importors" r"kip|#\[igno" r"re\b|\.ski" r"p\(\s*[\"']"
)
SLEEPING = re.compile(r"\btime\.sle" r"ep\(|thread::sle" r"ep\(")
REGISTRIES = re.compile(
    r"files\.pythonh"
    r"osted|pypi\.o"
    r"rg|registry\.np"
    r"mjs|proxy\.gol"
    r"ang|repo1?\.ma"
    r"ven"
    r"|deb\.deb"
    r"ian\.org|static\.cra"
    r"tes|index\.cra"
    r"tes"
)
MACHINE_PATHS = re.compile(r"(?<![\w.$}/-])/(?:work|root|home|Users|tmp)/")

MARKDOWN_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
CHANGELOG_VERSION = re.compile(r"## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}")
CHANGELOG_UNRELEASED = "## [Unreleased]"
CHANGELOG_KINDS = ["### Added", "### Changed", "### Fixed", "### Security"]
BINDING = PurePosixPath("brokers/core/crates/python")
BIASED_SELECT = re.compile(r"\bselect!\s*\{\s*(\S+)")


def is_test(path: PurePosixPath) -> bool:
    """Tells whether a file holds tests: it may be longer."""
    return (
        "tests" in path.parts
        or path.stem == "tests"
        or path.stem.startswith("test_")
        or path.name.endswith("_test.go")
    )


def is_generated(text: str) -> bool:
    """Tells whether a tool wrote the file and says so at its top."""
    return "@generated" in text[:400]


def word_complaints(path: PurePosixPath, text: str) -> Iterator[str]:
    """Unfinished work, skipped tests, sleeping tests, registry hosts and paths of one machine."""
    rules = [
        (REGISTRIES, "names a registry's host"),
        (MACHINE_PATHS, "names a path of one machine"),
    ]
    if path.suffix in SOURCE_SUFFIXES:
        rules += [(UNFINISHED, "is unfinished"), (SKIPPED, "skips a test")]
        if is_test(path):
            rules.append((SLEEPING, "waits by the clock"))
    if path.name in {"Cargo.lock", "go.sum"}:  # as their tools write them
        return
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, complaint in rules:
            if pattern.search(line):
                yield f"{path}:{number}: {complaint}: {line.strip()[:80]}"


def length_complaints(path: PurePosixPath, text: str) -> Iterator[str]:
    """Files and lines that are too long."""
    if path.suffix not in SOURCE_SUFFIXES or is_generated(text):
        return
    lines = text.splitlines()
    limit = LINES_MAX_TEST if is_test(path) else LINES_MAX
    if len(lines) > limit:
        yield f"{path}: {len(lines)} lines, at most {limit}"
    for number, line in enumerate(lines, start=1):
        # One long word (an address, a digest) cannot be broken.
        if len(line) > COLUMNS_MAX and " " in line.strip(" /!#*"):
            yield f"{path}:{number}: {len(line)} columns, at most {COLUMNS_MAX}"


def function_complaints(path: PurePosixPath, text: str) -> Iterator[str]:
    """Python functions that are too long. For Rust clippy's `too_many_lines` counts."""
    if path.suffix != ".py" or is_generated(text):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                yield f"{path}:{node.lineno}: {node.name} has {length} lines"


def rust_complaints(path: PurePosixPath, text: str) -> Iterator[str]:
    """What the engine's determinism and its one binding file ask of every Rust file."""
    if path.suffix != ".rs":
        return
    if not text.startswith("//!"):
        yield f"{path}: begins without a `//!` comment that says what it is"
    for match in BIASED_SELECT.finditer(text):
        if match.group(1) != "biased;":
            number = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{number}: `select!` without `biased;`: its choice would be random"
    if "pyo3::" in text and not path.is_relative_to(BINDING):
        yield f"{path}: knows Python, which only the crate `python` may"


def go_complaints(path: PurePosixPath, text: str) -> Iterator[str]:
    """Go functions that are too long, and packages that know what they should not."""
    if path.suffix != ".go":
        return
    begun = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("func "):
            begun = number
        elif line == "}" and begun:
            if number - begun + 1 > FUNCTION_LINES_MAX:
                yield f"{path}:{begun}: a function has {number - begun + 1} lines"
            begun = 0
    plain = path.parent in {PROVIDER / name for name in PLAIN_PACKAGES}
    if plain and re.search(r'^\s*"github\.com/hashicorp/', text, re.MULTILINE):
        yield f"{path}: knows Terraform, which only internal/provider may"


def packages_without_comment(texts: dict[PurePosixPath, str]) -> list[str]:
    """Folders of Go whose package (or command) no file describes."""
    folders = {path.parent for path in texts if path.suffix == ".go"}
    described = {
        path.parent
        for path, text in texts.items()
        if path.suffix == ".go" and re.search(r"^// .+\n(//.*\n)*package ", text, re.MULTILINE)
    }
    return sorted(str(folder) for folder in folders - described)


def link_complaints(path: PurePosixPath, text: str, exists: set[str]) -> Iterator[str]:
    """Relative links in Markdown to what is not there. `exists`: every file and folder."""
    if path.suffix != ".md":
        return
    for match in MARKDOWN_LINK.finditer(text):
        target = match.group(1).split("#")[0]
        if not target or "://" in target or target.startswith("mailto:"):
            continue
        if resolve_link(path.parent, target) not in exists:
            yield f"{path}: link to {target}, which does not exist"


def resolve_link(folder: PurePosixPath, target: str) -> str:
    """Joins a relative link to the folder of its page, as a path from the checkout's root."""
    parts = list(folder.parts)
    for part in PurePosixPath(target).parts:
        if part == "..":
            parts = parts[:-1]
        else:
            parts.append(part)
    return str(PurePosixPath(*parts))


def changelog_complaints(text: str, version: str) -> Iterator[str]:
    """The changelog's shape: releases with their date, newest first, and kinds of change in each.

    What is not released yet may precede all releases; the newest release is the project's version.
    """
    lines = text.splitlines()
    if lines[:1] != ["# Changelog"]:
        yield "the changelog begins with `# Changelog`"
    versions = [match.group(1) for match in map(CHANGELOG_VERSION.fullmatch, lines) if match]
    if versions[:1] != [version]:
        yield f"the newest release is {versions[:1]}, the project's version {version}"
    if versions != sorted(versions, key=_version_key, reverse=True):
        yield "releases are not in order, newest first"
    releases = [line for line in lines if line.startswith("## ")]
    if releases[:1] == [CHANGELOG_UNRELEASED]:
        del releases[0]
    for line in releases:
        if not CHANGELOG_VERSION.fullmatch(line):
            yield f"not `## [<version>] - <date>`: {line}"
    yield from _changelog_entry_complaints(lines)


def _changelog_entry_complaints(lines: list[str]) -> Iterator[str]:
    """Kinds of change that are unknown or out of order, and entries outside one or misshapen."""
    kinds: list[str] = []
    for line in lines:
        if line.startswith("## "):
            kinds = []
        elif line.startswith("### "):
            kinds.append(line)
            if kinds != [kind for kind in CHANGELOG_KINDS if kind in kinds]:
                yield f"not one of {CHANGELOG_KINDS}, in this order, once a release: {line}"
        elif line.startswith("- "):
            if not kinds:
                yield f"below no kind of change: {line}"
            if not (line.endswith(".") and len(line) <= COLUMNS_MAX):
                yield f"not one sentence of at most {COLUMNS_MAX} columns: {line}"


def _version_key(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def decision_complaints(path: PurePosixPath, text: str) -> Iterator[str]:
    """A decision's parts, and its length: one page."""
    headings = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    if headings != ["Context", "Decision", "Non-goals", "Consequences"]:
        yield f"{path}: has {headings}"
    if not text.startswith(f"# {path.name[:4]}: "):
        yield f"{path}: its title does not begin with its number"
    if len(text.splitlines()) > 60:
        yield f"{path}: longer than a page"


def folders_without_readme(files: set[str]) -> list[str]:
    """Folders with source of their own and no README.md.

    In the Rust crate a module's `//!` comment is its page, in the Terraform provider a package's
    own comment. A package that is still an empty `__init__.py` is described by its parent, as are
    an application's migrations, and the features of the console share one page.
    """
    folders = set()
    for file in files:
        path = PurePosixPath(file)
        if path.is_relative_to(FEATURES):
            path = FEATURES / path.name
        migration = path.parent.name == "migrations"
        inside_crate = path.parts[:2] == ("brokers", "core") and len(path.parts) > 3
        inside_provider = path.is_relative_to(PROVIDER.parent) and len(path.parts) > 3
        described = inside_crate or inside_provider
        if (
            path.suffix in SOURCE_SUFFIXES
            and path.name != "__init__.py"
            and not (described or migration)
        ):
            folders.add(str(path.parent))
    folders |= {PurePosixPath(file).parts[0] for file in files if "/" in file}
    return sorted(f for f in folders if str(PurePosixPath(f, "README.md")) not in files)
