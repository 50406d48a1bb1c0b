"""The output of every parser: facts with their place in a file, and refusals with reasons."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

Kind = TypeVar("Kind", covariant=True)
Values = TypeVar("Values", covariant=True)


@dataclass(slots=True)
class Stated(Generic[Kind, Values]):
    """A statement from one file, before statements from several files are combined into an event.

    Like a `Piece`, it is never changed, but not frozen.

    Attributes:
        kind: one of `contracts.log_facts.LOG_FACTS` for a log line, one of its parser's facts for a
            document.
        at_ms: its time, epoch milliseconds UTC; None for the time at which the file was written.
        values: the fields of its kind.
        source: ``file:line``, or ``file`` for a document.
    """

    kind: Kind
    at_ms: int | None
    values: Values
    source: str


if TYPE_CHECKING:
    Fact: TypeAlias = Stated[str, Mapping[str, object]]
else:
    Fact = Stated
"""A fact of any kind; `fact_subjects` types some kinds."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A line or document that looks relevant but does not parse.

    Attributes:
        source: ``file:line``, or ``file`` for a document.
        raw: its text, at most `RAW_LIMIT` characters.
        code: one of this module's codes.
        message: the problem, the value, and what is valid.
        earlier: whether it concerns the line that began the statement ending with the line just
            read.
    """

    source: str
    raw: str
    code: str
    message: str
    earlier: bool = field(default=False, compare=False)


def file_of(source: str) -> str:
    """Return the file in a ``file:line``. Its name may contain colons, as in an IPv6 client id.

    >>> file_of("mqadmin/1-consumerStatus-g/[::1]@1#2.txt:33"), file_of("[::1]@1#2.txt")
    ('mqadmin/1-consumerStatus-g/[::1]@1#2.txt', '[::1]@1#2.txt')
    """
    name, _, line = source.rpartition(":")
    return name if line.isdecimal() else source


UNPARSABLE_LINE = "UNPARSABLE_LINE"
"""A line that is where a row should be but is not a row."""
STRAY_LINE = "STRAY_LINE"
"""A line before the first or after the last table of an output."""
UNPARSABLE_DOCUMENT = "UNPARSABLE_DOCUMENT"
"""The text as a whole is not a valid fastjson document, or is only part of one."""
BAD_NUMBER = "BAD_NUMBER"
"""A number is missing, is not a number, or does not fit its Java type."""
BAD_TIME = "BAD_TIME"
"""A time does not have the expected format."""
BAD_ENTRY = "BAD_ENTRY"
"""An entry of a document lacks a field, or has the wrong type of value."""
WRONG_FILE = "WRONG_FILE"
"""The text is readable, but it is not the kind of file that this parser reads."""
UNKNOWN_COMMAND = "UNKNOWN_COMMAND"
"""The file is the output of a command that ingest does not read."""
OTHER_BROKER = "OTHER_BROKER"
"""The file belongs to another broker than its folder."""
OTHER_CLUSTER = "OTHER_CLUSTER"
"""The file belongs to another cluster or environment."""
OTHER_SUBJECT = "OTHER_SUBJECT"
"""The answer is about another group or client than its name states."""
SEVERAL_BROKERS = "SEVERAL_BROKERS"
"""The log contains the logs of several brokers."""
OLD_ANSWER = "OLD_ANSWER"
"""The answer is older than its name states."""
SET_APART = frozenset({OTHER_BROKER, OTHER_CLUSTER, OTHER_SUBJECT, SEVERAL_BROKERS, OLD_ANSWER})
"""The codes of whole files that ingest reads and sets aside before it dates any evidence."""

CUT_OFF = "is cut off: it ends "
"""The beginning of the message that refuses a truncated file."""

RAW_LIMIT = 2_000
"""Number of characters kept from a refused text: enough to recognise it, never a whole file."""


_SHAPES = (
    (r'\{\s*"status"\s*:[^\0]*"errMsg"\s*:', "a dashboard's JSON, not mqadmin's output"),
    (r'\{\s*"log"\s*:', "a container's log in Docker's JSON"),
    (r'\{\s*"(?:stream|streams|labels|timestamp|line)"\s*:', "a container's log in Loki's JSON"),
    (r"\S+ std(?:out|err) [FP] ", "a container's log as CRI writes it"),
    (r"\[pod/\S+\] ", "the output of kubectl logs --prefix"),
    (r"\d{4}-\d\d-\d\dT\S+Z ", "a container's log with its own times"),
    (r"[\w.-]+ *\| ", "the output of docker compose logs"),
    ("\x1b\\[", "a terminal's output with colours"),
    (r"[\[{]\s*+[\"\]{}\[]", "JSON"),
)


class Unreadable(ValueError):
    """Raised inside a parser for a row or entry; becomes an `Unread` and never leaves the parser.

    Attributes:
        code: one of this module's codes.
        message: the problem, the value, and what is valid.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def unread(source: str, raw: str, refusal: Unreadable) -> Unread:
    """Return the record of a refused text, with its raw text truncated at `RAW_LIMIT`."""
    return Unread(source, storable(raw), refusal.code, storable(refusal.message))


def looks_like(text: str) -> str:
    """Return the known wrong format that the text's beginning matches, or an empty string.

    >>> looks_like('{"status":0,"data":{},"errMsg":null}')
    "a dashboard's JSON, not mqadmin's output"
    >>> looks_like("broker-a  | 2026-11-21 11:28:55 INFO main - x")
    'the output of docker compose logs'
    """
    begin = text.lstrip("\ufeff \t\r\n")
    return next((shape for pattern, shape in _SHAPES if re.match(pattern, begin)), "")


def shown(value: object, limit: int = 80) -> str:
    """Return the value as quoted in a message, shortened if it is long."""
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= limit else f"{text[:limit]}…")


def storable(text: str) -> str:
    """Return the beginning of the text; bytes that are not UTF-8 are escaped."""
    beginning = text[:RAW_LIMIT].encode(errors="backslashreplace").decode()
    return beginning[:RAW_LIMIT]
