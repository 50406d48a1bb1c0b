"""The pass of one client in one epoch of a ledger, step by step, in code order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from rebalance_core.client.broker_answers import QueueAnswers
from rebalance_core.client.one_pass import RebalancePass, pass_lines, rebalance_pass
from rebalance_core.client.pass_record import Step
from rebalance_core.explain.settlement import Settlements, strategy_of
from rebalance_core.explain.view import (
    GroupRows,
    View,
    covering,
    queue_of,
    refuse_unknown,
    subscribes,
)
from rebalance_core.model.clients import profile_of_row, rules_version
from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.model.group_settings import (
    BROKER_REBALANCE,
    CLIENT_REBALANCE,
    LAST_OFFSET,
    PROXY_REBALANCE,
    GroupSettings,
)
from rebalance_core.model.languages import JAVA
from rebalance_core.model.queue import MessageQueue, java_string_key
from rebalance_core.model.times import utc_ms
from rebalance_core.protocol import start_offset
from rebalance_core.protocol.order_locks import ORDER_LOCK_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ConsumerLoadRow, MembershipsRow, PullStartsRow

UNKNOWN = "UNKNOWN"
_MODES = {
    start_offset.FIRST_ZERO: start_offset.FIRST_OFFSET,
    start_offset.TIMESTAMP_SEARCH: start_offset.TIMESTAMP,
    start_offset.RETRY_MAX: start_offset.TIMESTAMP,
}
_STORED = (start_offset.STORED, start_offset.LOCAL_STORE, start_offset.BROKER_ZERO)


@dataclass(frozen=True, slots=True)
class ClientPass:
    """A client's pass over the state of an epoch.

    Attributes:
        cluster: the group's cluster.
        consumer_group: its name.
        at_ms: the requested time.
        epoch: the epoch at that time.
        done: the pass, or None if the client runs none.
        agrees: whether it holds the ledger's queues after the pass, or None if there is nothing to
            compare.
        notes: questions that the ledger leaves open.
    """

    cluster: str
    consumer_group: str
    at_ms: int
    epoch: int
    done: RebalancePass | None
    agrees: bool | None
    notes: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return the pass as text."""
        head = (
            f"{self.consumer_group} ({self.cluster}), epoch {self.epoch}, at {utc_ms(self.at_ms)}"
        )
        steps = [] if self.done is None else list(pass_lines(self.done))
        notes = ["Notes", *(f"  {note}" for note in self.notes)] if self.notes else []
        return [head, *steps, *notes]

    def facts(self) -> dict[str, Any]:
        """Return the pass as a JSON object."""
        return {
            "cluster": self.cluster,
            "consumer_group": self.consumer_group,
            "epoch": self.epoch,
            "pass": None if self.done is None else self.done.facts(),
            "agrees": self.agrees,
            "notes": list(self.notes),
        }


def client_pass(
    rows: GroupRows, loads: Iterable[ConsumerLoadRow], client_id: str, at_ms: int
) -> ClientPass:
    """Return the pass that takes a client from the previous epoch to the one at a given time.

    By then, every member sees the same; `propagate` simulates what clients see until then.

    Args:
        rows: the group's rows for the epoch and the previous one.
        loads: its rows of consumer_load.
        client_id: the client.
        at_ms: the time.

    Raises:
        UsageError: the time is outside the ledger, or the client is not a member at that time.
    """
    settlements = Settlements(rows)
    row = rows.epoch_at(at_ms)
    if row is None:
        raise UsageError(f"--at {utc_ms(at_ms)} is outside the ledger of this group")
    view, before = (settlements.view(row["epoch"] - ago) for ago in (0, 1))
    assert view is not None
    refuse_unknown(view.members)
    processes = view.processes_of.get(client_id, [])
    if not processes:
        raise UsageError(
            f"--client {client_id} is not a member of {row['consumer_group']} at "
            f"{utc_ms(at_ms)}{did_you_mean(client_id, view.client_ids)}"
        )
    member = processes[0]
    language = member["language"]
    profile = profile_of_row(member)
    if not profile.share_known(member["strategy"]):
        raise UsageError(
            f"--client {client_id} is a {language} client whose pass is unknown: it is untested "
            f"with {member['strategy']}, or its order depends on its host"
        )
    notes = ["the ledger does not record the consumer type: a push consumer's pass is assumed"]
    if language not in (None, JAVA) and member["rebalance_mode"] != PROXY_REBALANCE:
        notes.append(f"the steps are those of a Java client; this client is written in {language}")
    if len(processes) > 1:
        notes.append(f"{len(processes)} processes have this id: this is the pass of the first")
    done, agrees = None, None
    if member["suspended"]:
        notes.append("the client is suspended: it runs no pass and keeps the queues it holds")
    else:
        starts = {
            queue_of(s): s
            for s in rows.pull_starts
            if s["client_id"] == client_id and s["epoch"] == row["epoch"]
        }
        own_loads = (load_row for load_row in loads if load_row["client_id"] == client_id)
        load = next(iter(covering(own_loads, row["epoch"])), None)
        done = _pass_of(settlements, view, before, member, starts, _is_ordered(rows, row["epoch"]))
        done = replace(
            done,
            record=replace(
                done.record, steps=[_as_known(step, starts, load) for step in done.steps]
            ),
        )
        alone = {q for q in done.process.table if q.topic not in view.shared}
        held = {q for q, holders in view.holders.items() if client_id in holders}
        agrees = alone == held if len(processes) == 1 else None
        if not agrees and profile.may_be_doubtful:
            agrees = None
            notes.append(
                "only source code shows which queues this client keeps of a topic without a "
                "readable queue: the ledger lists those that it certainly holds"
            )
        notes += _notes(view, member, agrees=agrees)
    return ClientPass(
        cluster=row["cluster"],
        consumer_group=row["consumer_group"],
        at_ms=at_ms,
        epoch=row["epoch"],
        done=done,
        agrees=agrees,
        notes=tuple(notes),
    )


