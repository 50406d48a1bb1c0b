"""Files, dumps and lines that are missing: not copied, rotated away, never answered.

Nothing is chosen by what a line means: one of any template may be lost.
"""

import random
import re
from collections.abc import Callable

from tests.degraded.files import ADMIN, GROUPS, NOTHING, SETTINGS, Draw, Files
from tests.degraded.logs import HEAD, MESSAGE, named, some_logs

WORDS = re.compile(rb"[A-Za-z][A-Za-z' _-]*")
LEVEL = re.compile(rb"^[^A-Za-z]*(INFO|DEBUG|TRACE|WARN|ERROR)\b")
COMMAND = re.compile(r"\d+-([A-Za-z]+)")
SHARES = (0.01, 0.05, 0.1, 0.3)


def files_dropped(files: Files, rng: Draw) -> str:
    """A share of all files was not copied."""
    share = rng.choice((0.02, 0.1, 0.3, 0.6))
    paths = [path for path in sorted(files.kept) if rng.random() < share]
    return _dropped(files, paths or [rng.choice(sorted(files.kept))])


def folder_dropped(files: Files, rng: Draw) -> str:
    """A folder: of a host, of a role, of copies of a store, of clients' answers."""
    folders = {
        "/".join(path.split("/")[:depth])
        for path in files.kept
        for depth in (1, 2, 3)
        if path.count("/") >= depth
    }
    if not folders:
        return NOTHING
    folder = rng.choice(sorted(folders))
    return _dropped(files, [path for path in files.kept if path.startswith(folder + "/")], folder)


def round_dropped(files: Files, rng: Draw) -> str:
    """The dumps after or before a moment were not kept."""
    dated = [(ms, path) for path in files.dumps() if (ms := files.asked_ms(path))]
    if not dated:
        return NOTHING
    at = rng.choice(sorted(dated))[0]
    later = rng.random() < 0.7
    return _dropped(
        files,
        [p for ms, p in dated if (ms > at if later else ms < at)],
        f"dumps {'after' if later else 'before'} {at}",
    )


def _dropped(files: Files, paths: list[str], named: str = "") -> str:
    for path in paths:
        files.drop(path)
    return named or f"{len(paths)} files, {', '.join(paths[:3])}"


def log_head(files: Files, rng: Draw) -> str:
    """Logs begin late: what came before was rotated away, or tailed off in the middle of a line."""
    return _cut(files, rng, lambda heads, a, b: lambda at: at >= heads[b], torn=-1)


def log_tail(files: Files, rng: Draw) -> str:
    """Logs end early: they were copied before the rest was written, be it of a line."""
    return _cut(files, rng, lambda heads, a, b: lambda at: at <= heads[a], torn=1)


def log_middle(files: Files, rng: Draw) -> str:
    """A stretch of the logs is missing: a rotated file in between, or a disk that was full."""
    return _cut(files, rng, lambda heads, a, b: lambda at: not heads[a] < at < heads[b])


Keep = Callable[[bytes], bool]


def _cut(
    files: Files, rng: Draw, rule: Callable[[list[bytes], int, int], Keep], torn: int = 0
) -> str:
    logs = some_logs(files, rng)
    if not logs:
        return NOTHING
    heads = sorted({m[1] for path in logs for m in HEAD.finditer(files.text(path))})
    if len(heads) < 3:
        return NOTHING
    first, last = sorted(rng.sample(range(len(heads)), 2))
    keep = rule(heads, first, last)
    for path in logs:
        there = True

        def kept(_: int, line: bytes) -> bool:
            nonlocal there
            head = HEAD.match(line)
            there = keep(head[1]) if head else there
            return there

        files.keep_lines(path, kept)
        if torn:
            _tear(files, path, torn)
    return f"{heads[first].decode()} .. {heads[last].decode()} of {named(logs)}"


def _tear(files: Files, path: str, end: int) -> None:
    """Half of the cuts go through a line: the first one, or the last; drawn by what is left."""
    lines = files.text(path).splitlines(keepends=True)
    own = random.Random(f"{path} {len(lines)}")
    if len(lines) > 1 and own.random() < 0.5:
        line = lines[0 if end < 0 else -1]
        at = own.randrange(1, max(len(line), 2))
        lines[0 if end < 0 else -1] = line[at:] if end < 0 else line[:at]
        files.taken.append((path, line))
        files.put(path, b"".join(lines))


def lines_lost(files: Files, rng: Draw) -> str:
    """Lines were dropped at random, as loggers drop them under load."""
    share = rng.choice(SHARES)
    logs = some_logs(files, rng)
    for path in logs:
        files.keep_lines(path, lambda _, line: rng.random() >= share)
    return f"{share:.0%} of the lines of {named(logs)}" if logs else NOTHING


def template_lost(files: Files, rng: Draw) -> str:
    """Lines of one template were dropped: all, those of one second, or a share."""
    logs = some_logs(files, rng)
    kinds = sorted({_template(line) for path in logs for line in files.text(path).splitlines()})
    if not kinds:
        return NOTHING
    kind, how = rng.choice(kinds), rng.choice(("all", "half", "one second"))
    lines = [
        line for path in logs for line in files.text(path).splitlines() if _template(line) == kind
    ]
    second = HEAD.match(rng.choice(lines))

    def kept(_: int, line: bytes) -> bool:
        if _template(line) != kind:
            return True
        if how == "one second" and second:
            return not line.startswith(second[1])
        return how == "half" and rng.random() < 0.5

    for path in logs:
        files.keep_lines(path, kept)
    return f"{how} of {kind.decode('utf-8', 'replace')!r} of {named(logs)}"


