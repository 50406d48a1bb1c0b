"""A copy of a collection without addresses, host names, client ids and user names.

RocketMQ allocates queues by the order of client ids, so replaced names keep Java's string order,
and the copy has the same owners. The new names are random, so they reveal nothing without the key.
Names of clusters, brokers, groups and topics are kept.
"""

import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Collection as AnyCollection
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from glob import escape
from io import TextIOWrapper
from ipaddress import AddressValueError, IPv6Address
from pathlib import Path, PurePosixPath
from random import SystemRandom
from typing import IO, Self, cast

from rebalance_core.ingest.collection import (
    GIVEN_GROUPS,
    INCOMPLETE_COPY,
    PART,
    CollectedFile,
    Collection,
    open_collection,
)
from rebalance_core.ingest.collection_settings import SETTINGS_NAME, NotCollected
from rebalance_core.ingest.in_process import read_collection
from rebalance_core.model.errors import InputRefused, OutputExists, UsageError
from rebalance_core.model.queue import java_string_key

HEX = "[0-9a-fA-F]"
IPV4 = r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?!\d|\.\d)"
IPV6 = (
    rf"(?<![\w:])(?:(?:{HEX}{{1,4}}:){{7}}{HEX}{{1,4}}|"
    rf"(?:{HEX}{{1,4}}(?::{HEX}{{1,4}}){{0,6}})?::(?:{HEX}{{1,4}}:){{0,6}}{HEX}{{1,4}})(?!\w)"
)
_LIKE_A_CLIENT = rf"(?:{IPV6}|(?<![\w.%-])[\w.%-]{{1,255}})@(?:[\w#@%.-]{{0,255}}[\w#])?"
_INSTANCE = r"(?<![\w#.])\d+#\d+(?![\w#])"
_INSTANCE_NAME = r"(?<=instanceName)(?P<is>['\"]?\s*[=:]\s*['\"]?)(?P<instance>[^\s'\",;}]+)"
_CLIENT_IP = r"(?<=clientIP)(?P<at>['\"]?\s*[=:]\s*['\"]?)(?P<clientip>[^\s'\",;}]+)"
_USER = r"(?P<home>/(?:home|Users)/|user\.name['\"]?\s*[=:]\s*['\"]?)(?P<user>[^\s/'\",;:)}\]]+)"
_MESSAGE_ID = r"(?<![0-9A-Za-z])(?P<message>[0-9A-F]{32})(?![0-9A-Za-z])"
"""RocketMQ's message ids: the first eight digits are the address of a producer or broker."""
_PATTERNS = {
    "client": _LIKE_A_CLIENT,
    "users": _USER,
    "instances": _INSTANCE_NAME,
    "ips": _CLIENT_IP,
    "pid": _INSTANCE,
    "messages": _MESSAGE_ID,
    "v4": IPV4,
    "v6": IPV6,
}
_ADDRESSES = re.compile("|".join(f"(?P<{name}>{_PATTERNS[name]})" for name in ("pid", "v4", "v6")))
_NAMED_ADDRESS = re.compile(
    r"(?<![\w.-])([A-Za-z][\w.-]*)/(?=(?:\d{1,3}\.){3}\d{1,3}:\d)"  # Java's host/1.2.3.4:9876
    r"|(?<![\w.:/$-])((?:[A-Za-z0-9][\w-]*\.)+[a-z][a-z0-9-]*)(?=:\d{4,5}(?!\d|\.\w))"
    r"|(?<=[<'\"=;])([A-Za-z][\w-]*[\d-][\w-]*)(?=:\d{4,5}['\">;,\s])"
)
_SOURCE_FILE = re.compile(r"\.(?:java|go|cpp|cc|c|h|hpp|py|rs|cs|kt|scala|js|log|txt|json|class)$")
_REMOTE = re.compile(r"(?<![\w./-])(?:[\w.-]+@)?([A-Za-z0-9][\w.-]*)(?=:/)")
"""``[user@]host:/folder``, the form of the collector's sources."""
_CLIENT_ROOMS = re.compile(r"client_rooms=[^,)]*(?:, )?")
"""Rooms by the beginning of client ids, in a strategy text."""
_LIKE_A_HOST = re.compile(r"[\d.-]")
"""A host name that is a plain word is replaced in client ids and dumps, but not in every text."""
_FORMAT = "rebalance-redaction-1"
_MOST_HOSTS = 100_000
_MOST_PARTS = 8
"""Number of parts between ``@`` in a token at which an id may begin; a proxy's id has four
parts.
"""


