"""REQUEST_MODE events, and the place where each member's queues are allocated (rocketmq.md §2.8,
rocketmq.md §14).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from rebalance_core.contracts.fact_declaration import PROCESS_ID
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.collection import PROXIES
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.parse.channels import GRPC
from rebalance_core.ingest.rows import Event, Finding, event, finding
from rebalance_core.model.events import REQUEST_MODE
from rebalance_core.model.group_settings import BROKER_REBALANCE, CLIENT_REBALANCE, PROXY_REBALANCE
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.request_mode import (
    DEFAULT_SHARE_QUEUE_NUM,
    PULL_MODE,
    RequestMode,
    can_be_popped,
    parse_request_mode,
)
from rebalance_core.model.timeline import EVER_MS
from rebalance_core.model.verdicts import WARNING
from rebalance_core.protocol.settling_windows import NOTIFIED_MS, OWN_PASS_MS
from rebalance_core.strategies.pop import pops_whole_brokers

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        AllocatedPiece,
        BrokerAllocatedPiece,
        ClientPopQueuePiece,
        GroupEvidence,
        RequestModePiece,
    )

# Statements of stores and clients about the request mode of a group's topics (rocketmq.md §14).
DIFFER_MS = 120_000
"""If PULL occurs between two POP answers within this time, two brokers differ and the mode did not
change. A client queries a random broker every 1 s to 20 s.
"""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement from a broker's store or a client about the mode of a topic."""

    at_ms: int
    source: str
    mode: RequestMode | None
    """None for POP with a share number that the client does not report."""
    broker: str | None = None
    client_id: str | None = None
    whole_brokers: bool | None = None
    """Whether the client pops whole brokers; None if unknown or not popped."""
    error_ms: int = 0
    """How far off its time may be."""


def statements_by_topic(
    pieces: Iterable[GroupEvidence], context: ClusterContext
) -> dict[str, list[Statement]]:
    """Return the statements of stores and clients by topic, in the order of the evidence."""
    by_topic: dict[str, list[Statement]] = {}
    for piece in pieces:
        if piece.kind in ("request_mode", "broker_allocated", "client_pop_queue"):
            topic, statement = piece.values["topic"], _statement(piece, context.time_of(piece))
            if statement is not None and can_be_popped(topic):
                error_ms = context.error_of(piece.source)
                by_topic.setdefault(topic, []).append(replace(statement, error_ms=error_ms))
    return by_topic


def _statement(
    piece: RequestModePiece | BrokerAllocatedPiece | ClientPopQueuePiece, at_ms: int
) -> Statement | None:
    if piece.kind == "request_mode":
        mode = parse_request_mode(piece.values["mode"])
        return Statement(at_ms, piece.source, mode, broker=piece.place)
    if piece.kind == "client_pop_queue":
        client_id = piece.values.get("client_file")
        popped = not piece.values["dropped"]
        return Statement(at_ms, piece.source, None, client_id=client_id) if popped else None
    v = piece.values
    if v["mode"] is None:
        return None
    pulled = PULL_MODE if v["mode"] == "PULL" else None
    whole = None if pulled else v["whole_brokers"]
    return Statement(at_ms, piece.source, pulled, client_id=v["client_id"], whole_brokers=whole)


def absences(statements: Iterable[Statement], context: ClusterContext) -> list[Statement]:
    """Return a statement of PULL for each store that has no entry for the topic."""
    stated = {(statement.broker, statement.at_ms) for statement in statements}
    return [
        Statement(at_ms, source, PULL_MODE, broker=broker, error_ms=context.error_of(source))
        for broker, at_ms, source in context.mode_stores
        if (broker, at_ms) not in stated
    ]


def without_differing(statements: Sequence[Statement]) -> tuple[list[Statement], int]:
    """Return the statements without brokers' stray PULL answers, and the number of these.

    While one broker has POP and another has PULL, clients receive sometimes one answer and
    sometimes the other. The topic then counts as popped.

    Args:
        statements: one topic's statements, by time.
    """
    popped = sorted(
        statement.at_ms
        for statement in statements
        if statement.client_id is not None and statement.mode is None
    )
    kept = [statement for statement in statements if not _differs(statement, popped)]
    return kept, len(statements) - len(kept)


def _differs(statement: Statement, popped: Sequence[int]) -> bool:
    """Return True if a client receives PULL, and some client receives POP both shortly before and
    after.
    """
    if statement.client_id is None or statement.mode != PULL_MODE:
        return False
    after = bisect_right(popped, statement.at_ms)
    return 0 < after < len(popped) and popped[after] - popped[after - 1] <= DIFFER_MS


