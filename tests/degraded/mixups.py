"""Files that people and tools mixed up, doubled, sorted, tore or packed."""

import bz2
import gzip
import lzma
import re

from tests.degraded.files import ADMIN, NOTHING, Draw, Files, host_of
from tests.degraded.logs import HEAD, events, named, some_logs

COMMAND = re.compile(r"(?P<ms>\d+)-(?P<command>[a-zA-Z]+)(?P<rest>.*)")
STORE = re.compile(r"brokers/[^/]+/config/\w+\.json")
ROTATED = re.compile(r"(.*)\.(\d+)\.log(\.gz)?$")
DATE = re.compile(rb"(?m)^(\d{4})-(\d\d)-(\d\d) (\d\d:\d\d:\d\d)(?:[.,](\d{3}))?")
DATES = (
    rb"\1/\2/\3 \4",
    rb"\1-\2-\3T\4",
    rb"\1-\2-\3 \4,000",
    rb"\3.\2.\1 \4",
    rb"[\1-\2-\3 \4]",
)
OFFSET = re.compile(rb'(?<=[{,])("?\d+"?:)(\d+)')


def answers_swapped(files: Files, rng: Draw) -> str:
    """Two answers of one command have each other's names."""
    by_command: dict[str, list[str]] = {}
    for path in files.dumps():
        if found := COMMAND.fullmatch(path[len(ADMIN) :]):
            by_command.setdefault(found["command"], []).append(path)
    several = sorted(command for command, paths in by_command.items() if len(paths) > 1)
    if not several:
        return NOTHING
    one, other = rng.sample(sorted(by_command[rng.choice(several)]), 2)
    texts = files.text(one), files.text(other)
    files.change(one, texts[1])
    files.change(other, texts[0])
    return f"{one}, {other}" if texts[0] != texts[1] else NOTHING


def answers_of_before(files: Files, rng: Draw) -> str:
    """The last answers of a command are those of its first round, as a cache returns them."""
    by_question: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for path in files.dumps():
        if found := COMMAND.fullmatch(path[len(ADMIN) :]):
            key = found["command"], found["rest"]
            by_question.setdefault(key, []).append((int(found["ms"]), path))
    commands = sorted({key[0] for key, asked in by_question.items() if len(asked) > 1})
    if not commands:
        return NOTHING
    command, changed = rng.choice(commands), []
    for (asked, _), paths in by_question.items():
        if asked == command and len(paths) > 1:
            (_, first), (_, last) = min(paths), max(paths)
            if files.text(first) != files.text(last):
                files.change(last, files.text(first))
                changed.append(last)
    return f"{command}: {named(changed)}" if changed else NOTHING


def stores_swapped(files: Files, rng: Draw) -> str:
    """The stores of two brokers lie in each other's folders; their logs do not."""
    stores = [path for path in files.kept if STORE.fullmatch(path)]
    brokers = sorted({path.split("/")[1] for path in stores})
    if len(brokers) < 2:
        return NOTHING
    one, other = rng.sample(brokers, 2)
    names = {path.split("/", 2)[2] for path in stores}
    for name in sorted(names):
        paths = f"brokers/{one}/{name}", f"brokers/{other}/{name}"
        if all(path in files.kept for path in paths):
            texts = files.text(paths[0]), files.text(paths[1])
            files.change(paths[0], texts[1])
            files.change(paths[1], texts[0])
    return f"{one}, {other}"


def store_of_before(files: Files, rng: Draw) -> str:
    """A store of offsets is a backup: each offset is lower."""
    paths = sorted(path for path in files.kept if path.endswith("consumerOffset.json"))
    if not paths:
        return NOTHING
    path, share = rng.choice(paths), rng.choice((0.0, 0.5, 0.9))
    text = OFFSET.sub(
        lambda found: found[1] + str(int(int(found[2]) * share)).encode(), files.text(path)
    )
    files.change(path, text)
    return f"{path}, {share:.0%}"


