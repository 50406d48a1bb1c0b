"""REQUEST_MODE events: which topics a group pops, and since when (rocketmq.md §14).

Brokers log no change of a mode. Their stores show it when they were copied, clients when they got
an assignment. So a change lies between the last statement of the old mode and the first of the
new one, and all the time between counts as POP: no client is said to own what may have been shared.
So does the time in which brokers differ, and clients are told now POP, now PULL.
A change of the share number alone is dated by the first answer that only the new one explains: the
number and the members decide whether clients are given whole brokers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.rows import Row, event, finding
from rebalance_core.ingest.settings.mode_statements import (
    Statement,
    absences,
    statements_by_topic,
    without_differing,
)
from rebalance_core.model.events import REQUEST_MODE
from rebalance_core.model.group_settings import DEFAULT_SHARE_QUEUE_NUM, PULL_MODE, RequestMode
from rebalance_core.model.statuses import WARNING
from rebalance_core.protocol.windows import NOTIFIED_MS, OWN_PASS_MS
from rebalance_core.strategies.pop import pops_whole_brokers

_ANY_BROKER = ""


def request_mode_events(
    group: str, pieces: Iterable[Evidence], presence: Presence, context: ClusterContext
) -> tuple[list[Row], list[Row]]:
    """The events of every topic that was ever popped, and findings on what is not certain.

    Args:
        group: its name.
        pieces: its evidence, in order of time and place.
        presence: of its members.
        context: of the cluster.
    """
    events: list[Row] = []
    findings: list[Row] = []
    for topic, told in sorted(statements_by_topic(pieces, context).items()):
        statements, differing = without_differing(told)
        if all(one.mode == PULL_MODE for one in statements):
            continue
        shares = [one.mode for one in statements if one.mode is not None and one.mode.is_pop]
        if not shares:
            findings.append(_assumed(group, topic))
        share = shares[0] if shares else RequestMode(DEFAULT_SHARE_QUEUE_NUM)
        history = _History(group, topic, context.start_ms, share, presence)
        statements += absences(statements, context)
        statements.sort(key=lambda one: one.at_ms)
        if differing:
            findings.append(_differ(group, topic, statements, differing))
        for _, at_once in groupby(statements, key=lambda one: one.at_ms):
            history.take(list(at_once))
        events += history.events
        findings += history.findings
    return events, findings


@dataclass(slots=True)
class _History:
    """The mode of one topic over time; POP while any broker says so."""

    group: str
    topic: str
    start_ms: int
    pop: RequestMode
    """What a client's POP is taken for where no store was seen before."""
    presence: Presence
    events: list[Row] = field(default_factory=list)
    findings: list[Row] = field(default_factory=list)
    _now: RequestMode | None = None
    _brokers: dict[str, RequestMode] = field(default_factory=dict)
    _pulled_ms: int = 0
    _pulling: set[str] = field(default_factory=set)
    _answers: list[Statement] = field(default_factory=list)
    """What clients were given since a store last showed the mode of now."""

    def take(self, at_once: list[Statement]) -> None:
        """Statements of one moment."""
        for one in at_once:
            if one.broker is not None and one.mode is not None:
                self._brokers.pop(_ANY_BROKER, None)
                self._brokers[one.broker] = one.mode
            else:
                self._answered(one)
        popped = [mode for mode in self._brokers.values() if mode.is_pop]
        mode = popped[0] if popped else PULL_MODE
        self._turn(mode, self._first_of(mode, at_once[0]))
        if any(one.broker is not None for one in at_once):
            self._answers.clear()
        self._answers += (one for one in at_once if one.whole_brokers is not None)
        if not popped:
            self._pulled_ms = at_once[0].at_ms
            self._pulling |= {one.client_id for one in at_once if one.client_id is not None}

    def _answered(self, one: Statement) -> None:
        """A client does not say which broker it asked, nor how many shares it has."""
        for broker in self._brokers or (_ANY_BROKER,):
            known = self._brokers.get(broker, PULL_MODE)
            if one.mode is not None or not known.is_pop:
                self._brokers[broker] = one.mode or self.pop

    def _turn(self, mode: RequestMode, one: Statement) -> None:
        before, self._now = self._now, mode
        if mode == (before or PULL_MODE):
            return
        since_ms = self._since_ms(one) if before == PULL_MODE else one.at_ms
        at_ms = self.start_ms if before is None else since_ms
        self.events.append(
            event(
                REQUEST_MODE, at_ms, one.source, consumer_group=self.group, topic=self.topic,
                detail=str(mode),
            )
        )  # fmt: skip
        if before is not None:
            self.findings.append(self._dated(before, mode, at_ms, one))

    def _first_of(self, mode: RequestMode, one: Statement) -> Statement:
        """The answer that showed a new share number first, or the statement that tells it."""
        before = self._now
        if before is None or not (before.is_pop and mode.is_pop) or before == mode:
            return one
        return next((a for a in self._answers if self._tells(a, before, mode)), one)

    def _tells(self, answer: Statement, before: RequestMode, mode: RequestMode) -> bool:
        """Only the new share number explains the answer, also a moment earlier."""
        return all(
            _whole_brokers(before, members) != _whole_brokers(mode, members) == answer.whole_brokers
            for members in map(self.presence.processes, (answer.at_ms - NOTIFIED_MS, answer.at_ms))
        )

    def _since_ms(self, one: Statement) -> int:
        """The earliest moment at which the topic may have been popped.

        A client that had pulled asks again within 20 s.
        """
        since_ms = self._pulled_ms + 1
        if one.client_id in self._pulling:
            since_ms = max(since_ms, one.at_ms - OWN_PASS_MS)
        return since_ms

    def _dated(self, before: RequestMode, mode: RequestMode, at_ms: int, one: Statement) -> Row:
        return finding(
            "INGEST_REQUEST_MODE_CHANGED",
            f"{self.group} on {self.topic} went from {before} to {mode}. Brokers log no such "
            f"change; {one.source} shows it first, and what lies between counts as POP.",
            "Copy messageRequestMode.json, or collect the clients' logs, more often to know it "
            "better.",
            consumer_group=self.group,
            topic=self.topic,
            first_ms=at_ms,
            last_ms=one.at_ms,
            evidence={"before": before, "after": mode, "source": one.source},
        )