def _pass_of(
    settlements: Settlements,
    view: View,
    before: View | None,
    member: MembershipsRow,
    starts: Mapping[MessageQueue, PullStartsRow],
    ordered: bool,
) -> RebalancePass:
    may_subscribe = {q.topic for q in view.holders} | set(member["subscriptions"] or ())
    topics = [
        t
        for t in sorted(may_subscribe, key=java_string_key)
        if subscribes(member, t) and t not in view.shared
    ]
    client_id = member["client_id"]
    held = () if before is None else (q for q, ids in before.holders.items() if client_id in ids)
    modes = {_MODES[s["rule"]] for s in starts.values() if s["rule"] in _MODES}
    strategy = strategy_of(member)
    readable = {t: settlements.of(view.epoch, t) for t in topics if t in view.queues}
    answers = {queue: _answers(start) for queue, start in starts.items()}
    mq_all = {t: route.queues if route.known else () for t, route in readable.items()}
    new = (queue for queues in mq_all.values() for queue in queues)
    return rebalance_pass(
        client_id,
        queues={
            topic: [(q.broker_name, q.queue_id) for q in mq_all[topic]] if topic in mq_all else None
            for topic in topics
        },
        members=view.client_ids,
        strategy=member["strategy"] if strategy is None else strategy,
        settings=GroupSettings(
            message_model=member["message_model"],
            client_version=rules_version(member["language"], member["version"]),
            ordered=ordered,
            consume_from_where=min(modes, default=LAST_OFFSET),
        ),
        table=dict.fromkeys(held, 0),
        memory={},
        offsets=dict.fromkeys(new, QueueAnswers(0, 0, 0)) | answers,
        at_ms=view.row["from_ms"],
    )


def _answers(start: PullStartsRow) -> QueueAnswers:
    """Return the broker's answers that lead to the start in the ledger."""
    offset = start["start_offset"]
    if start["status"] == "FAILED":
        return QueueAnswers(None, None, None)
    if offset is None:
        return QueueAnswers(0, 0, 0)
    committed = offset if start["rule"] in _STORED else None
    return QueueAnswers(committed, offset, offset)


def _as_known(
    step: Step, starts: Mapping[MessageQueue, PullStartsRow], load: ConsumerLoadRow | None
) -> Step:
    """Return a step with the ledger's numbers, or UNKNOWN where the ledger lacks them."""
    values = dict(step.values)
    if step.what == "not persisted":
        offset = f"its offset in memory ({UNKNOWN} here)"
        return step._replace(what="persisted", values={"offset": offset})
    start = None if step.queue is None else starts.get(step.queue)
    if step.what == "start" and step.queue is not None:
        values["stored_offset"] = None if start is None else start["stored_offset"]
        values["max_offset"] = None if start is None else start["max_offset"]
        values["rule"] = UNKNOWN if start is None else start["rule"] or UNKNOWN
        values["offset"] = None if start is None else start["start_offset"]
    elif step.what == "added" and step.queue is not None:
        values["offset"] = None if start is None else start["start_offset"]
    elif step.what == "pull":
        requests = cast("Sequence[tuple[MessageQueue, int]]", values["requests"])
        values["requests"] = [
            (queue, starts[queue]["start_offset"] if queue in starts else UNKNOWN)
            for queue, _ in requests
        ]
    elif step.what == "push" and load is not None:
        own = {n: v for n, v in load.items() if n.startswith("pull_threshold")}
        values |= {n: own[n] for n in values if n in own}
    return step._replace(
        values={name: UNKNOWN if value is None else value for name, value in values.items()}
        if step.what != "end"
        else values
    )


def _is_ordered(rows: GroupRows, epoch: int) -> bool:
    """Return True if new owners may wait for order locks, judging by the windows of changes."""
    latest: dict[tuple[int, str], set[int]] = {}
    for row in rows.diffs:
        if row["latest_ms"] > row["earliest_ms"] and row["kind"] != "INITIAL":
            latest.setdefault((row["epoch"], row["action"]), set()).add(row["latest_ms"])
    adds, drops = latest.get((epoch, "ADD"), set()), latest.get((epoch, "DROP"), set())
    return bool({ms - ORDER_LOCK_MS for ms in adds} & drops)


def _notes(view: View, member: MembershipsRow, *, agrees: bool | None) -> list[str]:
    notes = []
    if member["rebalance_mode"] not in (None, CLIENT_REBALANCE):
        who = "a broker" if member["rebalance_mode"] == BROKER_REBALANCE else "a proxy"
        notes.append(f"{who} divides for this client, which applies the answer in the same way")
    if view.shared:
        notes.append(f"left out because members share them: {', '.join(sorted(view.shared))}")
    if agrees is False:
        notes.append(
            "the ledger has other queues for it after this epoch: either it kept queues for "
            "which this pass could not run, or other members' passes count"
        )
    return notes
