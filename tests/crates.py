"""The layers of the engine's workspace: who refers to whom inside a crate, and how long each is.

A node is a top module of a crate: a folder of `src/`, or a file of it. `lib.rs` is the crate's face
and no node: what it gives another name to is of the module that it comes from. Code for tests does
not count.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

ENGINE = PurePosixPath("brokers/core")
LINES_MAX = 12_000
FACES = {"lib", "main"}

COMMENT = re.compile(r"//[^\n]*")
TESTS = re.compile(r"^#\[cfg\(test\)\]\n(?:#\[[^\n]*\n)*mod \w+ \{", re.MULTILINE)
PATH = re.compile(r"(?<!\$)\b(crate|super(?:::super)*)::(\{|\w+)")
NAMES = re.compile(r"[\w:]+|[{},]")
SHOWN = re.compile(r"\buse (?:self::|crate::)?(\w+)::(?:\w+::)*(\{[^}]*\}|\w+)")


def crate_of(path: PurePosixPath) -> str | None:
    """The crate whose source a file is, by its folder's name."""
    if path.suffix != ".rs" or not path.is_relative_to(ENGINE):
        return None
    parts = path.relative_to(ENGINE).parts
    return parts[1] if parts[0] == "crates" and parts[2] == "src" else None


def module_of(path: PurePosixPath) -> tuple[str, ...]:
    """A file's module: `src/lane/mod.rs` and `src/lane.rs` are both `("lane",)`."""
    parts = path.parts[path.parts.index("src") + 1 :]
    names = (*parts[:-1], path.stem)
    return names[:-1] if names[-1] in {"mod", *FACES} else names


def is_for_tests(path: PurePosixPath) -> bool:
    """Whether a file is compiled for tests only, by the names that such files have here."""
    return "tests" in path.parts or path.stem.endswith("tests")


def source_of(text: str) -> str:
    """A file's text without its comments and its tests."""
    tests = TESTS.search(text)
    return COMMENT.sub("", text[: tests.start()] if tests else text)


def first_names(text: str, start: int) -> Iterator[str]:
    """The first names in a group of paths that begins at `start`, behind its brace."""
    depth, fresh = 0, True
    for match in NAMES.finditer(text, start):
        token = match.group()
        if token == "}" and depth == 0:
            return
        depth += (token == "{") - (token == "}")
        if token == "," and depth == 0:
            fresh = True
        elif fresh and token not in "{},":
            yield token.split("::")[0]
            fresh = False


def references(module: tuple[str, ...], text: str) -> Iterator[str]:
    """Top modules that a file's text refers to, other than its own."""
    for match in PATH.finditer(text):
        start, name = match.groups()
        depth = start.count("super")
        # `super` of a module that is itself at the top is the crate.
        if depth and len(module) != depth:
            continue
        yield from first_names(text, match.end()) if name == "{" else [name]


def reexports(text: str) -> dict[str, str]:
    """What a crate's face gives a name of its own → the module that it comes from."""
    names: dict[str, str] = {}
    for module, items in SHOWN.findall(COMMENT.sub("", text)):
        names |= dict.fromkeys(re.findall(r"\w+", items), module)
    return names


def edges(files: dict[PurePosixPath, str]) -> dict[str, dict[str, set[str]]]:
    """Crate → top module → top modules that it refers to."""
    sources = {path: text for path, text in files.items() if crate_of(path)}
    sources = {path: text for path, text in sources.items() if not is_for_tests(path)}
    crates: dict[str, dict[str, set[str]]] = {}
    faces: dict[str, dict[str, str]] = {}
    for path, text in sources.items():
        crate, module = str(crate_of(path)), module_of(path)
        nodes = crates.setdefault(crate, {})
        if module:
            nodes.setdefault(module[0], set())
        else:
            faces[crate] = reexports(text)
    for path, text in sources.items():
        crate, module = str(crate_of(path)), module_of(path)
        if not module:
            continue
        face, nodes = faces.get(crate, {}), crates[crate]
        used_modules = {face.get(name, name) for name in references(module, source_of(text))}
        nodes[module[0]] |= (used_modules & nodes.keys()) - {module[0]}
    return crates


def cycles(nodes: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that all reach one another, each sorted."""
    reached = {node: reachable_from(nodes, node) for node in nodes}
    groups = {
        tuple(sorted({node} | {o for o in reached[node] if node in reached[o]})) for node in nodes
    }
    return sorted(list(group) for group in groups if len(group) > 1)


def reachable_from(nodes: dict[str, set[str]], start: str) -> set[str]:
    """All modules that `start` refers to, directly or through others."""
    seen: set[str] = set()
    ahead = set(nodes[start])
    while ahead:
        seen |= ahead
        ahead = set().union(*(nodes[node] for node in ahead)) - seen
    return seen


def count_lines(files: dict[PurePosixPath, str]) -> dict[str, int]:
    """Crate → lines of its source, tests not counted."""
    counts: dict[str, int] = {}
    for path, text in files.items():
        crate = crate_of(path)
        if crate and not is_for_tests(path):
            tests = TESTS.search(text)
            counted = text[: tests.start()] if tests else text
            counts[crate] = counts.get(crate, 0) + counted.count("\n")
    return counts
