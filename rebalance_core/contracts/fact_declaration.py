"""Declarations of facts: the kinds of ``observed_facts``, and the facts in log lines."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from rebalance_core.model.times import MINUTE_MS, SECOND_MS

CLUSTER, GROUP, TOPIC, COMMIT = "cluster", "group", "topic", "commit"
"""The subject of a fact, which decides the module that combines it with other files' facts."""

BROKER, LOCK, NAME_SERVER, CLIENT = "broker.log", "lock.log", "namesrv.log", "rocketmq_client.log"
PROXY = "proxy.log"
"""The logs that are read."""

LOG_FOLDER, PROCESS_ID = "log", "pid"
"""Details of a row from a client's log: the log's folder, and the process (5.1+)."""

EPISODE_MS = 300_000
"""Refusals, drops or failures of an object that are further apart than this become separate rows; a
kind may set its own value.
"""

ONE_ROW, EPISODES, MOMENTS = "one row", "episodes", "moments"
"""How repeated facts are stored: as one row; as a row for each episode of trouble; or as a row for
each moment, so that dumps are not merged with later ones."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a fact.

    Attributes:
        name: its name.
        type: its Python type; ``NameValues`` stands for the values of the kind ``name``.
        optional: whether a fact may lack it.
        note: a remark.
    """

    name: str
    type: str = "str"
    optional: bool = False
    note: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.note})" if self.note else self.name


def fields(text: str) -> tuple[Field, ...]:
    """Declare comma-separated fields: ``name[?][: type] [(note)]``; ``?`` marks an optional one.

    >>> [str(field) for field in fields("rows: int, proxy? (if one was asked, and how)")]
    ['rows', 'proxy (if one was asked, and how)']
    >>> fields("by: dict[str, int] | None")[0].type
    'dict[str, int] | None'

    Raises:
        ValueError: the text does not declare fields.
    """
    declared, end = [], 0
    for match in _FIELD.finditer(text):
        if match.start() != end:
            break
        name, mark, type_of, note = match.groups()
        declared.append(Field(name, type_of or "str", bool(mark), note or ""))
        end = match.end()
    if end != len(text):
        raise ValueError(f"no field: {text[end:]}")
    return tuple(declared)


_FIELD = re.compile(
    r"([\w.]+)(\??)(?:: ((?:[\w. |]|\[(?:[^][]|\[[^][]*\])*\])*?))?(?: \(([^()]*)\))?(?:, |$)"
)


QUEUE = ("topic", "broker_name", "queue_id")


@dataclass(frozen=True, slots=True)
class FactKind:
    """A kind of ``observed_facts``.

    Attributes:
        name: the value of the column ``kind``.
        meaning: what is stated.
        details: the fields of ``details``; an unknown field of a row is empty.
        about: which of topic, broker_name, queue_id and client_id no row of the kind lacks.
        repeated: ONE_ROW, EPISODES or MOMENTS.
        window_ms: ``times`` counts windows of this length that have a statement; unused for
            MOMENTS.
        apart_ms: for EPISODES, statements further apart are separate.
    """

    name: str
    meaning: str
    repeated: str = ONE_ROW
    window_ms: int = SECOND_MS
    apart_ms: int = EPISODE_MS
    about: tuple[str, ...] = ()
    details: tuple[Field, ...] = ()

    @property
    def statement(self) -> str:
        """Return the statement and its fields."""
        named = ", ".join(map(str, self.details))
        return f"{self.meaning}: {named}" if named else self.meaning


@dataclass(frozen=True, slots=True)
class Thinning:
    """How a large job thins out statements with the same fields: it keeps the first.

    Attributes:
        window_ms: the first in each window of this length; None for the whole collection.
        per_place: separately for each broker, client or name server.
    """

    window_ms: int | None
    per_place: bool = True


ONE_A_SECOND = Thinning(SECOND_MS)
ONE_A_MINUTE = Thinning(MINUTE_MS)
ONE_A_PLACE = Thinning(None)


