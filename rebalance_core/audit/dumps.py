"""What dumps and facts show, and what brokers have configured of groups and topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypedDict, TypeGuard, TypeVar

from rebalance_core.audit.case import PERSISTENT_MS, GroupCase, grouped, known_topics
from rebalance_core.audit.subscriptions import is_proxied
from rebalance_core.ingest.fact import file_of
from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LEAVE, CONSUMER_LOST, TOPIC_DELETED
from rebalance_core.model.group_settings import NODE
from rebalance_core.model.queue import (
    POP_RETRY_MARKS,
    MessageQueue,
    is_retry_topic,
    is_system_topic,
    retry_topic,
)
from rebalance_core.model.system_groups import is_system_group as is_system_group
from rebalance_core.model.times import HEARTBEAT_MS, MINUTE_MS, REBALANCE_WAIT_MS
from rebalance_core.model.verdicts import EMPTY
from rebalance_core.protocol.members import ALI_ONS, GO, library_of

if TYPE_CHECKING:
    from rebalance_core.contracts.row_parts import Dumped, NamesQueue
    from rebalance_core.contracts.rows import (
        CaseTopicsRow,
        ConsumerEventsRow,
        Fact,
        GroupAtBrokerFact,
        GroupAtProxyFact,
        GroupConfigFact,
        HeldQueueFact,
        ObservedMembersRow,
    )

# Which brokers have the group's configuration at the end.


def configurations(case: GroupCase) -> dict[str, GroupConfigFact]:
    """Broker -> the newest GROUP_CONFIG that still holds at the end."""
    newest: dict[str, GroupConfigFact] = {}
    for fact in sorted(case.facts["GROUP_CONFIG"], key=lambda one: one["last_ms"]):
        newest[fact["broker_name"]] = fact
    deleted = {fact["broker_name"]: fact["last_ms"] for fact in case.facts["GROUP_DELETED"]}
    return {
        broker: fact
        for broker, fact in newest.items()
        if fact["last_ms"] >= case.run.store_ms.get(broker, 0)
        and fact["last_ms"] >= deleted.get(broker, 0)
    }


def lacks_configuration(case: GroupCase, broker_name: str) -> bool:
    """True if the broker's store was collected and does not have the group."""
    return broker_name in case.run.store_ms and broker_name not in configurations(case)


# What the brokers say of a group's topics at the end.

READ, WRITE = 4, 2
DEFAULT_PERM = READ | WRITE


def may_assign(case: GroupCase) -> bool:
    """True if no file tells of some member whether it divides what it subscribes."""
    return any(row["rule_id"] == "INGEST_MAY_ASSIGN" for row in case.tables["findings"])


def perm_of(row: CaseTopicsRow) -> int:
    """Permission of a TOPIC_CONFIG row."""
    return DEFAULT_PERM if row["perm"] is None else row["perm"]


def is_deleted(row: CaseTopicsRow) -> bool:
    """True for the row of a deletion."""
    return row["event_type"] == TOPIC_DELETED


def configs(case: GroupCase, topic: str) -> list[CaseTopicsRow]:
    """The topic's configuration at each broker that has it, brokers in order."""
    rows = [r for r in case.tables["topics"] if r["topic"] == topic and not is_deleted(r)]
    return sorted(rows, key=lambda row: row["broker_name"] or "")


def subscribed_topics(case: GroupCase, *, retry: bool = False) -> list[str]:
    """Topics that members at the end subscribe, in order."""
    topics = {topic for row in case.members for topic in known_topics(row)}
    return sorted(topic for topic in topics if retry or not is_retry_topic(topic))


def last_topics(case: GroupCase) -> list[str]:
    """Topics of the members at the end, else those of the members that were the last to go."""
    if case.members:
        return subscribed_topics(case)
    ends = [row["to_ms"] for row in case.tables["memberships"] if row["to_ms"] is not None]
    last = max(ends, default=None)
    gone = (row for row in case.tables["memberships"] if ends and row["to_ms"] == last)
    return sorted({topic for row in gone for topic in known_topics(row)})


