"""Promises between two processes, or two mounts: what one writes, the other one sees at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from brokers.probe.alone import expect
from brokers.probe.partner import Doer, Partner, Side

# A race shows a broken promise only where both sides win it, so there are many races.
RACES = 40
ROUNDS = 8


def both_ways(here: Side, there: Partner) -> list[tuple[str, Doer, Doer]]:
    """(A name, the side that writes, the side that looks), in both directions."""
    return [("there", here, there), ("here", there, here)]


def check_names(here: Side, there: Partner) -> None:
    """A new name is found at once, also by a side that had looked for it before; so is its end."""
    for where, doer, looker in both_ways(here, there):
        for number in range(ROUNDS):
            name = f"name-{where}-{number}"
            expect(not looker.do("exists", name), "a name is found before it was made")
            doer.do("create", name, name)
            expect(looker.do("exists", name), f"a name that was made is not found {where}")
            expect(looker.do("read", name) == name, f"a new file has other content {where}")
            doer.do("remove", name)
            expect(not looker.do("exists", name), f"a removed name is still found {where}")


def check_listings(here: Side, there: Partner) -> None:
    """A new name is in the next listing, and not in the one after its removal."""
    for where, doer, looker in both_ways(here, there):
        for number in range(ROUNDS):
            name = f"listed-{where}-{number}"
            looker.do("list")
            doer.do("create", name, name)
            expect(name in looker.do("list"), f"a name that was made is not listed {where}")
            doer.do("remove", name)
            expect(name not in looker.do("list"), f"a removed name is still listed {where}")


def check_renames(here: Side, there: Partner) -> None:
    """A renamed file is found under its new name alone."""
    for where, doer, looker in both_ways(here, there):
        old, new = f"old-{where}", f"new-{where}"
        doer.do("create", old, "renamed")
        expect(looker.do("exists", old), f"a name that was made is not found {where}")
        expect(not looker.do("exists", new), "a name is found before it was made")
        doer.do("rename", old, new)
        expect(not looker.do("exists", old), f"a renamed file keeps its old name {where}")
        expect(looker.do("read", new) == "renamed", f"a renamed file has other content {where}")


def race_for_names(operation: str, prefix: str, here: Side, there: Partner) -> None:
    """Both make the same name; one of them has to find it taken, and its content is the other's.

    In turn both at once, one after the other, and the other one first.
    """
    for number in range(RACES):
        name = f"{prefix}-{number}"
        for side in (here, there):
            # A side may cache that the name does not exist, which the race has to survive.
            expect(not side.do("exists", name), "a name is found before it was made")
        won = make_both(operation, name, here, there, order=number % 3)
        expect(len(won) == 1, f"of two that made the same name {len(won)} succeeded")
        if operation != "make_folder":
            seen = [side.do("read", name) for side in (here, there)]
            expect(seen == won * 2, f"what {won[0]} made is seen as {seen}")


def make_both(operation: str, name: str, here: Side, there: Partner, *, order: int) -> list[str]:
    """The names of the sides that succeeded in making a name."""
    texts = operation != "make_folder"
    asked = [name, "there"] if texts else [name]

    def make_here() -> None:
        here.do(operation, name, *(["here"] if texts else []))

    ways: dict[str, Callable[[], object]]
    if order == 0:
        there.begin(operation, *asked)
        ways = {"here": make_here, "there": there.finish}
    elif order == 1:
        ways = {"here": make_here, "there": lambda: there.do(operation, *asked)}
    else:
        ways = {"there": lambda: there.do(operation, *asked), "here": make_here}
    return [who for who, make in ways.items() if succeeds(make)]


def succeeds(make: Callable[[], object]) -> bool:
    """Whether the name was free."""
    try:
        make()
    except FileExistsError:
        return False
    return True


def check_creation(here: Side, there: Partner) -> None:
    """One of two makes a file."""
    race_for_names("create", "created", here, there)


def check_links(here: Side, there: Partner) -> None:
    """One of two publishes a file."""
    race_for_names("publish", "published", here, there)


def check_folders(here: Side, there: Partner) -> None:
    """One of two makes a folder."""
    race_for_names("make_folder", "folder", here, there)


def check_token(here: Side, there: Partner) -> None:
    """A side that holds the owner token's file open sees at once that it was overwritten."""
    for where, doer, looker in both_ways(here, there):
        name = f"token-{where}"
        looker.do("create", name, "mine")
        looker.do("hold", name)
        doer.do("hold", name)
        for number in range(ROUNDS):
            text = f"{number}"
            doer.do("write", name, "0", text)
            seen = looker.do("look", name, "0")
            expect(seen == text, f"an overwrite of an open file is not seen {where}")


def check_tail(here: Side, there: Partner) -> None:
    """A block that was synced can be read by the other side, as the sealer reads a lane's tail."""
    for where, doer, looker in both_ways(here, there):
        name = f"lane-{where}"
        doer.do("create", name, "block 0")
        doer.do("hold", name)
        looker.do("hold", name)
        for number in range(1, ROUNDS):
            text = f"block {number}"
            doer.do("write", name, f"{number}", text)
            seen = looker.do("look", name, f"{number}")
            expect(seen == text, f"a synced block cannot be read {where}")


SHARED: Mapping[str, Callable[[Side, Partner], None]] = {
    "names seen by another process": check_names,
    "listings seen by another process": check_listings,
    "renames seen by another process": check_renames,
    "exclusive creation against another process": check_creation,
    "links against another process": check_links,
    "exclusive folders against another process": check_folders,
    "overwrites seen through another process's open file": check_token,
    "synced writes read by another process": check_tail,
}