@dataclass(frozen=True, slots=True)
class LogFact:
    """A kind of fact that log lines state; its templates are in `ingest.parse`.

    Attributes:
        kind: its name in the templates.
        log: BROKER, LOCK, NAME_SERVER, CLIENT or PROXY.
        part: CLUSTER, GROUP, TOPIC or COMMIT.
        meaning: what it states.
        fields: its fields, besides `PROCESS_ID`.
        thinning: the statements that a large job keeps; None for all.
        with_pid: it carries `PROCESS_ID`, because all runs of a client append to one file.
        of_slaves: it is about the table of consumers of the process that logs it, even a slave;
            nothing else from a slave's log is used, except for `of_replicas`.
        of_replicas: it is about the broker's queues, whichever replica logs it.
        facts_only: only `observed_facts` uses it; it shows neither when a log begins and ends, nor
            that a group existed.
        rows: the kinds of ``observed_facts`` that it becomes; their details are its fields, or
            `LOG_FOLDER`.
    """

    kind: str
    log: str
    part: str
    meaning: str
    fields: tuple[Field, ...] = ()
    thinning: Thinning | None = None
    with_pid: bool = False
    of_slaves: bool = False
    of_replicas: bool = False
    facts_only: bool = False
    rows: tuple[FactKind, ...] = ()

    def __post_init__(self) -> None:
        if self.rows and self.part not in (CLUSTER, GROUP):
            raise ValueError(f"{self.kind}: observed_facts has rows on groups and the cluster only")
        if self.facts_only and not self.rows:
            raise ValueError(f"{self.kind}: no kind of observed_facts is declared for it")

    @property
    def key(self) -> str:
        """The field that names the group or topic; empty for the cluster."""
        return {GROUP: "group", COMMIT: "group", TOPIC: "topic", CLUSTER: ""}[self.part]


@dataclass(frozen=True, slots=True)
class DocumentFact:
    """A kind of fact that stores or dumps state, or that `ingest` infers.

    Attributes:
        kind: its name.
        meaning: what it states.
        fields: its fields.
    """

    kind: str
    meaning: str
    fields: tuple[Field, ...] = ()


def trouble(
    kind: str,
    log: str,
    part: str,
    fields: tuple[Field, ...],
    row: str,
    meaning: str,
    *,
    thinning: Thinning = ONE_A_SECOND,
    with_pid: bool = False,
    about: tuple[str, ...] = (),
    details: tuple[Field, ...] = (),
) -> LogFact:
    """Declare refusals, drops or failures that only `observed_facts` has, as episodes.

    Args:
        kind: as in `LogFact`, as are log, part and fields.
        log: the log that states it.
        part: CLUSTER or GROUP.
        fields: the fields of the fact.
        row: the kind of ``observed_facts``.
        meaning: what that kind states; its ``times`` counts the windows of `thinning`.
        thinning: as in `LogFact`, as is with_pid.
        with_pid: it carries `PROCESS_ID`.
        about: as in `FactKind`, as is details.
        details: fields of the fact, or `LOG_FOLDER`.
    """
    window_ms = thinning.window_ms or SECOND_MS
    rows = (FactKind(row, meaning, EPISODES, window_ms, about=about, details=details),)
    return LogFact(
        kind=kind,
        log=log,
        part=part,
        meaning=meaning,
        fields=fields,
        thinning=thinning,
        with_pid=with_pid,
        facts_only=True,
        rows=rows,
    )


def log_facts(facts: Iterable[LogFact]) -> dict[str, LogFact]:
    """Return the facts by kind.

    Raises:
        ValueError: a kind is declared twice.
    """
    return _once((fact.kind, fact) for fact in facts)


def document_facts(facts: Iterable[DocumentFact]) -> dict[str, DocumentFact]:
    """Return the facts by kind.

    Raises:
        ValueError: a kind is declared twice.
    """
    return _once((fact.kind, fact) for fact in facts)


def fact_kinds(others: Iterable[FactKind], logs: Iterable[LogFact]) -> dict[str, FactKind]:
    """Return the kinds of ``observed_facts`` by name: those that log facts become, and all others.

    Raises:
        ValueError: a kind is declared twice; several log facts may become the same kind.
    """
    of_logs = dict.fromkeys(kind for fact in logs for kind in fact.rows)
    return _once((kind.name, kind) for kind in (*others, *of_logs))


_Declared = TypeVar("_Declared", LogFact, DocumentFact, FactKind)


def _once(named: Iterable[tuple[str, _Declared]]) -> dict[str, _Declared]:
    declared: dict[str, _Declared] = {}
    for name, declaration in named:
        if name in declared:
            raise ValueError(f"{name} is declared twice")
        declared[name] = declaration
    return declared


CLIENT_TOPIC = FactKind(
    "CLIENT_TOPIC",
    "a client's own subscription, retry topics excluded",
    about=("topic", "client_id"),
    details=fields("expression"),
)
MESSAGE_RETENTION = FactKind(
    "MESSAGE_RETENTION",
    "the broker's message retention time (fileReservedTime)",
    MOMENTS,
    about=("broker_name",),
    details=fields("hours"),
)
ALLOCATION_FAILED = FactKind(
    "ALLOCATION_FAILED",
    "an allocation strategy threw an exception; a client's line names neither the group nor the "
    "client, a broker's line (QueryAssignment) names the group and topic; `times` counts minutes",
    EPISODES,
    MINUTE_MS,
    details=fields("strategy, message, log, pid"),
)
