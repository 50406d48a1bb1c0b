"""The files of a collection in memory: what a damage takes away is noted."""

import gzip
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.recordings.tables import DATA
from tests.tree import TREE

CASES = TREE / "tests" / "cases" / "data"
ADMIN = "mqadmin/"
SETTINGS = "collection.toml"
GROUPS = "consumer_groups.jsonl"

Draw = random.Random
NOTHING = ""
"""What a damage did that found nothing of its kind to take."""


@cache
def subjects() -> dict[str, Path]:
    """The collection of each recording and each case by name."""
    recordings = {path.parent.name: path for path in sorted(DATA.glob("*/collection"))}
    return recordings | {path.name: path for path in sorted(CASES.iterdir()) if path.is_dir()}


@cache
def _read(name: str) -> dict[str, bytes]:
    folder = subjects()[name]
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@dataclass
class Files:
    """A collection to be damaged.

    Attributes:
        name: of the recording or case.
        kept: content by path; what is packed (`.gz`) stays so.
        taken: (path, text) of all that a damage took away or changed.
        lost: paths that are gone.
        origin: path in the whole collection of each file that has another name now.
        addresses: real address by the pseudonym that stands in its place.
        ids_lost: whether client ids can no longer be told apart.
        admin_ms: how far the names of dumps are ahead of the moments that they were taken at.
        renamed: real group by the name that it has in logs.
        clocks: how far each clock that may count as right is ahead, at any time: of clocks that
            differ from all others alike no file shows which is right.
        strangers: groups of another cluster whose files lie among these.
    """

    name: str
    kept: dict[str, bytes]
    taken: list[tuple[str, bytes]] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    origin: dict[str, str] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    ids_lost: bool = False
    admin_ms: int = 0
    renamed: dict[str, str] = field(default_factory=dict)
    clocks: list[frozenset[int]] = field(default_factory=lambda: [frozenset({0})])
    strangers: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, name: str) -> "Files":
        """Those of a recording or case, whole."""
        return cls(name, dict(_read(name)))

    def text(self, path: str) -> bytes:
        """What the file says, unpacked as far as it goes."""
        content = self.kept[path]
        if not path.endswith(".gz"):
            return content
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)  # a damage may have cut it off
        return unpacking.decompress(content)

    def put(self, path: str, text: bytes) -> None:
        """Let the file say something else, which takes nothing away."""
        self.kept[path] = gzip.compress(text, 1, mtime=0) if path.endswith(".gz") else text

    def drop(self, path: str) -> None:
        """Take the file away."""
        self.taken.append((path, self.text(path)))
        del self.kept[path]
        self.lost.add(path)

    def change(self, path: str, text: bytes) -> None:
        """Let the file say something else, which takes away what it said."""
        before = self.text(path)
        if text != before:
            self.taken.append((path, before))
            self.put(path, text)

    def rename(self, path: str, other: str) -> None:
        """Give the file another name, in place of what has that name."""
        if path == other:
            return
        self.taken.append((path, self.text(path)))
        self.copy(path, other)
        del self.kept[path]
        self.origin.pop(path, None)

    def copy(self, path: str, other: str) -> None:
        """Add the file under a second name."""
        self.kept[other] = self.kept[path]
        self.origin[other] = self.origin.get(path, path)

    def asked_ms(self, path: str) -> int | None:
        """When a dump was really taken; None: of a file that is no dump."""
        return dump_ms(self.origin.get(path, path))

    def keep_lines(self, path: str, keep: Callable[[int, bytes], bool]) -> None:
        """Take the lines away that are not to be kept; asked by number, from 0, and line."""
        kept, gone = list[bytes](), list[bytes]()
        for number, line in enumerate(self.text(path).splitlines(keepends=True)):
            (kept if keep(number, line) else gone).append(line)
        if gone:
            self.put(path, b"".join(kept))
            self.taken += ((path, line) for line in gone)

    def logs(self) -> list[str]:
        """Paths of logs with more than a line."""
        named = (path for path in self.kept if ".log" in path and not path.startswith(ADMIN))
        return [path for path in named if self.text(path).count(b"\n") > 1]

    def dumps(self) -> list[str]:
        """Paths of what mqadmin printed."""
        return [path for path in self.kept if path.startswith(ADMIN)]

    def written(self, folder: Path, rng: random.Random | None = None) -> Path:
        """The files in a new folder, written in the order of their names or of the draw."""
        paths = sorted(self.kept)
        if rng is not None:
            rng.shuffle(paths)
        for path in paths:
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self.kept[path])
        return folder


def host_of(path: str) -> str:
    """The host that wrote a file: its folder below brokers, clients or proxy; name servers are one.

    >>> host_of("brokers/broker-a/config/topics.json"), host_of("namesrv/namesrv.log.gz")
    ('brokers/broker-a', 'namesrv')
    """
    parts = path.split("/")
    return parts[0] if parts[0] in ("namesrv", "mqadmin") else "/".join(parts[:2])


def dump_ms(path: str) -> int | None:
    """When a dump was taken, as its name says; None: of a file that is no dump."""
    if not path.startswith(ADMIN):
        return None
    head = path[len(ADMIN) :].partition("-")[0]
    return int(head) if head.isdigit() else None


def dumps_group(path: str, group: str) -> bool:
    """Whether the file is a dump of that group: its members, what they hold or its progress."""
    _, _, command = path[len(ADMIN) :].partition("-")
    words = command.partition("/")[0].removesuffix(".txt")
    for known in (
        "consumerProgress-s-",
        "consumerProgress-",
        "consumerConnection-",
        "consumerStatus-s-",
        "consumerStatus-",
    ):
        if words.startswith(known):
            rest = words.removeprefix(known)
            return rest == group or rest.startswith(group + "-")
    return False