def readable_queues(case: GroupCase, topic: str) -> set[tuple[str, int]]:
    """(broker name, queue id) that the topic's configurations let consumers read."""
    return {
        (row["broker_name"], queue_id)
        for row in configs(case, topic)
        if perm_of(row) & READ
        for queue_id in range(row["read_queue_nums"] or 0)
    }


def unreadable_topics(case: GroupCase) -> dict[str, int]:
    """Topics that some broker has and none lets read, and since when, epoch ms."""
    topics = {row["topic"] for row in case.tables["topics"]}
    return {
        topic: max(row["event_ms"] for row in configs(case, topic))
        for topic in topics
        if configs(case, topic) and not readable_queues(case, topic)
    }


# Rows by the queue that they name.


def queue_of(row: NamesQueue) -> MessageQueue:
    """The queue that a row names."""
    return MessageQueue(row["topic"], row["broker_name"], row["queue_id"])


def by_topic(rows: list[OfQueue]) -> dict[str, list[OfQueue]]:
    """The rows of each topic, topics in order."""
    return grouped(sorted(rows, key=queue_of), lambda row: row["topic"])


EMPTY_LIST = ("0", "")
"""A number of members, in a fact's details."""
SAME_ROUND_MS = 120_000
"""Dumps of one group that lie no further apart were taken in one go."""


class Asked(TypedDict):
    """Which broker, or proxy, was asked and when."""

    asked_broker: str
    observed_ms: int


class ListedMember(TypedDict):
    """A member as a broker that was asked by name lists it."""

    asked_broker: str
    client_id: str
    client_addr: str | None
    observed_ms: int
    source: str


class Answer(TypedDict):
    """A member as a broker, or a proxy, lists it; `client_id` None: it lists none."""

    asked_broker: str
    client_id: str | None
    observed_ms: int
    source: str


AnyRow = TypeVar("AnyRow")
Answered = TypeVar("Answered", bound=Asked)
OfQueue = TypeVar("OfQueue", bound="NamesQueue")


def seen_ms(row: Dumped) -> int:
    """When a dump showed it."""
    return row["observed_ms"]


def first_stated(fact: Fact) -> int:
    """When it was stated first."""
    return fact["first_ms"]


def last_stated(fact: Fact) -> int:
    """When it was stated last."""
    return fact["last_ms"]


def _is_answer(row: ObservedMembersRow) -> TypeGuard[Answer]:
    return row["asked_broker"] is not None


def _is_of_broker(row: ObservedMembersRow) -> TypeGuard[ListedMember]:
    return row["asked_broker"] is not None


def fresh(case: GroupCase, rows: Iterable[AnyRow], at: Callable[[AnyRow], int]) -> list[AnyRow]:
    """The rows that are not stale by this time of theirs."""
    since = case.run.end_ms - case.run.stale_ms
    return [row for row in rows if at(row) >= since]


def rounds(
    rows: Iterable[AnyRow], at: Callable[[AnyRow], int], apart_ms: int = SAME_ROUND_MS
) -> Iterator[list[AnyRow]]:
    """The rows by rounds of dumps: none begins later than this after the first of its round."""
    current: list[AnyRow] = []
    for row in sorted(rows, key=at):
        if current and at(row) - at(current[0]) > apart_ms:
            yield current
            current = []
        current.append(row)
    if current:
        yield current


def member_rounds(rows: Iterable[Answered]) -> Iterator[list[Answered]]:
    """Answers of brokers by rounds in which each broker was asked once."""
    return each_asked_once(rows, lambda row: row["asked_broker"], seen_ms)


def each_asked_once(
    rows: Iterable[AnyRow], whom: Callable[[AnyRow], str | None], at: Callable[[AnyRow], int]
) -> Iterator[list[AnyRow]]:
    """The rows by rounds in which each that was asked was asked once."""
    for together in rounds(rows, at):
        asked: dict[str | None, int] = {}
        current: list[AnyRow] = []
        for row in together:
            if asked.setdefault(whom(row), at(row)) != at(row):
                yield current
                asked, current = {whom(row): at(row)}, []
            current.append(row)
        yield current


