"""What a terminal, a shell, a paste or a newer mqadmin makes of the tables in dumps."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.degraded.files import ADMIN, NOTHING, Draw, Files
from tests.degraded.logs import named

COLUMN = re.compile(rb"\s+(?=#)")
FIELD = re.compile(rb"\s{2,}")
WIDTHS = (80, 100, 120, 132, 160, 200)
ADDED = {
    b"#LastHeartbeat": (b"2026-11-21 03:40:00", b"2026-11-21 03:40:01"),
    b"#Zone": (b"N/A", b"zone-1"),
    b"#Retries": (b"0", b"3"),
    b"#Remark": (b"-", b"ok"),
}
NOISE_BEFORE = (
    b"[root@mq-1 bin]# sh mqadmin consumerConnection -n 127.0.0.1:9876 -g x\n",
    b"$ ./mqadmin consumerProgress -n $NS\n",
    b"RocketMQLog:WARN No appenders could be found for logger "
    b"(io.netty.util.internal.InternalThreadLocalMap).\n"
    b"RocketMQLog:WARN Please initialize the logger system properly.\n",
    b"OpenJDK 64-Bit Server VM warning: ignoring option MaxPermSize=128m; "
    b"support was removed in 8.0\n",
    b"Picked up JAVA_TOOL_OPTIONS: -Xmx1g\n",
    b'Script started on 2026-11-21 03:37:58+00:00 [TERM="xterm-256color"]\n',
    b"bash: warning: setlocale: LC_ALL: cannot change locale (en_US.UTF-8)\n\n",
)
NOISE_AFTER = (
    b"[root@mq-1 bin]# \n",
    b'\nScript done on 2026-11-21 03:38:02+00:00 [COMMAND_EXIT_CODE="0"]\n',
    b"\x1b[0m\x1b[?2004h",
    b"logout\nConnection to 10.0.9.1 closed.\n",
)
NOISE_WITHIN = (
    b"03:37:59.120 [NettyClientWorkerThread_2] WARN  RocketmqRemoting - "
    b"closeChannel: close the connection to remote address[127.0.0.1:10911] result: true\n",
    b"Broadcast message from root@mq-1 (Sat Nov 21 03:37:59 2026):\n\n",
    b"^C\n",
)


@dataclass
class Table:
    """Lines of a dump under one head.

    Attributes:
        at: number of the head's line; the rows follow it.
        rows: fields of the head and of each row, as many in each.
    """

    at: int
    rows: list[list[bytes]]

    def lines(self) -> list[bytes]:
        """The head and the rows, in columns."""
        widths = [max(map(len, column)) + 2 for column in zip(*self.rows, strict=True)]
        return [
            b"".join(field.ljust(width) for field, width in zip(row, widths, strict=True)).rstrip()
            for row in self.rows
        ]


def _tables(text: bytes) -> Iterator[Table]:
    """Tables with at least a row, whose rows have as many fields as the head has columns."""
    lines = text.split(b"\n")
    for at, line in enumerate(lines):
        if not re.match(rb"#[A-Za-z]", line) or line.count(b"#") < 2 or line.endswith(b"#"):
            continue
        rows = [COLUMN.split(line.strip())]
        for below in lines[at + 1 :]:
            if not below.strip() or below.startswith(b"#"):
                break
            rows.append(FIELD.split(below.strip()))
        if len(rows) > 1 and all(len(row) == len(rows[0]) for row in rows):
            yield Table(at, rows)


def _some_dumps(files: Files, rng: Draw) -> list[str]:
    """One dump, those of a command, or all; none that is empty."""
    dumps = [path for path in files.dumps() if files.text(path).strip()]
    if not dumps:
        return []
    one, how = rng.choice(dumps), rng.choice(("file", "command", "all"))
    return [
        path
        for path in dumps
        if how == "all" or path == one or (how == "command" and _command(path) == _command(one))
    ]


def _command(path: str) -> str:
    return "-".join(path.removeprefix(ADMIN).split("-")[1:2]).partition(".")[0]


def _edit_tables(files: Files, paths: list[str], edit: Callable[[Table], None]) -> list[str]:
    edited = []
    for path in paths:
        text = files.text(path)
        lines = text.split(b"\n")
        for table in _tables(text):
            edit(table)
            lines[table.at : table.at + len(table.rows)] = table.lines()
        if lines != text.split(b"\n"):
            files.change(path, b"\n".join(lines))
            edited.append(path)
    return edited


def _with_tables(files: Files, rng: Draw) -> tuple[str, list[str]]:
    """A command whose dumps have tables, and these dumps."""
    by_command: dict[str, list[str]] = {}
    for path in files.dumps():
        if next(_tables(files.text(path)), None):
            by_command.setdefault(_command(path), []).append(path)
    if not by_command:
        return NOTHING, []
    command = rng.choice(sorted(by_command))
    return command, by_command[command]


def column_added(files: Files, rng: Draw) -> str:
    """A newer mqadmin prints a column more, at the end or in between."""
    command, paths = _with_tables(files, rng)
    head = rng.choice(sorted(ADDED))
    at_end, place = rng.random() < 0.5, rng.random()

    def edit(table: Table) -> None:
        place_of = len(table.rows[0]) if at_end else int(place * len(table.rows[0]))
        for row in table.rows:
            row.insert(place_of, head if row is table.rows[0] else rng.choice(ADDED[head]))

    edited = _edit_tables(files, paths, edit)
    return f"{head.decode()} of {command}, {'last' if at_end else f'{place:.1f}'}" * bool(edited)


def columns_moved(files: Files, rng: Draw) -> str:
    """Another mqadmin prints the columns in another order."""
    command, paths = _with_tables(files, rng)
    key = rng.random()

    def edit(table: Table) -> None:
        order = [*range(len(table.rows[0]))]
        random_of = Draw(f"{key} {len(order)}")
        random_of.shuffle(order)
        table.rows[:] = [[row[column] for column in order] for row in table.rows]

    return f"of {command}" * bool(_edit_tables(files, paths, edit))


def rows_refused(files: Files, rng: Draw) -> str:
    """A row has a value in a form that mqadmin does not print: of a spreadsheet, or a patch."""
    _, paths = _with_tables(files, rng)
    paths = rng.sample(paths, min(len(paths), rng.choice((1, 3, 100))))
    how = rng.choice(sorted(BAD_VALUES))

    def edit(table: Table) -> None:
        row = rng.choice(table.rows[1:])
        fit = [column for column, field in enumerate(row) if BAD_VALUES[how](field) != field]
        if fit:
            column = rng.choice(fit)
            row[column] = BAD_VALUES[how](row[column])

    edited = _edit_tables(files, paths, edit)
    return f"{how}, {named(edited)}" if edited else NOTHING


BAD_VALUES: dict[str, Callable[[bytes], bytes]] = {
    "another case": lambda field: field.swapcase(),
    "grouped digits": lambda f: b"1," + f.zfill(3)[-3:] if f.isdigit() else f,
    "an exponent": lambda f: f[:1] + b".0E+" + b"%d" % (len(f) - 1) if f.isdigit() else f,
    "quoted": lambda field: b'"' + field + b'"',
    "null": lambda field: b"null" if field == b"N/A" or field.isdigit() else field,
    "###": lambda field: b"###" if len(field) > 8 else field,
}


def shell_noise(files: Files, rng: Draw) -> str:
    """Prompts, warnings of the JVM and of shells, before, behind or within what mqadmin printed."""
    paths = _some_dumps(files, rng)
    where = rng.choice(("before", "after", "within"))
    choices = {"before": NOISE_BEFORE, "after": NOISE_AFTER, "within": NOISE_WITHIN}[where]
    noise = rng.choice(choices)
    for path in paths:
        text = files.text(path)
        if where == "within":
            lines = text.splitlines(keepends=True)
            at = rng.randrange(1, len(lines)) if len(lines) > 1 else 0
            files.change(path, b"".join([*lines[:at], noise, *lines[at:]]))
        else:
            files.change(path, noise + text if where == "before" else text + noise)
    return f"{noise[:30]!r} {where} {named(paths)}" if paths else NOTHING


def terminal_width(files: Files, rng: Draw) -> str:
    """Lines broken at the width of a terminal, or cut off there."""
    paths, width, cut = _some_dumps(files, rng), rng.choice(WIDTHS), rng.random() < 0.3

    def narrow(line: bytes) -> bytes:
        parts = [line[at : at + width] for at in range(0, len(line), width)] or [b""]
        return parts[0] if cut else b"\n".join(parts)

    changed = _edit_lines(files, paths, narrow)
    return f"{'cut' if cut else 'broken'} at {width}, {named(changed)}" if changed else NOTHING


def blanks_squeezed(files: Files, rng: Draw) -> str:
    """Each run of blanks is a single blank, as web pages, chats and ``tr -s`` leave it."""
    paths = _some_dumps(files, rng)
    changed = _edit_lines(files, paths, lambda line: re.sub(rb"(?<=\S) +(?=\S)", b" ", line))
    return named(changed) if changed else NOTHING


def tabs(files: Files, rng: Draw) -> str:
    """Blanks became tabs: of a spreadsheet, or of ``unexpand``."""
    paths, sheet = _some_dumps(files, rng), rng.random() < 0.5

    def tabbed(line: bytes) -> bytes:
        if sheet:
            return re.sub(rb"(?<=\S) {2,}(?=\S)", b"\t", line)
        blocks = [line[at : at + 8] for at in range(0, len(line), 8)]
        return b"".join(
            block.rstrip(b" ") + b"\t" if len(block) == 8 and block.endswith(b"  ") else block
            for block in blocks
        )

    changed = _edit_lines(files, paths, tabbed)
    return f"{'a sheet' if sheet else 'unexpand'}, {named(changed)}" if changed else NOTHING


def line_cut(files: Files, rng: Draw) -> str:
    """One line of one dump ends in its middle; half of the time the next one goes on there."""
    paths = [path for path in files.dumps() if files.text(path).count(b"\n") > 1]
    if not paths:
        return NOTHING
    path = rng.choice(paths)
    lines = files.text(path).split(b"\n")
    long = [number for number, line in enumerate(lines[:-1]) if len(line) > 1]
    if not long:
        return NOTHING
    number = rng.choice(long)
    cut = lines[number][: rng.randrange(1, len(lines[number]))]
    glued = rng.random() < 0.5
    lines[number : number + 2] = [cut + lines[number + 1]] if glued else [cut, lines[number + 1]]
    files.change(path, b"\n".join(lines))
    return f"line {number + 1} of {path}{', glued' if glued else ''}"


def _edit_lines(files: Files, paths: list[str], edit: Callable[[bytes], bytes]) -> list[str]:
    changed = []
    for path in paths:
        text = files.text(path)
        other = b"\n".join(edit(line) for line in text.split(b"\n"))
        if other != text:
            files.change(path, other)
            changed.append(path)
    return changed