@dataclass
class Names:
    """The names in a collection, both those to replace and those to keep."""

    hosts: set[str] = field(default_factory=set)
    instances: set[str] = field(default_factory=set)
    client_ids: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    users: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)

    def add_client(self, client_id: str) -> None:
        """Add an id with its host and its instance."""
        host, separator, instance = client_id.partition("@")
        self.client_ids.add(client_id)
        if separator:
            self.hosts.add(host)
            self.instances.add(instance)


@dataclass(frozen=True)
class Key:
    """The replacement names, by the names that they replace."""

    hosts: Mapping[str, str]
    bare: Mapping[str, str]
    heads: Mapping[str, str]
    tails: Mapping[str, str]
    folders: Mapping[str, str]
    users: Mapping[str, str]

    def client(self, client_id: str) -> str:
        """Return the replacement of a client id."""
        host, separator, instance = client_id.partition("@")
        return (
            self.hosts[host] + separator + self.instance(instance)
            if separator
            else self.bare[client_id]
        )

    def instance(self, instance: str) -> str:
        """Return the replacement for the part of a client id after its ``@``."""
        head, tail = _split(instance)
        return self.heads[head] + (self.tails[tail] if tail else "")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a key file.

        Raises:
            InputRefused: the file cannot be read or is not a key.
        """
        try:
            document: dict[str, object] = json.loads(path.read_text("utf-8"))
            if document.pop("format") != _FORMAT:
                raise ValueError("it has another format")
            tables = {kind: _names(kind, table) for kind, table in document.items()}
            return cls(**tables)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputRefused(
                f"{path} is not a key written by collect --redact: {error}"
            ) from error

    def restore(self, text: str) -> str:
        """Return a text about the copy, such as a finding, with the original names."""
        back: dict[str, dict[str, str]] = {
            kind: {name: was for was, name in table.items()} for kind, table in vars(self).items()
        }
        instance = f"(?:(?<=@)|(?<![\\w#])(?=\\d+#))(?P<head>{_any_of(back['heads'], '', '')})"
        tail = _any_of(back["tails"], "", "")
        parts = {
            kind: _any_of(back[kind], "", "") for kind in ("hosts", "bare", "folders", "users")
        }
        whole = [f"{instance}(?P<tail>{tail})?"] if back["heads"] else []
        whole += [f"(?P<{kind}>{part})" for kind, part in parts.items() if part]

        def restored(match: re.Match[str]) -> str:
            groups: dict[str, str | None] = match.groupdict()
            head, tail = groups.get("head"), groups.get("tail")
            if head:
                return back["heads"][head] + (back["tails"][tail] if tail else "")
            return back[str(match.lastgroup)][match[0]]

        return re.sub("|".join(whole), restored, text) if whole else text

    def write(self, path: Path) -> None:
        """Write the key so that only its owner can read it.

        Raises:
            OutputExists: something already exists.
            UsageError: the file cannot be written.
        """
        document = {"format": _FORMAT, **{name: dict(table) for name, table in vars(self).items()}}
        try:
            opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileExistsError as error:
            raise OutputExists(
                f"--redact {path} exists already; a key is never replaced"
            ) from error
        except OSError as error:
            raise UsageError(f"--redact {path} cannot be written: {error.strerror}") from error
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)


def _names(kind: str, table: object) -> dict[str, str]:
    """Return a table of a key file.

    Raises:
        ValueError: it is not a table of names.
    """
    if not isinstance(table, dict) or not all(isinstance(name, str) for name in table.values()):
        raise ValueError(f"{kind} is not a table of names")
    return table


def make_key(names: Names) -> Key:
    """Draw a new name for each name; within a kind they sort as the originals do in Java."""
    split = [_split(instance) for instance in names.instances]
    heads = {head for head, _ in split}
    # A client id begins with its host and an @, which decide its order among other hosts, or it has
    # no @.
    bare = {client_id for client_id in names.client_ids if "@" not in client_id}
    first = _in_order({f"{host}@" for host in names.hosts} | bare, java_string_key, _addresses)
    return Key(
        hosts={host: first[f"{host}@"] for host in sorted(names.hosts)},
        bare={client_id: first[client_id] for client_id in sorted(bare)},
        heads=_heads(heads),
        tails=_in_order({tail for _, tail in split if tail}, java_string_key, _numbers("", 12)),
        folders=_in_order(names.folders, java_string_key, _numbers("client-", 6)),
        users=_in_order(names.users, java_string_key, _numbers("user-", 6)),
    )


def _split(instance: str) -> tuple[str, str]:
    """Return the process id or name with the character that ends it, and what follows.

    >>> _split("77#123"), _split("DEFAULT"), _split("7@unit")
    (('77#', '123'), ('DEFAULT', ''), ('7@', 'unit'))
    """
    end = next((place for place, sign in enumerate(instance) if sign in "#@"), len(instance))
    return instance[: end + 1], instance[end + 1 :]


def _heads(heads: Iterable[str]) -> dict[str, str]:
    """Return numbers for process ids; other names stay on the same side of the numbers."""
    classes: dict[str, set[str]] = {"-": set(), "": set(), "i": set()}
    for head in heads:
        first = head[:1]
        classes["" if "0" <= first <= "9" else "i" if first > "9" else "-"].add(head)
    drawn: dict[str, str] = {}
    for prefix, group in classes.items():
        drawn |= _in_order(group, java_string_key, _numbers(prefix, 6))
    return {head: name + head[-1:] * head.endswith(("#", "@")) for head, name in drawn.items()}


def _in_order(
    names: AnyCollection[str],
    key: Callable[[str], bytes],
    draw: Callable[[int, AnyCollection[str]], list[str]],
) -> dict[str, str]:
    return dict(zip(sorted(names, key=key), draw(len(names), names), strict=True))


def _numbers(prefix: str, digits: int) -> Callable[[int, AnyCollection[str]], list[str]]:
    """Return the names of one length, a prefix and a number."""

    def draw(count: int, taken: AnyCollection[str]) -> list[str]:
        width = max(digits, len(str(count)) + 2)
        span = range(10 ** (width - 1), 10**width)
        return [f"{prefix}{number}" for number in sorted(SystemRandom().sample(span, count))]

    return draw


def _addresses(count: int, taken: AnyCollection[str]) -> list[str]:
    """Return addresses of equal length, so that no address is the beginning of another."""
    if count > _MOST_HOSTS:
        raise InputRefused(f"{count} hosts are too many to redact; valid: up to {_MOST_HOSTS}")
    drawn = SystemRandom().sample(range(100**3), 2 * count)
    free = [number for number in drawn if f"{_address(number)}@" not in taken]
    return [_address(number) for number in sorted(free[:count])]


def _address(number: int) -> str:
    """Return one of a million addresses.

    >>> _address(10_203)
    '10.101.102.103'
    """
    return f"10.{100 + number // 10_000}.{100 + number // 100 % 100}.{100 + number % 100}"


class Redaction:
    """Replaces the names in a collection's texts and paths with those in a key.

    Args:
        key: the names.
        names: what the collection names; known client ids are separated from what follows them.
    """

    def __init__(self, key: Key, names: Names) -> None:
        self._key = key
        self._names = names
        words = {host for host in names.hosts - names.kept if not _is_address(host)}
        odd = {
            client_id
            for client_id in names.client_ids
            if not re.fullmatch(_LIKE_A_CLIENT, client_id)
        }
        self._text = _pattern(odd, {word for word in words if _LIKE_A_HOST.search(word)})
        self._dump = _pattern(odd, words)

    @property
    def client_ids(self) -> AnyCollection[str]:
        """The ids of the collection."""
        return self._names.client_ids

    def text(self, text: str, *, dump: bool = False) -> str:
        """Return the text with other names; ``dump``: it is mqadmin's, whose columns have bare
        hosts.
        """
        if not dump:
            return self._text.sub(self._replaced, text)
        pieces, done, longer = [], 0, 0
        for match in self._dump.finditer(text):
            between, longer = _realigned(text[done : match.start()], longer)
            name = self._replaced(match)
            pieces += [between, name]
            longer += len(name) - len(match[0])
            done = match.end()
        return "".join([*pieces, _realigned(text[done:], longer)[0]])

    def path(self, path: str) -> str:
        """Return the path for a file in the collection."""
        parts = list(PurePosixPath(path).parts)
        dump = parts[0] == "mqadmin"
        for number, part in enumerate(parts):
            stem = part.removesuffix(".txt")
            if parts[0] == "clients" and number == 1:
                parts[number] = self._key.folders.get(part, part)
            elif stem in self._names.client_ids:
                parts[number] = self._key.client(stem) + part[len(stem) :]
            else:
                parts[number] = self.text(part, dump=dump)
        return "/".join(parts)

    def _replaced(self, match: re.Match[str]) -> str:
        kind, whole, key = match.lastgroup, match[0], self._key
        if whole in self._names.kept:
            return whole
        match kind:
            case "odd":
                return key.client(whole)
            case "client":
                begin, client_id = _known(whole, self._names.client_ids)
                if client_id:
                    before, behind = whole[:begin], whole[begin + len(client_id) :]
                    around = (_ADDRESSES.sub(self._replaced, text) for text in (before, behind))
                    return key.client(client_id).join(around)
                return _ADDRESSES.sub(self._replaced, whole)
            case "users":
                return match["home"] + key.users.get(match["user"], match["user"])
            case "instances":
                instance = match["instance"]
                return match["is"] + (
                    key.instance(instance) if instance in self._names.instances else instance
                )
            case "ips":
                return match["at"] + key.hosts.get(match["clientip"], match["clientip"])
            case "pid":
                return key.instance(whole) if whole in self._names.instances else whole
            case "messages":
                address = key.hosts.get(_address_in(whole))
                return _hex(address) + whole[8:] if address else whole
        return key.hosts.get(whole, whole)


def _realigned(text: str, longer: int) -> tuple[str, int]:
    """Return the text after a replaced name, with its columns realigned where possible.

    Args:
        text: the text from the end of a name, which may continue, like an address with its port.
        longer: the number of characters by which the line has grown.

    Returns:
        The text, and the number of characters by which the line is still longer at its end.
    """
    gap = re.search(r" +|\n", text) if longer else None
    if gap is None:
        return text, longer
    if gap[0] == "\n":
        return text, 0
    blanks = " " * max(1, len(gap[0]) - longer)
    return text[: gap.start()] + blanks + text[gap.end() :], 0


def _pattern(odd: Iterable[str], hosts: Iterable[str]) -> re.Pattern[str]:
    parts = {
        "odd": _any_of(odd, r"(?<!\w)", r"(?!\w)"),
        **_PATTERNS,
        "host": _any_of(hosts, r"(?<![\w.-])", r"(?![\w-]|\.\w)"),
    }
    return re.compile("|".join(f"(?P<{name}>{part})" for name, part in parts.items() if part))


def _any_of(names: Iterable[str], before: str, after: str) -> str:
    longest_first = sorted((name for name in names if name), key=len, reverse=True)
    return f"{before}(?:{'|'.join(map(re.escape, longest_first))}){after}" if longest_first else ""


def _known(token: str, client_ids: AnyCollection[str]) -> tuple[int, str]:
    """Return the first and longest of the ids in the token, and where it begins.

    An id may follow a proxy's address and an ``@``; what comes after it begins with a punctuation
    mark.
    """
    begins = [0, *(place + 1 for place, sign in enumerate(token) if sign == "@")][:_MOST_PARTS]
    ends = [
        len(token),
        *(place for place in range(len(token) - 1, 0, -1) if token[place] in ".-%@"),
    ]
    ids = (
        (begin, token[begin:end])
        for begin in begins
        for end in ends
        if token[begin:end] in client_ids
    )
    return next(ids, (0, ""))


def _is_address(host: str) -> bool:
    if re.fullmatch(IPV4, host):
        return all(int(part) < 256 for part in host.split("."))
    if ":" not in host:
        return False
    try:
        IPv6Address(host)
    except AddressValueError:
        return False
    return True


def _address_in(message_id: str) -> str:
    return ".".join(str(int(message_id[place : place + 2], 16)) for place in (0, 2, 4, 6))


def _hex(address: str) -> str:
    return "".join(f"{int(part):02X}" for part in address.split("."))


def find_names(collection: Collection) -> Names:
    """Read a collection as ingest does, and every text again for names that ingest does not
    need.
    """
    names = Names()
    settings = collection.settings
    names.kept |= {settings.cluster, *settings.brokers, *collection.broker_folders}
    tables = cast("Mapping[str, list[Mapping[str, str]]]", read_collection(collection).tables)
    for table in tables.values():
        for row in table:
            names.kept.update(
                row[column]
                for column in ("cluster", "consumer_group", "topic", "broker_name")
                if row.get(column)
            )
            for column in ("client_id", "other_client_id"):
                if row.get(column):
                    names.add_client(row[column])
    names.folders = {
        PurePosixPath(file.name).parts[1]
        for file in collection.files
        if file.name.startswith("clients/")
    }
    pattern = _pattern((), ())
    for file in collection.files:
        _scan(PurePosixPath(file.name).as_posix(), pattern, names)
        try:
            with open_text(Path(collection.path_of(file).path)) as text:
                for line in text:
                    _scan(line, pattern, names)
        except (OSError, EOFError, zlib.error):
            continue  # its name is replaced during the copy
    for failure in settings.failed:
        _scan(f"{failure.what} {failure.why}", pattern, names)
        names.hosts.update(match[1] for match in _REMOTE.finditer(failure.why))
    return names


def _scan(text: str, pattern: re.Pattern[str], names: Names) -> None:
    for match in pattern.finditer(text):
        whole = match[0]
        if whole in names.kept:
            continue
        match match.lastgroup:
            case "client":
                _scan_client(whole, names)
            case "users":
                names.users.add(match["user"])
            case "instances":
                names.instances.add(match["instance"])
            case "ips":
                names.hosts.add(match["clientip"])
            case "pid":
                names.instances.add(whole)
            case "messages":
                names.hosts.add(_address_in(whole))
            case _:
                names.hosts.update(address for address in (whole,) if _is_address(whole))
    for match in _NAMED_ADDRESS.finditer(text):
        host = next(filter(None, match.groups()))
        if host not in (*names.kept, "localhost") and not _SOURCE_FILE.search(host):
            names.hosts.add(host)


def _scan_client(token: str, names: Names) -> None:
    """Add a string that looks like a client id if an address or client host precedes its ``@``."""
    if _known(token, names.client_ids)[1]:
        return
    host, _, rest = token.partition("@")
    if _is_address(host):
        names.hosts.add(host)
    if host in names.hosts and not re.match(IPV4, rest):
        names.add_client(token)
    else:
        _scan(rest, _ADDRESSES, names)


def open_text(path: Path, mode: str = "r") -> TextIOWrapper:
    """Write a text file, compressed or not; bytes that are not text are written unchanged."""
    encoding, errors = "utf-8", "surrogateescape"
    if mode == "r":
        with path.open("rb") as file:
            if file.read(2) in (b"\xff\xfe", b"\xfe\xff"):
                encoding, errors = "utf-16", "surrogatepass"
    packed = path.name.removesuffix(PART).endswith(".gz")
    # The wrapper closes it.
    opened = gzip.open(path, f"{mode}b") if packed else path.open(f"{mode}b")  # noqa: SIM115
    return TextIOWrapper(cast(IO[bytes], opened), encoding, errors, newline="")


def redact_collection(folder: Path, output: Path, key_file: Path) -> dict[str, int]:
    """Write a copy of a collection with other names, and the key to them.

    Files that ingest does not read are left out. ``collection.toml`` is written last.

    Returns:
        The number of ``files`` copied and ``left_out``, and of ``hosts`` and ``clients`` renamed.

    Raises:
        InputRefused: there is no such collection.
        OutputExists: the output is not empty, or the key file exists.
        UsageError: the key is inside one of the folders, one folder is inside the other, or nothing
            can be written.
    """
    refuse_places(folder, output, key_file)
    collection = open_collection(folder)
    if collection.settings.continued:
        raise InputRefused(
            f"--input {folder}: its logs begin where those of {collection.settings.continues} "
            "ended, and a redacted collection cannot be continued; collect without --state"
        )
    names = find_names(collection)
    key = make_key(names)
    key.write(key_file)
    redaction = Redaction(key, names)
    failed = list(collection.settings.failed)
    listed = {failure.what for failure in failed}
    failed += [
        NotCollected(piece.source.removesuffix(PART), piece.message)
        for piece in collection.refused
        if piece.code == INCOMPLETE_COPY and piece.source.removesuffix(PART) not in listed
    ]
    paths: dict[str, str] = {}
    try:
        for file in collection.files:
            paths[file.name] = redaction.path(file.name)
            source = Path(collection.path_of(file).path)
            why = _copy(source, output / paths[file.name], file, redaction)
            if why:
                failed.append(NotCollected(file.name, why))
        text = _settings(collection, redaction, key, paths, failed)
        target = output / SETTINGS_NAME
        target.with_name(SETTINGS_NAME + PART).write_text(text, encoding="utf-8")
        target.with_name(SETTINGS_NAME + PART).replace(target)
    except OSError as error:
        raise UsageError(f"--output {output} cannot be written: {error.strerror}") from error
    return {
        "files": len(paths),
        "left_out": sum(len(names) for _, _, names in os.walk(folder)) - len(paths) - 1,
        "hosts": len(key.hosts),
        "clients": len(names.client_ids),
    }


def refuse_places(folder: Path | None, output: Path, key_file: Path) -> None:
    """Refuse places that would give the key away or overwrite something.

    Args:
        folder: the collection to redact; None if it is yet to be collected.
        output: the copy's folder.
        key_file: the key's file.

    Raises:
        OutputExists: the output is not empty, or the key file exists.
        UsageError: one of the three is inside another.
    """
    key, copy = key_file.parent.resolve() / key_file.name, output.resolve()
    if key.is_relative_to(copy):
        raise UsageError(
            f"--redact {key_file} is inside --output {output}: anyone who receives the folder "
            "would receive the key; name a file elsewhere"
        )
    if folder is not None:
        source = folder.resolve()
        if copy.is_relative_to(source) or source.is_relative_to(copy):
            raise UsageError(
                f"one of --output {output} and --input {folder} contains the other; name a new "
                "folder elsewhere"
            )
        if key.is_relative_to(source):
            raise UsageError(
                f"--redact {key_file} is inside --input {folder}; name a file elsewhere"
            )
    if key_file.exists() or key_file.is_symlink():
        raise OutputExists(f"--redact {key_file} exists already; a key is never replaced")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise OutputExists(f"--output {output} is not empty; name a new folder")


def _copy(source: Path, target: Path, file: CollectedFile, redaction: Redaction) -> str:
    """Return why the copy is incomplete; empty if it is complete."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + PART)
    if target.exists() or part.exists():
        raise AssertionError(f"two files would become {target}")
    dump = file.name.startswith("mqadmin/")
    why = ""
    with open_text(part, "w") as written, open_text(source) as text:
        while True:
            try:
                line = text.readline()
            except (OSError, EOFError, zlib.error) as error:
                why = f"the file that was redacted cannot be read to its end: {error}"
                break
            if not line:
                break
            if file.kind == GIVEN_GROUPS:
                line = _CLIENT_ROOMS.sub("", line)
            written.write(redaction.text(line, dump=dump))
    part.replace(target)
    return why