def answers_at(rows: Iterable[Answer], at_ms: int, within_ms: int) -> dict[str, list[Answer]]:
    """By broker its one answer for a time: the newest until then, else the first after it.

    Args:
        rows: of `broker_answers` or `proxy_answers`.
        at_ms: the time.
        within_ms: an answer further from it says nothing of it.
    """
    answers: dict[str, dict[int, list[Answer]]] = {}
    for row in rows:
        if abs(row["observed_ms"] - at_ms) <= within_ms:
            of_broker = answers.setdefault(row["asked_broker"], {})
            of_broker.setdefault(row["observed_ms"], []).append(row)
    return {
        broker: of_broker[max((ms for ms in of_broker if ms <= at_ms), default=min(of_broker))]
        for broker, of_broker in answers.items()
    }


def broker_answers(case: GroupCase) -> list[Answer]:
    """Members as brokers list them, and empty lists: rows whose client_id is None.

    Without those of outputs of which rows may be missing: who does not stand there may be a member.
    An empty output shows that no member is there only where nothing else shows members at that
    time: the command may have failed.
    """
    cut = partial_dumps(case)
    rows = [row for row in _listed_by_brokers(case) if not (cut and file_of(row["source"]) in cut)]
    unsaid = wordless(case, rows)
    return rows + [
        _answer(fact, fact["broker_name"], None)
        for fact in case.facts["GROUP_AT_BROKER"]
        if fact["broker_name"] and is_empty(fact) and file_of(fact["source"]) not in unsaid
    ]


def partial_dumps(case: GroupCase) -> set[str]:
    """Return the files of the group's dumps of which rows may be missing."""
    return {row["source"] for row in case.facts["DUMP"] if flag(row["details"].get("partial"))}


def _listed_by_brokers(case: GroupCase) -> Iterator[Answer]:
    return filter(_is_answer, case.tables["observed_members"])


def whole_rounds(case: GroupCase) -> Iterator[list[Answer]]:
    """Yield the fresh answers of brokers by rounds, without those of which rows may be missing.

    These end a round all the same: the broker was asked, and its next answer is of another round.
    """
    cut = partial_dumps(case)
    if not cut:
        yield from member_rounds(fresh(case, broker_answers(case), seen_ms))
        return
    torn = [row for row in _listed_by_brokers(case) if file_of(row["source"]) in cut]
    answers = fresh(case, [*broker_answers(case), *torn], seen_ms)
    for together in member_rounds(answers):
        whole = [row for row in together if file_of(row["source"]) not in cut]
        if whole:
            yield whole


def wordless(case: GroupCase, listed: Iterable[Dumped] | None = None) -> set[str]:
    """Return the files of empty answers that state nothing, as the group has members at that time.

    Args:
        case: the group.
        listed: rows of ``observed_members`` that show who is there; None: all.
    """
    denied = {file_of(fact["source"]) for fact in case.facts["NOT_ONLINE"]}
    rows = case.tables["observed_members"] if listed is None else listed
    return {
        file_of(fact["source"])
        for fact in case.facts["GROUP_AT_BROKER"]
        if fact["broker_name"]
        and is_empty(fact)
        and file_of(fact["source"]) not in denied
        and _has_members(case, rows, fact["first_ms"])
    }


def _has_members(case: GroupCase, listed: Iterable[Dumped], at_ms: int) -> bool:
    """True if a broker's list of that round, or the ledger, has members at a time.

    Those behind proxies brokers do not list.
    """
    if any(abs(row["observed_ms"] - at_ms) <= SAME_ROUND_MS for row in listed):
        return True
    behind = {
        row["client_id"]
        for row in proxy_answers(case)
        if abs(row["observed_ms"] - at_ms) <= SAME_ROUND_MS
    }
    return any(
        row["from_ms"] <= at_ms
        and (row["to_ms"] is None or at_ms < row["to_ms"])
        and not is_proxied(row)
        and row["client_id"] not in behind
        for row in case.tables["memberships"]
    )