# Members that no longer query a broker for a topic although they are configured to
# (rocketmq.md §2.8).  Up to 5.3.1, a client that gets no answer to its first queries about a topic
# rebalances it itself until it is restarted. Its log shows only that the client itself did so.
@dataclass(frozen=True, slots=True)
class DividedAlone:
    """A period in which a member allocates a topic itself although it is configured to query the
    broker.

    Attributes:
        since: its first line.
        until: the first evidence that it queries again or was restarted, if any.
    """

    since: AllocatedPiece
    until: GroupEvidence | None = None

    @property
    def since_ms(self) -> int:
        """Return when it began, in epoch ms by the client's clock."""
        return self.since.at_ms or 0


def members_dividing_themselves(pieces: Iterable[GroupEvidence]) -> list[DividedAlone]:
    """Return, for each member and topic, the last period in which it allocates the topic itself
    although it is configured to query the broker.

    A member is configured to query if ``clientRebalance`` is false and its listener is not orderly,
    or if its process received an assignment for another topic.

    Args:
        pieces: evidence on a group, in chronological order.
    """
    asks: dict[str, int] = {}
    answered: set[tuple[str, object]] = set()
    divided: dict[tuple[str, str], DividedAlone] = {}
    for piece in pieces:
        over: list[tuple[str, str]] = []
        if piece.kind == "client":
            name, start_ms = (
                piece.values.get("client_file") or "",
                piece.values.get("start_ms") or 0,
            )
            over = [
                key
                for key, division in divided.items()
                if key[0] == name and division.since_ms < start_ms
            ]
            if piece.values["client_rebalance"] is False and not piece.values.get("ordered"):
                asks[name] = start_ms
        elif piece.kind == "broker_allocated":
            answered.add((piece.values["client_id"], piece.values.get(PROCESS_ID)))
            over = [(piece.values["client_id"], piece.values["topic"])]
        elif piece.kind == "allocated":
            place = piece.values["client_id"], piece.values["topic"]
            if place not in divided or divided[place].until is not None:
                divided[place] = DividedAlone(piece)
        for place in over:
            if place in divided and divided[place].until is None:
                divided[place] = replace(divided[place], until=piece)
    return [
        division
        for (client_id, _), division in divided.items()
        if asks.get(client_id, division.since_ms + 1) <= division.since_ms
        or (client_id, division.since.values.get(PROCESS_ID)) in answered
    ]


def divide_all(pieces: Iterable[GroupEvidence]) -> set[str]:
    """Return, by client id, those that received no broker's answer for any topic except retry
    topics.
    """
    pieces = list(pieces)
    asked = {
        piece.values["client_id"]
        for piece in pieces
        if piece.kind == "broker_allocated" and not is_retry_topic(piece.values["topic"])
    }
    alone = (
        division.since.values
        for division in members_dividing_themselves(pieces)
        if division.until is None
    )
    return {v["client_id"] for v in alone if not is_retry_topic(v["topic"])} - asked


# Where each member's queues are allocated: in the client, at the broker that it queries, or
# nowhere, because every gRPC client reaches every queue through its proxy (rocketmq.md §2.8, §14).
_GRPC_ID = re.compile(r"[^@]+@\d+@\d+@[0-9a-z]+")
"""ClientId in rocketmq-clients: host, process, number within the process, nanoseconds in base
36.
"""


def rebalance_modes(pieces: Iterable[GroupEvidence]) -> dict[str, str]:
    """Return CLIENT, BROKER or PROXY by client id, for the members for which a file shows it.

    ``clientRebalance`` is the member's own setting. A member that received an assignment, or pops,
    queries the broker. A member that allocated itself may also be configured to query but be
    orderly. If it is not orderly, it has given up querying; if only for some topics, it counts as a
    member that queries. A proxy lists gRPC clients together with remoting ones, which allocate for
    themselves; the form of the id distinguishes them.
    """
    pieces = list(pieces)
    modes: dict[str, str] = {}
    divided: dict[str, str] = {}
    proxied: dict[str, str] = {}
    for piece in pieces:
        if (
            piece.kind == "client"
            and piece.values["client_rebalance"] is not None
            and piece.values.get("client_file")
        ):
            divides_itself = piece.values["client_rebalance"]
            modes[piece.values["client_file"]] = (
                CLIENT_REBALANCE if divides_itself else BROKER_REBALANCE
            )
        elif piece.kind == "client_pop_queue" and piece.values.get("client_file"):
            modes[piece.values["client_file"]] = BROKER_REBALANCE
        elif piece.kind == "broker_allocated":
            modes[piece.values["client_id"]] = BROKER_REBALANCE
        elif piece.kind == "allocated":
            divided[piece.values["client_id"]] = CLIENT_REBALANCE
        elif piece.kind == "member" and piece.place.startswith(PROXIES):
            if _GRPC_ID.fullmatch(piece.values["client_id"]):
                proxied[piece.values["client_id"]] = PROXY_REBALANCE
        elif piece.kind == "consumer_connected" and piece.values.get("protocol") == GRPC:
            proxied[piece.values["client_id"]] = PROXY_REBALANCE
    gave_up = dict.fromkeys(divide_all(pieces) - proxied.keys(), CLIENT_REBALANCE)
    return divided | modes | gave_up | proxied