def _settings(
    collection: Collection,
    redaction: Redaction,
    key: Key,
    paths: Mapping[str, str],
    failed: Iterable[NotCollected],
) -> str:
    """Write the copy's ``collection.toml``, with patterns of names resolved into names."""
    settings = collection.settings
    lines = [f"cluster = {_toml(settings.cluster)}"]
    if settings.admin_time_zone:
        lines.append(f"admin_time_zone = {_toml(settings.admin_time_zone)}")
    lines += ["redacted = true", "", "[time_zones]"]
    for name, path in paths.items():
        zone = settings.zone_of(name)
        if zone:
            lines.append(f"{_toml(escape(path))} = {_toml(zone)}")
    lines += ["", "[expected]"]
    for what in ("brokers", "name_servers", "proxies"):
        servers = [redaction.text(name) for name in getattr(settings, what)]
        lines.append(f"{what} = [{', '.join(map(_toml, servers))}]")
    for client_id in sorted(redaction.client_ids):
        intervals = next((i for p, i in settings.clients.items() if fnmatchcase(client_id, p)), {})
        if intervals:
            lines += ["", f"[clients.{_toml(escape(key.client(client_id)))}]"]
            lines += [f"{name} = {value}" for name, value in intervals.items()]
    for failure in failed:
        why = _REMOTE.sub(lambda match: key.hosts.get(match[1], match[1]), failure.why)
        lines += ["", "[[failed]]", f"what = {_toml(redaction.path(failure.what))}"]
        lines.append(f"why = {_toml(redaction.text(why))}")
    return "\n".join(lines) + "\n"


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