def _template(line: bytes) -> bytes:
    message = line[m.end() :] if (m := MESSAGE.match(line[:200])) else line
    words = WORDS.match(message)
    return b" ".join(words[0].split()[:5]) if words else b""


def dumps_cut(files: Files, rng: Draw) -> str:
    """Dumps or stores end in their middle, as a killed mqadmin or a full disk leaves them."""
    paths = [*files.dumps(), *(path for path in files.kept if path.endswith(".json"))]
    paths = [path for path in paths if len(files.text(path)) > 1]
    if not paths:
        return NOTHING
    wanted = rng.choice((1, 1, 3, 10))
    chosen = rng.sample(paths, min(wanted, len(paths)))
    for path in chosen:
        text = files.text(path)
        at = rng.randrange(1, len(text))
        if rng.random() < 0.5:
            at = text.rfind(b"\n", 0, at) + 1
        files.taken.append((path, text))  # whose dump it is, its head says too
        files.put(path, text[:at])
    return named(chosen)


def command_missing(files: Files, rng: Draw) -> str:
    """No answer to a command was kept: the script did not ask, or mqadmin refused it."""
    command, paths = _of_a_command(files, rng)
    return _dropped(files, paths, command) if paths else NOTHING


def command_empty(files: Files, rng: Draw) -> str:
    """Each answer to a command is an empty file: mqadmin wrote its error to the terminal."""
    command, paths = _of_a_command(files, rng)
    return _emptied(files, paths, command) if paths else NOTHING


def answers_missing(files: Files, rng: Draw) -> str:
    """One broker answered nothing in the last round, and no file was kept."""
    broker, paths = _last_answers(files, rng)
    return _dropped(files, paths, broker) if paths else NOTHING


def answers_empty(files: Files, rng: Draw) -> str:
    """One broker answered nothing in the last round, and the files are empty."""
    broker, paths = _last_answers(files, rng)
    paths = [path for path in paths if files.text(path).strip()]
    return _emptied(files, paths, broker) if paths else NOTHING


def _of_a_command(files: Files, rng: Draw) -> tuple[str, list[str]]:
    by_command: dict[str, list[str]] = {}
    for path in files.dumps():
        if found := COMMAND.match(path.removeprefix(ADMIN)):
            by_command.setdefault(found[1], []).append(path)
    if not by_command:
        return NOTHING, []
    command = rng.choice(sorted(by_command))
    return command, by_command[command]


def _last_answers(files: Files, rng: Draw) -> tuple[str, list[str]]:
    """A broker, and its answers on each group's members when they were asked for last."""
    brokers = sorted({path.split("/")[1] for path in files.kept if path.startswith("brokers/")})
    answers: dict[tuple[str, str], tuple[int, str]] = {}
    for path in files.dumps():
        _, _, asked = path.removeprefix(ADMIN).partition("-consumerConnection-")
        for broker in brokers:
            if asked.endswith(f"-{broker}.txt"):
                group = asked.removesuffix(f"-{broker}.txt")
                newest = (files.asked_ms(path) or 0, path)
                answers[broker, group] = max(answers.get((broker, group), newest), newest)
    if not answers:
        return NOTHING, []
    chosen = rng.choice(sorted({broker for broker, _ in answers}))
    return chosen, [path for (broker, _), (_, path) in answers.items() if broker == chosen]


def _emptied(files: Files, paths: list[str], what: str) -> str:
    for path in paths:
        files.change(path, b"")
    return f"{what}, {len(paths)} files"


def only_dumps(files: Files, rng: Draw) -> str:
    """Dumps alone were sent, as a thread's author has them."""
    paths = [path for path in files.kept if not path.startswith((ADMIN, SETTINGS, GROUPS))]
    if not files.dumps() or not paths:
        return NOTHING
    if rng.random() < 0.3:
        paths += [path for path in (SETTINGS, GROUPS) if path in files.kept]
    return _dropped(files, paths)


def dumps_and_stores(files: Files, rng: Draw) -> str:
    """Dumps and stores were sent, and no log; or brokers' logs only are missing."""
    logs = [path for path in files.kept if ".log" in path and not path.startswith(ADMIN)]
    if rng.random() < 0.3:
        logs = [path for path in logs if path.startswith("brokers/")]
    return _dropped(files, logs) if logs else NOTHING


def level_raised(files: Files, rng: Draw) -> str:
    """From a moment on loggers write WARN and ERROR only."""
    logs = some_logs(files, rng)
    heads = sorted({m[1] for path in logs for m in HEAD.finditer(files.text(path))})
    if not heads:
        return NOTHING
    since = rng.choice(heads) if rng.random() < 0.8 else heads[0]
    for path in logs:
        there = True

        def kept(_: int, line: bytes) -> bool:
            nonlocal there
            if head := HEAD.match(line):
                level = LEVEL.match(line)
                quiet = level is not None and level[1] not in (b"WARN", b"ERROR")
                there = head[1] < since or not quiet
            return there

        files.keep_lines(path, kept)
    return f"from {since.decode()} in {named(logs)}"