# REQUEST_MODE events: the topics that a group pops, and since when (rocketmq.md §14).
#
# Brokers do not log mode changes. Their stores show the mode at the time of the copy, clients when
# they received an assignment. So a change lies between the last evidence of the old mode and the
# first of the new mode, and the time in between counts as POP, so that no client is said to own
# what may have been shared. The same applies to times in which brokers differ and clients alternate
# between POP and PULL. A change in the share number alone is dated by the first answer that only
# the new number explains, as the number and the members decide whether clients pop whole brokers.
_ANY_BROKER = ""


def request_mode_events(
    group: str, pieces: Iterable[GroupEvidence], presence: Presence, context: ClusterContext
) -> tuple[list[Event], list[Finding]]:
    """Return the events of every topic that was ever popped, and findings about uncertainties.

    Args:
        group: its name.
        pieces: its evidence, ordered by time and place.
        presence: the presence of its members.
        context: the cluster's context.
    """
    events: list[Event] = []
    findings: list[Finding] = []
    for topic, stated in sorted(statements_by_topic(pieces, context).items()):
        statements, differing = without_differing(stated)
        if all(statement.mode == PULL_MODE for statement in statements):
            continue
        shares = [
            statement.mode
            for statement in statements
            if statement.mode is not None and statement.mode.is_pop
        ]
        if not shares:
            findings.append(_assumed(group, topic))
        share = shares[0] if shares else RequestMode(DEFAULT_SHARE_QUEUE_NUM)
        history = _History(group, topic, context.start_ms, share, presence)
        statements += absences(statements, context)
        statements = sorted(_placed(statements), key=lambda statement: statement.at_ms)
        if differing:
            findings.append(_differ(group, topic, statements, differing))
        for _, at_once in groupby(statements, key=lambda statement: statement.at_ms):
            history.take(list(at_once))
        events += history.events
        findings += history.findings
    return events, findings


def _placed(statements: Iterable[Statement]) -> Iterator[Statement]:
    """Yield the statements, with those by a clock that is off moved to the nearest possible time at
    which the others before or after agree.
    """
    statements = list(statements)
    dated = sorted((each.at_ms, _pops(each)) for each in statements if not each.error_ms)
    ends = [-EVER_MS, *(at_ms for at_ms, _ in dated), EVER_MS]
    for statement in statements:
        at_ms, error_ms, pops = statement.at_ms, statement.error_ms, _pops(statement)
        possible = [
            max(begin + 1, min(at_ms, end - 1))
            for number, (begin, end) in enumerate(pairwise(ends))
            if begin < at_ms + error_ms and at_ms - error_ms < end and begin + 1 < end
            if number in (0, len(dated)) or pops in (dated[number - 1][1], dated[number][1])
        ]
        if error_ms and possible:
            nearest_ms = min(possible, key=lambda ms: abs(ms - at_ms))
            statement = replace(statement, at_ms=nearest_ms)
        yield statement


def _pops(statement: Statement) -> bool:
    return statement.mode is None or statement.mode.is_pop