def _whole_brokers(mode: RequestMode, members: int) -> bool:
    return mode.share_queue_num is not None and pops_whole_brokers(mode.share_queue_num, members)


def _assumed(group: str, topic: str) -> Row:
    return finding(
        "INGEST_ASSUMED",
        f"popShareQueueNum of {group} on {topic} is in no file of the collection; taken as "
        f"{DEFAULT_SHARE_QUEUE_NUM}.",
        "Collect messageRequestMode.json of every broker.",
        consumer_group=group,
        topic=topic,
        evidence={"share_queue_num": DEFAULT_SHARE_QUEUE_NUM},
    )


def _differ(group: str, topic: str, statements: Iterable[Statement], times: int) -> Row:
    newest = {one.broker: one.mode for one in statements if one.broker is not None}
    modes = ", ".join(f"{broker} {mode}" for broker, mode in sorted(newest.items()))
    return finding(
        "INGEST_REQUEST_MODES_DIFFER",
        f"Clients of {group} were told to pull {topic} {times} times between answers to pop it: "
        "brokers differ in the mode, and each pass asks one of them at random. What some pop "
        "others pull, so messages are consumed twice; the topic counts as popped.",
        "Set one mode at every broker that has the topic (mqadmin setConsumeMode -c); a broker "
        "that was added later knows of none.",
        WARNING,
        consumer_group=group,
        topic=topic,
        evidence={"times": times, "stores": modes},
    )
