"""Output of mqadmin besides its tables: warnings from its JVM and loggers, and failures."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from rebalance_core.ingest.fact import (
    CUT_OFF,
    STRAY_LINE,
    UNPARSABLE_DOCUMENT,
    UNPARSABLE_LINE,
    WRONG_FILE,
    Fact,
    Stated,
    Unread,
    Unreadable,
    shown,
    storable,
    unread,
)

NOT_ONLINE = 206
"""``ResponseCode.CONSUMER_NOT_ONLINE``."""

_ANSI = re.compile(r"\x1b\[[0-9;?]*+[ -/]*+[@-~]")
_BROKEN = re.compile("[\x00-\x08\x0b-\x1f\x7f\ufffd\ud800-\udfff]")
_NOISE = re.compile(
    r"RocketMQLog:WARN |log4j:WARN |SLF4J: |SLF4J\(|Picked up |WARNING: |WARN StatusLogger "
    r"|Java HotSpot\(TM\) |OpenJDK (?:64-Bit|Client|Server|Zero) "
    r"|[0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3} \|-(?:INFO|WARN|ERROR) in "
    r"|[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3} \[[^\]]*+\] (?:TRACE|DEBUG|INFO|WARN|ERROR) "
    # the command line, copied with its output
    r"|[^\n$>]{0,100}[$#>] ?(?:(?:ba)?sh )?[\w./~-]*mqadmin(?:\.cmd)? [A-Za-z]+ "
    r"|For more information, please visit the url, |See https?://\S*+ for further details"
    # a prompt, or messages from shells and ssh
    r"|(?:\[?[\w.-]+@[\w.-]+[: ][^\n$#>]{0,80}[$#>]|(?:ba)?sh-[\d.]+[$#])(?: |$)"
    r"|\+ \S|[$>] ?(?:\S|$)|(?:real|user|sys)\s++\d++m[\d.]++s\s*$|logout\s*$|exit\s*$"
    r"|Last login: |Script (?:started|done)"
    r"|Connection to \S++ closed|Warning: Permanently added |Pseudo-terminal "
)
_FRAME = re.compile(r"\s++at [\w.$/@<]|\s++\.\.\. [0-9]++ ")
_THROWN = re.compile(
    r"\s*+(?:Caused by: |Suppressed: |Exception in thread \"[^\"]*+\" )?"
    r"(?P<name>(?:[A-Za-z_$][\w$]*+\.)+[\w$]*+)(?::(?P<message>.*+))?"
)
_CODE = re.compile(r"\bCODE: ([0-9]{1,9})\b")


_NARROWEST = 40
"""Minimum number of columns in a terminal."""


def rejoined(text: str) -> str | None:
    """Return the output with the lines rejoined that a terminal had wrapped, or None if there were
    none.

    Lines as long as the longest line continue on the next. Each keeps the number of the line where
    it begins, with blank lines in place of those joined to it. If the last line end is missing, so
    it is in the result.
    """
    lines = [line.rstrip("\r") for line in text.split("\n")]
    width = max(map(len, lines))
    if width < _NARROWEST or all(len(line) < width for line in lines[:-1]):
        return None
    whole: list[list[str]] = []
    begin, goes_on = 0, False
    for number, line in enumerate(lines):
        begin = begin if goes_on else number
        whole.append([])
        whole[begin].append(line)
        goes_on = len(line) == width
    joined = "\n".join(map("".join, whole))
    return joined if text.endswith("\n") else joined.rstrip("\n")


_ALIGNED = "\t  "
"""The number of blanks beyond a multiple of eight that ``unexpand`` leaves. Spreadsheet cells have
no blanks after tabs, and a tab for every two blanks leaves at most one blank.
"""


@dataclass(frozen=True, slots=True)
class Line:
    """A line that the command itself printed.

    Attributes:
        text: the text without its line end.
        source: the file and the line number.
        whole: False if the output ends inside the line.
        broken: whether it contains control or broken characters.
    """

    text: str
    source: str
    whole: bool
    broken: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """The output of one command, split into its parts.

    Attributes:
        lines: the command's own output, without blank lines.
        others: `admin_error` and `no_output` facts, and the refusals of broken lines, which are
            also among the lines so that a table knows where it is torn.
    """

    lines: list[Line]
    others: list[Fact | Unread]

    @property
    def readable(self) -> list[Line]:
        """Return the lines without control or broken characters."""
        return [line for line in self.lines if not line.broken]


def read_output(text: str, source: str) -> Output:
    """Split the output into its parts: drop ANSI codes, CRs and noise, and turn stacks into facts.

    Facts:
        no_output: the command printed nothing of its own on standard output, as happens when its
            object does not exist or the query failed; no fields
        admin_error: the command failed: exception (class of the root cause), code (the answer's
            ResponseCode; None without an answer), message
    """
    lines: list[Line] = []
    stacks: list[_Stack] = []
    others: list[Fact | Unread] = []
    text = text.removeprefix("\ufeff")
    texts = (text.expandtabs() if _ALIGNED in text else text).split("\n")
    for number, raw in enumerate(texts, start=1):
        line = _ANSI.sub("", raw).rstrip("\r").replace("\t", "  ")
        where = f"{source}:{number}"
        if not line or line.isspace() or _NOISE.match(line) or (stacks and _FRAME.match(line)):
            continue
        if (thrown := _thrown(line)) is not None:
            _join(stacks, thrown, line, where)
            continue
        broken = bool(_BROKEN.search(line))
        if broken:
            refusal = Unreadable(UNPARSABLE_LINE, "the line holds control or broken characters")
            others.append(unread(where, line, refusal))
        lines.append(Line(line, where, number < len(texts), broken))
    others = [*(stack.fact() for stack in stacks), *others]
    if not others and not lines:
        return Output([], [Fact("no_output", None, {}, source)])
    return Output(lines, others)


def parse_other(text: str, source: str) -> list[Fact | Unread]:
    """Read the failures of a command that makes a change or whose answer contains nothing of
    interest.
    """
    return [piece for piece in read_output(text, source).others if isinstance(piece, Stated)]


def read_lines(lines: Iterable[Line], read: Callable[[Line], Fact | None]) -> list[Fact | Unread]:
    """Apply ``read`` to each line; yield an `Unread` for each line that it refuses.

    It must refuse broken lines (`whole`), which have already been refused.
    """
    results: list[Fact | Unread] = []
    for line in lines:
        try:
            fact = read(line)
        except Unreadable as refusal:
            if not line.broken:
                results.append(unread(line.source, line.text, refusal))
        else:
            if fact is not None and not line.broken:
                results.append(fact)
    return results


def whole(line: Line) -> str:
    """Return the text of a row whose last column could have been truncated without a trace.

    Raises:
        Unreadable: the output ends inside the line, or it is broken.
    """
    if not line.whole:
        raise Unreadable(UNPARSABLE_LINE, f"{CUT_OFF}inside a row")
    if line.broken:
        raise Unreadable(UNPARSABLE_LINE, "the line holds control or broken characters")
    return line.text


FIRST_ROW = "its first row"
"""What is missing from a table that ends after its header."""


def cut_off(source: str, lines: list[Line], missing: str) -> Unread:
    """Return the refusal of an output that lacks the end that every complete output has."""
    last = lines[-1].text if lines else ""
    return unread(source, last, Unreadable(UNPARSABLE_DOCUMENT, f"{CUT_OFF}before {missing}"))


def stray(line: Line) -> Unreadable:
    """Return the refusal of a line before or after all tables, which cannot be a table row."""
    return Unreadable(STRAY_LINE, f"{shown(line.text)} stands outside of the output")


def unheaded(
    results: Iterable[Fact | Unread], others: Iterable[Fact | Unread] = ()
) -> Iterator[Fact | Unread]:
    """Yield the results of an output without a table, with stray lines as rows that could not be
    parsed.

    Lines around a failure (in `others`) are not yielded, because there is no table then.
    """
    failed = any(isinstance(piece, Stated) for piece in others)
    for piece in results:
        if isinstance(piece, Unread) and piece.code == STRAY_LINE and not failed:
            yield replace(piece, code=UNPARSABLE_LINE)
        else:
            yield piece


def marked(results: list[Fact | Unread]) -> list[Fact | Unread]:
    """Return the results; if rows may be missing, each fact is marked as partial."""
    if not is_partial(results):
        return results
    return [
        replace(piece, values={**piece.values, PARTIAL: True})
        if isinstance(piece, Stated)
        else piece
        for piece in results
    ]


PARTIAL = "partial"
"""A fact value from a document with more content than was read, so that missing entries may
exist.
"""


def is_partial(results: Iterable[Fact | Unread]) -> bool:
    """Return True if rows may be missing, so that absence from the results proves nothing."""
    return any(isinstance(piece, Unread) and piece.code != STRAY_LINE for piece in results)


def foreign(line: Line, expected: str) -> Unreadable:
    """Return the refusal of a line that no rule of the format covers."""
    if line.text.startswith("#"):
        return Unreadable(
            WRONG_FILE, f"{shown(line.text)} is not the header of a table of {expected}"
        )
    return Unreadable(UNPARSABLE_LINE, f"{shown(line.text)} is not a line of {expected}")


@dataclass(slots=True)
class _Stack:
    """A printed failure: its exceptions, from the outermost to the root cause."""

    source: str
    exception: str
    text: str

    def fact(self) -> Fact:
        code = _CODE.search(self.text)
        values = {
            "exception": storable(self.exception),
            "code": int(code[1]) if code else None,
            "message": storable(self.text),
        }
        return Fact("admin_error", None, values, self.source)


def _thrown(line: str) -> re.Match[str] | None:
    match = _THROWN.fullmatch(line)
    if match is None or not match["name"].endswith(("Exception", "Error", "Throwable")):
        return None
    return match


def _join(stacks: list[_Stack], thrown: re.Match[str], line: str, source: str) -> None:
    message = (thrown["message"] or "").strip()
    if line.lstrip().startswith("Caused by: ") and stacks:
        stacks[-1].exception, stacks[-1].text = thrown["name"], message
    else:
        stacks.append(_Stack(source, thrown["name"], message))