def proxy_answers(case: GroupCase) -> list[Answer]:
    """Members as proxies list them, as `broker_answers`; ``asked_broker`` is the proxy."""
    rows = [
        _answer(fact, fact["details"]["proxy"], fact["client_id"])
        for fact in case.facts["CONNECTION"]
        if "proxy" in fact["details"]
    ]
    return rows + [
        _answer(fact, fact["details"]["proxy"], None)
        for fact in case.facts["GROUP_AT_PROXY"]
        if is_empty(fact)
    ]


def is_empty(fact: GroupAtBrokerFact | GroupAtProxyFact) -> bool:
    """True if the answer to consumerConnection lists no member."""
    return fact["details"].get("members", "0") in EMPTY_LIST


def _answer(fact: Fact, asked: str, client_id: str | None) -> Answer:
    return {
        "asked_broker": asked,
        "client_id": client_id,
        "observed_ms": fact["first_ms"],
        "source": fact["source"],
    }


def listed_members(case: GroupCase) -> list[ListedMember]:
    """Members as brokers list them, stale answers left out."""
    return fresh(case, filter(_is_of_broker, case.tables["observed_members"]), seen_ms)


def held_over_time(case: GroupCase) -> dict[tuple[str, MessageQueue], list[HeldQueueFact]]:
    """By client and queue how the client's own dumps show the queue, in order of time."""
    return grouped(
        fresh(case, case.facts["HELD_QUEUE"], last_stated),
        lambda fact: (fact["client_id"], queue_of(fact)),
    )


def whole_answers(case: GroupCase) -> dict[str, list[int]]:
    """By client when it answered with all of its queues, epoch ms."""
    answers: dict[str, list[int]] = {}
    for row in case.facts["DUMP"]:
        details = row["details"]
        if (
            details["command"] == "consumerStatus"
            and row["client_id"]
            and not details.get("error")
            and details.get("rows") != "0"
            and details.get("queues_told") != "false"
            and not flag(details.get("partial"))
        ):
            answers.setdefault(row["client_id"], []).append(row["first_ms"])
    return answers


def libraries(case: GroupCase) -> dict[str, str]:
    """The library of each client whose language a broker's list tells, by client id."""
    rows = sorted(case.tables["observed_members"], key=lambda row: row["observed_ms"])
    named = [
        (row["client_id"], library_of(row.get("language"), row.get("version"))) for row in rows
    ]
    return {client_id: library for client_id, library in named if library is not None}


def languages(case: GroupCase) -> dict[str, str]:
    """The language of each client that a broker's list or its row of memberships tells, by id."""
    listed = {one: NODE if name == ALI_ONS else name for one, name in libraries(case).items()}
    rows = ((row["client_id"], row["language"]) for row in case.tables["memberships"])
    return listed | {client_id: one for client_id, one in rows if one is not None}


def go_clients(case: GroupCase) -> set[str]:
    """Go clients: they give up all queues of a topic that has no readable one; Java's keep them."""
    return {client_id for client_id, language in languages(case).items() if language == GO}


def is_steady(fact: Fact) -> bool:
    """True if the fact was stated pass after pass from its first to its last time."""
    return bool(fact["times"] * 2 * REBALANCE_WAIT_MS >= fact["last_ms"] - fact["first_ms"])


def lasts(fact: Fact) -> bool:
    """True if it was said pass after pass, for longer than any transient."""
    return is_steady(fact) and bool(fact["last_ms"] - fact["first_ms"] > PERSISTENT_MS)


def number(text: str | None, default: int = -1) -> int:
    """A numeric field of a fact's details; the default where it lacks or is not known."""
    try:
        return default if text is None else int(text)
    except ValueError:
        return default