@dataclass(slots=True)
class _History:
    """The mode of a topic over time, which is POP while any broker has it."""

    group: str
    topic: str
    start_ms: int
    pop: RequestMode
    """The mode assumed for a client's POP if no earlier store shows it."""
    presence: Presence
    events: list[Event] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    _now: RequestMode | None = None
    _brokers: dict[str, RequestMode] = field(default_factory=dict)
    _stated_ms: int = 0
    _pulled_ms: int = 0
    _pulling: set[str] = field(default_factory=set)
    _answers: list[Statement] = field(default_factory=list)
    """The modes that clients received since a store last showed the current mode."""

    def take(self, at_once: list[Statement]) -> None:
        """Process the statements of one moment."""
        for statement in at_once:
            if statement.broker is not None and statement.mode is not None:
                self._brokers.pop(_ANY_BROKER, None)
                self._brokers[statement.broker] = statement.mode
            else:
                self._answered(statement)
        popped = [mode for mode in self._brokers.values() if mode.is_pop]
        mode = popped[0] if popped else PULL_MODE
        self._turn(mode, self._first_of(mode, at_once[0]))
        if any(statement.broker is not None for statement in at_once):
            self._answers.clear()
        self._answers += (statement for statement in at_once if statement.whole_brokers is not None)
        error_ms = max(statement.error_ms for statement in at_once)
        self._stated_ms = max(self._stated_ms, at_once[0].at_ms - error_ms)
        if not popped:
            self._pulled_ms = self._stated_ms
            self._pulling |= {
                statement.client_id for statement in at_once if statement.client_id is not None
            }

    def _answered(self, statement: Statement) -> None:
        """Process a client's answer, which names neither the queried broker nor its share
        number.
        """
        for broker in self._brokers or (_ANY_BROKER,):
            mode = self._brokers.get(broker, PULL_MODE)
            if statement.mode is not None or not mode.is_pop:
                self._brokers[broker] = statement.mode or self.pop

    def _turn(self, mode: RequestMode, statement: Statement) -> None:
        before, self._now = self._now, mode
        if mode == (before or PULL_MODE):
            return
        since_ms = self._since_ms(statement) if before == PULL_MODE else statement.at_ms
        at_ms = self.start_ms if before is None else since_ms
        self.events.append(
            event(
                REQUEST_MODE,
                at_ms,
                statement.source,
                consumer_group=self.group,
                topic=self.topic,
                detail=str(mode),
            )
        )
        if before is not None:
            self.findings.append(self._dated(before, mode, at_ms, statement))

    def _first_of(self, mode: RequestMode, statement: Statement) -> Statement:
        """Return the first answer that showed a new share number, or otherwise the statement
        itself.
        """
        before = self._now
        if before is None or not (before.is_pop and mode.is_pop) or before == mode:
            return statement
        return next((a for a in self._answers if self._tells(a, before, mode)), statement)

    def _tells(self, answer: Statement, before: RequestMode, mode: RequestMode) -> bool:
        """Return True if only the new share number explains the answer, even a moment earlier."""
        return all(
            _whole_brokers(before, members) != _whole_brokers(mode, members) == answer.whole_brokers
            for members in map(self.presence.processes, (answer.at_ms - NOTIFIED_MS, answer.at_ms))
        )

    def _since_ms(self, statement: Statement) -> int:
        """Return the earliest moment at which the topic may have been popped.

        A client that was pulling sends its next query within 20 s.
        """
        since_ms = self._pulled_ms + 1
        if statement.client_id in self._pulling:
            since_ms = max(since_ms, statement.at_ms - OWN_PASS_MS)
        return since_ms

    def _dated(
        self, before: RequestMode, mode: RequestMode, at_ms: int, statement: Statement
    ) -> Finding:
        by_store = statement.broker is not None
        return finding(
            "INGEST_REQUEST_MODE_CHANGED",
            f"{self.group} on {self.topic} changed from {before} to {mode}. Brokers do not log "
            f"this change; {statement.source} is the first file that shows it, and the time "
            "before it counts as POP.",
            "Copy messageRequestMode.json, or collect the clients' logs, more often to date the "
            "change more precisely.",
            consumer_group=self.group,
            topic=self.topic,
            first_ms=min(at_ms, self._stated_ms) if by_store else at_ms,
            last_ms=statement.at_ms + statement.error_ms,
            evidence={"before": before, "after": mode, "source": statement.source},
        )


def _whole_brokers(mode: RequestMode, members: int) -> bool:
    return mode.share_queue_num is not None and pops_whole_brokers(mode.share_queue_num, members)


def _assumed(group: str, topic: str) -> Finding:
    return finding(
        "INGEST_ASSUMED",
        f"popShareQueueNum of {group} on {topic} is in no file in the collection; "
        f"{DEFAULT_SHARE_QUEUE_NUM} is assumed.",
        "Collect messageRequestMode.json of every broker.",
        consumer_group=group,
        topic=topic,
        evidence={"share_queue_num": DEFAULT_SHARE_QUEUE_NUM},
    )


def _differ(group: str, topic: str, statements: Iterable[Statement], times: int) -> Finding:
    newest = {
        statement.broker: statement.mode for statement in statements if statement.broker is not None
    }
    modes = ", ".join(f"{broker} {mode}" for broker, mode in sorted(newest.items()))
    return finding(
        "INGEST_REQUEST_MODES_DIFFER",
        f"Brokers answered clients of {group} {times} times to pull {topic} between answers to "
        "pop it: brokers have different modes, and each pass queries a random broker. Some "
        "members pop what others pull, so messages are consumed twice; the topic counts as "
        "popped.",
        "Set one mode on every broker that has the topic (mqadmin setConsumeMode -c); a broker "
        "added later has no mode.",
        WARNING,
        consumer_group=group,
        topic=topic,
        evidence={"times": times, "stores": modes},
    )