def store_cut(files: Files, rng: Draw) -> str:
    """A store ends in its middle, or is empty."""
    paths = sorted(path for path in files.kept if STORE.fullmatch(path))
    if not paths:
        return NOTHING
    path = rng.choice(paths)
    text = files.text(path)
    files.change(path, text[: rng.choice((0, 1, len(text) // 2, len(text) - 2))])
    return path


def clients_swapped(files: Files, rng: Draw) -> str:
    """The logs of two clients lie in each other's folders."""
    folders = sorted({host_of(path) for path in files.kept if path.startswith("clients/")})
    if len(folders) < 2:
        return NOTHING
    one, other = rng.sample(folders, 2)
    moved = {}
    for path in [path for path in files.kept if host_of(path) in (one, other)]:
        files.taken.append((path, files.text(path)))
        here, there = (one, other) if host_of(path) == one else (other, one)
        moved[path.replace(here, there, 1)] = files.kept.pop(path)
    files.kept |= moved
    return f"{one}, {other}"


def logs_merged(files: Files, rng: Draw) -> str:
    """One log of all brokers or clients in the order of time, as a collector gathers them."""
    role = rng.choice(("brokers/", "clients/"))
    logs = sorted(path for path in files.logs() if path.startswith(role))
    by_name: dict[str, list[str]] = {}
    for path in logs:
        by_name.setdefault(path.rsplit("/", 1)[1], []).append(path)
    several = sorted(name for name, paths in by_name.items() if len(paths) > 1)
    if not several:
        return NOTHING
    name = rng.choice(several)
    paths = by_name[name]
    parts = [event for path in paths for event in events(files.text(path))]
    parts.sort(key=lambda event: found[1] if (found := HEAD.match(event)) else b"")
    files.change(
        paths[0], b"".join(part if part.endswith(b"\n") else part + b"\n" for part in parts)
    )
    for path in paths[1:]:
        files.drop(path)
    return f"{name} of {named(paths)}"


def logs_doubled(files: Files, rng: Draw) -> str:
    """A log holds its lines twice, or lies in the folder of another host, too."""
    logs = sorted(files.logs())
    if not logs:
        return NOTHING
    path = rng.choice(logs)
    others = sorted(
        {host_of(p) for p in logs if p.split("/")[0] == path.split("/")[0]} - {host_of(path)}
    )
    if others and rng.random() < 0.6:
        place = path.replace(host_of(path), rng.choice(others), 1)
        if place in files.kept:
            files.change(place, files.text(path))
        else:
            files.kept[place] = files.kept[path]
            files.taken.append((path, b""))
        return f"{path} at {place}"
    files.put(path, files.text(path) * 2)
    return f"{path} twice"


def lines_sorted(files: Files, rng: Draw) -> str:
    """Logs through ``sort -u``."""
    logs = some_logs(files, rng)
    for path in logs:
        lines = sorted(set(files.text(path).splitlines(keepends=True)))
        files.change(path, b"".join(lines))
    return named(logs)


def bits_lost(files: Files, rng: Draw) -> str:
    """Some bytes of a file are others."""
    paths = sorted(path for path in files.kept if files.text(path) and path != "collection.toml")
    path = rng.choice(paths)
    text = bytearray(files.text(path))
    for _ in range(rng.choice((1, 5, 40))):
        at = rng.randrange(len(text))
        text[at] = rng.choice(b"0123456789abcXYZ \n\t\x00\xff{}[]@:-")
    files.change(path, bytes(text))
    return path


def lines_glued(files: Files, rng: Draw) -> str:
    """Line ends are lost, as where two threads write at once."""
    logs = some_logs(files, rng)
    for path in logs:
        lines = files.text(path).splitlines(keepends=True)
        glued = [line.rstrip(b"\r\n") if rng.random() < 0.02 else line for line in lines]
        files.change(path, b"".join(glued))
    return named(logs)


def packed(files: Files, rng: Draw) -> str:
    """Logs or stores in another packing, or a packing that ends early."""
    logs, how = some_logs(files, rng), rng.choice(("gz", "gz cut", "bz2", "xz"))
    for path in logs:
        text = files.text(path)
        plain = path.removesuffix(".gz")
        del files.kept[path]
        files.taken.append((path, text if how == "gz cut" else b""))
        if how == "gz":
            files.kept[f"{plain}.gz"] = gzip.compress(text, 1, mtime=0)
        elif how == "gz cut":
            whole = gzip.compress(text, 6, mtime=0)
            files.kept[f"{plain}.gz"] = whole[: len(whole) * 2 // 3]
        elif how == "bz2":
            files.kept[f"{plain}.bz2"] = bz2.compress(text, 1)
        else:
            files.kept[f"{plain}.xz"] = lzma.compress(text, preset=0)
    return f"{how}, {named(logs)}" if logs else NOTHING


def dates_written_otherwise(files: Files, rng: Draw) -> str:
    """Logs with other dates: slashes, a T, a comma before milliseconds, day first."""
    logs = some_logs(files, rng)
    form = rng.choice(DATES)
    for path in logs:
        files.change(path, DATE.sub(form, files.text(path)))
    return f"{form.decode()}, {named(logs)}" if logs else NOTHING


def rows_sorted(files: Files, rng: Draw) -> str:
    """Tables through ``sort``, their heads among the rows."""
    dumps = files.dumps()
    chosen = [path for path in dumps if rng.random() < 0.5]
    for path in chosen:
        files.change(path, b"".join(sorted(files.text(path).splitlines(keepends=True))))
    return named(chosen) if chosen else NOTHING