def flag(text: str | None) -> bool:
    """A boolean field of a fact's details; false where it lacks or is not known."""
    return text is not None and text.lower() == "true"


# Who reads without being a member: groups behind proxies, clients that no broker lists.

RETURN_MS = 3 * HEARTBEAT_MS
"""A client that brokers gave up and that reaches them is back by then; one that ended is silent."""
OF_A_CLIENT: tuple[Literal["NO_MEMBER_LIST", "NOT_IN_MEMBER_LIST"], ...] = (
    "NO_MEMBER_LIST",
    "NOT_IN_MEMBER_LIST",
)
"""Kinds of facts that a client states when it divides a topic of the group."""
STEPS = 2
"""One step forward may be an administrator's reset."""


@dataclass(frozen=True, slots=True)
class UnseenReading:
    """Offsets that advance with nobody there.

    Attributes:
        queues: those of which offsets advanced; first_ms: seen before, last_ms: after.
        steps: in how many steps those of one queue did.
        denied_by: brokers that said that no member is there.
        retry_topics: pop retry topics of the group that have offsets: it pops.
    """

    queues: tuple[MessageQueue, ...]
    first_ms: int
    last_ms: int
    steps: int
    denied_by: tuple[str, ...]
    retry_topics: tuple[str, ...]

    @property
    def is_sure(self) -> bool:
        """True if it is no single change of offsets by an administrator."""
        return self.steps >= STEPS or bool(self.retry_topics)


def unseen_reading(case: GroupCase) -> UnseenReading | None:
    """Tell which queues of the group are read by nobody known; None: none, or members are known."""
    if case.tables["memberships"] or case.tables["observed_members"]:
        return None
    if is_system_group(case.consumer_group) or any(
        row["client_id"] is not None for row in case.tables["committed_offsets"]
    ):
        return None
    seen = offsets_over_time(case)
    steps = {
        queue: sum(after[1] > before[1] for before, after in pairwise(sorted(moments)))
        for queue, moments in seen.items()
    }
    advanced = sorted(queue for queue, count in steps.items() if count)
    if not advanced:
        return None
    moments = [ms for queue in advanced for ms, _ in seen[queue]]
    pop_retry = tuple(retry_topic(case.consumer_group) + mark for mark in POP_RETRY_MARKS)
    return UnseenReading(
        tuple(advanced),
        min(moments),
        max(moments),
        max(steps.values()),
        _denied_by(case),
        tuple(sorted({queue.topic for queue in seen if queue.topic.startswith(pop_retry)})),
    )


def last_reading(case: GroupCase) -> tuple[int, int] | None:
    """Between which moments offsets advanced last though no member is known, epoch ms.

    None: they did not after the last member went and its commits were stored, or brokers say that
    nobody is online.
    """
    if is_system_group(case.consumer_group) or _denied_by(case):
        return None
    since_ms = max((row["to_ms"] or 0 for row in case.tables["memberships"]), default=0)
    spans = [
        (before[0], after[0])
        for moments in offsets_over_time(case).values()
        for before, after in pairwise(sorted(moments))
        if after[1] > before[1] and before[0] > since_ms + MINUTE_MS
    ]
    return max(spans, key=lambda span: span[1], default=None)


def offsets_over_time(case: GroupCase) -> dict[MessageQueue, set[tuple[int, int]]]:
    """(when, committed offset) of each queue, by stores and by dumps."""
    seen: dict[MessageQueue, set[tuple[int, int]]] = {}
    for row in case.tables["committed_offsets"]:
        seen.setdefault(queue_of(row), set()).add((row["observed_ms"], row["committed_offset"]))
    for fact in case.facts["QUEUE_PROGRESS"]:
        offset = number(fact["details"].get("consumer_offset"), 0)
        if offset > 0:  # 0 may mean none
            seen.setdefault(queue_of(fact), set()).add((fact["first_ms"], offset))
    return {queue: moments for queue, moments in seen.items() if not is_system_topic(queue.topic)}


def is_denied(case: GroupCase) -> bool:
    """Return whether a broker, or mqadmin, states that the group has no member."""
    return bool(_denied_by(case) or case.facts["NOT_ONLINE"])


def _denied_by(case: GroupCase) -> tuple[str, ...]:
    names = {fact["broker_name"] for fact in case.facts["GROUP_AT_BROKER"] if is_empty(fact)}
    names |= {fact["broker_name"] for fact in case.facts["NOT_ONLINE"]}
    return tuple(sorted(name for name in names if name))


@dataclass(frozen=True, slots=True)
class Unlisted:
    """Readers of a group that no broker lists.

    Attributes:
        clients: by client id when brokers gave it up, and its last commit or line; epoch ms.
        refused: by broker the first and last pull of the group that it refused, as it knows no
            member; epoch ms.
        last_ms: the last of these signs.
        goes_on: they last until the end of what was collected.
    """

    clients: Mapping[str, tuple[int, int]]
    refused: Mapping[str, tuple[int, int]]
    last_ms: int
    goes_on: bool


def unlisted_readers(case: GroupCase) -> Unlisted | None:
    """Clients that commit or write after brokers lost them; who pulls while nobody is a member.

    Signs after the log of a broker ended prove nothing: it may list the client again.
    """
    until_ms = case.run.coverage.logged_until or case.run.end_ms
    clients = {
        client_id: (lost_ms, last_ms)
        for client_id, lost_ms in _given_up(case).items()
        if (last_ms := _last_sign(case, client_id, until_ms)) > lost_ms + RETURN_MS
    }
    refused: dict[str, tuple[int, int]] = {}
    for fact in case.facts["GROUP_NOT_KNOWN"]:
        broker, first_ms, last_ms = fact["broker_name"], fact["first_ms"], fact["last_ms"]
        since_ms = _nobody_since(case, last_ms)
        if since_ms is not None and last_ms > max(since_ms, case.run.start_ms) + RETURN_MS:
            begin_ms = max(first_ms, since_ms)
            known = refused.get(broker, (begin_ms, last_ms))
            refused[broker] = (min(begin_ms, known[0]), max(last_ms, known[1]))
    if not clients and not refused:
        return None
    last_ms = max(last for _, last in (*clients.values(), *refused.values()))
    return Unlisted(clients, refused, last_ms, last_ms >= until_ms - PERSISTENT_MS)


def _given_up(case: GroupCase) -> dict[str, int]:
    """Clients that brokers lost for good, and when: none joined, or was listed, since."""
    last: dict[str, ConsumerEventsRow] = {}
    for row in case.consumer_events:
        if row["event_type"] in (CONSUMER_JOIN, CONSUMER_LEAVE, CONSUMER_LOST):
            last[row["client_id"]] = row
    current = {row["client_id"] for row in case.members}
    lost = {
        client_id: row["event_ms"]
        for client_id, row in last.items()
        if row["event_type"] == CONSUMER_LOST and client_id not in current
    }
    for listed in listed_members(case):
        if listed["observed_ms"] > lost.get(listed["client_id"], listed["observed_ms"]):
            del lost[listed["client_id"]]
    return lost


def _last_sign(case: GroupCase, client_id: str, until_ms: int) -> int:
    """The last time at which the client committed, or its log speaks of the group; 0: never."""
    signs = [
        row["observed_ms"]
        for row in case.tables["committed_offsets"]
        if row["client_id"] == client_id
    ]
    signs += [
        fact["last_ms"]
        for kind in OF_A_CLIENT
        for fact in case.facts[kind]
        if fact["client_id"] == client_id
    ]
    return max((ms for ms in signs if ms <= until_ms), default=0)


def _nobody_since(case: GroupCase, at_ms: int) -> int | None:
    """Since when the group has no member at this time; None: it has one."""
    epoch = case.epoch_at(at_ms)
    if epoch is None:
        return case.run.start_ms
    return int(epoch["from_ms"]) if epoch["status"] == EMPTY else None
