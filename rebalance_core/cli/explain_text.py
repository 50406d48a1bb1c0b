"""Renders an explanation as text: lists, formula, reasons, and the rule for the start offset."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rebalance_core.cli.terminal import joined
from rebalance_core.contracts.progress import PROGRESS_REASONS
from rebalance_core.explain.answer import (
    Acquisition,
    EpochCause,
    Explanation,
    Holder,
    Lists,
    PullStart,
    Reason,
    Sharers,
    Taker,
)
from rebalance_core.explain.explainer import queue_text
from rebalance_core.model.times import SECOND_MS, utc, utc_ms
from rebalance_core.protocol.receive_waits import MAX_AWAIT_MS, NEARLY_ALL, GroupWait
from rebalance_core.protocol.start_offset import STORED

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import QueueProgressRow

LONGEST_LIST = 40
AROUND = 2
"""Number of entries shown on either side of a relevant entry."""


def render_explanation(explanation: Explanation) -> str:
    """Return the whole answer, beginning with the owner."""
    lines = [
        f"{queue_text(explanation.queue)} of {explanation.consumer_group} "
        f"({explanation.cluster}) at {utc_ms(explanation.at_ms)}",
        *_owners(explanation),
        "",
        *_event(explanation),
        "",
    ]
    if explanation.sharing is not None:
        lines += [*_sharing_lines(explanation.sharing, explanation.after), ""]
    lines += _list_lines(explanation)
    if explanation.sharing is not None:
        lines += _taker_lines(explanation.sharing)
    for holder in explanation.holders:
        lines += ["", *_holder(holder)]
    if explanation.no_owner is not None:
        what = "holds it" if explanation.sharing is None else "may take from it"
        lines += ["", f"Why no client {what}", *_reason_lines(explanation.no_owner)]
    if explanation.notes:
        lines += ["", "Notes", *(f"  {note}" for note in explanation.notes)]
    if explanation.progress is not None:
        lines += ["", *_progress_lines(explanation.progress)]
    if explanation.agrees is False:
        lines += ["", _differing(explanation)]
    return joined(lines)


def _progress_lines(row: "QueueProgressRow") -> Iterator[str]:
    """Yield how far the group has read the queue according to the audit."""
    yield "At the end of the audit"
    parts = []
    for words, offset, at_ms in (
        ("committed", row["committed"], row["committed_ms"]),
        ("end", row["end_offset"], row["end_ms"]),
    ):
        seen = "" if at_ms is None else f" at {utc(at_ms)}"
        parts.append(f"{words} {'unknown' if offset is None else offset}{seen}")
    unread = "unread unknown" if row["unread"] is None else f"{row['unread']:,} unread"
    why = f" ({PROGRESS_REASONS[row['reason']]})" if row["reason"] else ""
    yield f"  {', '.join(parts)}: {unread}{why}"
    if row["still_since_ms"] is not None:
        yield (
            f"  the commit has not advanced since {utc(row['still_since_ms'])}, while messages "
            "arrive"
        )


def _differing(explanation: Explanation) -> str:
    differs = "THE LEDGER DIFFERS: recomputed from its own lists,"
    report = "This is a bug; please report it with the ledger."
    if explanation.sharing is not None:
        clients = ", ".join(explanation.sharing.differs)
        return f"{differs} {clients} may not take from it. {report}"
    expected = ", ".join(sorted(explanation.expected)) or "no owner"
    return f"{differs} the owner is {expected}. {report}"


def _owners(explanation: Explanation) -> Iterator[str]:
    if explanation.sharing is not None:
        yield _takers_line(explanation.sharing)
        return
    if not explanation.holders:
        yield "  no client holds it"
    for holder in explanation.holders:
        times = f" ({holder.processes} processes)" if holder.processes > 1 else ""
        since = "" if holder.taken is None else f" since {utc_ms(holder.taken.change_ms)}"
        yield f"  {holder.client_id}{times}{since}"


def _event(explanation: Explanation) -> Iterator[str]:
    event = explanation.event
    end = "it lasts" if event.to_ms is None else f"until {utc_ms(event.to_ms)}"
    yield f"The state: epoch {event.epoch} from {utc_ms(event.from_ms)}, {end}"
    yield f"  began with {', '.join(event.causes) or 'no event'}"
    repeated = event.members - event.distinct_members
    ids = f", {event.distinct_members} different ids" if repeated else ""
    yield f"  {event.status}, {event.members} members{ids}"
    yield f"  {_settling(explanation, event)}"
    if event.untold_ms is not None:
        yield (
            "  brokers do not notify members of this change at once "
            "(notifyConsumerIdsChangedEnable=false, batches, or a long minInterval): each member "
            f"notices it within {event.untold_ms / SECOND_MS:g} s"
        )
    if explanation.holders_before is None:
        yield "  there is no earlier epoch"
        return
    if explanation.sharing is not None:
        yield f"  {_before_line(explanation.sharing)}"
        return
    before = ", ".join(explanation.holders_before) or "no owner"
    same = set(explanation.holders_before) == {h.client_id for h in explanation.holders}
    yield f"  before: {before}" + ("; the event did not move this queue" if same else "")


def _settling(explanation: Explanation, event: EpochCause) -> str:
    if event.latest_ms is None:
        return "it moved no queue" + ("" if explanation.sharing is None else " with a single owner")
    text = f"all its changes have happened by {utc_ms(event.latest_ms)}"
    if event.transient:
        return (
            f"{text}, but the epoch ended earlier (transient): the changes may never have happened"
        )
    if explanation.at_ms < event.latest_ms:
        return f"{text}: some clients may not have followed yet"
    return text


def _list_lines(explanation: Explanation) -> Iterator[str]:
    """Yield cidAll, then mqAll, each before the event and now, or only once if unchanged."""
    before, after = explanation.before, explanation.after
    yield from _one_list(
        "cidAll",
        None if before is None else (before.cid_all, before.client_indexes),
        (after.cid_all, after.client_indexes),
    )
    before = before if before is not None and before.mq_all_known else None
    yield ""
    yield from _one_list("mqAll", None if before is None else _queues(before), _queues(after))


def _queues(lists: Lists) -> tuple[Sequence[str], Collection[int]]:
    return lists.mq_all, () if lists.queue_index is None else (lists.queue_index,)


def _one_list(
    name: str,
    before: tuple[Sequence[str], Collection[int]] | None,
    now: tuple[Sequence[str], Collection[int]],
) -> Iterator[str]:
    same = before is not None and before[0] == now[0]
    if before is not None and not same:
        yield f"{name} before: {len(before[0]):,}"
        yield from _truncated(*before)
    yield f"{name} {'before and now' if same else 'now'}: {len(now[0]):,}"
    yield from _truncated(*now)


def _holder(holder: Holder) -> Iterator[str]:
    place = "" if holder.index is None else f" ([{holder.index}] of cidAll)"
    yield f"Why {holder.client_id}{place}"
    yield from _reason_lines(holder.reason)
    if holder.taken is not None:
        yield from _taken(holder.taken)
    if holder.start is not None:
        yield "Where it started to read"
        yield from (f"  {line}" for line in start_lines(holder.start))
    elif holder.taken is not None:
        yield "Where it started to read"
        yield "  unknown: it already held the queue when the log began"


def _taken(taken: Acquisition) -> Iterator[str]:
    came = f" from {taken.from_client}" if taken.from_client else ""
    yield "When it took the queue"
    yield (
        f"  epoch {taken.epoch}, {taken.cause}: {taken.kind}{came}, between "
        f"{utc_ms(taken.earliest_ms)} and {utc_ms(taken.latest_ms)}"
    )


def _takers_line(sharing: Sharers) -> str:
    """Return how many clients may take from the queue."""
    if not sharing.takers:
        return "  no client may take from it"
    return f"  {_clients(len(sharing.takers))} may take from it; no client owns it alone"


def _before_line(sharing: Sharers) -> str:
    """Return the clients that could take from the queue in the previous epoch."""
    before = sharing.takers_before or ()
    if set(before) == {taker.client_id for taker in sharing.takers}:
        return "before: the same clients; the event did not change this queue"
    if len(before) > LONGEST_LIST:
        return f"before: {_clients(len(before))}"
    return f"before: {', '.join(before) or 'no client'}"


def _sharing_lines(sharing: Sharers, now: Lists) -> Iterator[str]:
    """Yield the mode, the time since which it applies, and the topic's figures."""
    figures = sharing.figures
    since = f"since {utc_ms(sharing.since_ms)} (epoch {sharing.since_epoch})"
    yield f"How the topic is shared: {' and '.join(_modes(sharing))}, {since}"
    yield (
        f"  cidAll: {len(now.cid_all):,}; clients that subscribe: {figures['clients']:,}; readable "
        f"queues (mqAll): {figures['queues']:,}"
    )
    yield (
        f"  clients per queue: {_between(figures, 'clients_per_queue')}; queues per client: "
        f"{_between(figures, 'queues_per_client')}; queues without a client: "
        f"{figures['unreached']:,}"
    )
    if sharing.receive is not None:
        yield from _receive_lines(sharing.receive)


def _receive_lines(wait: GroupWait) -> Iterator[str]:
    """Yield how long messages on the broker wait to be received."""
    calls = f"{_clients(wait.clients)} with one call at a time"
    if wait.topics > 1:
        calls += f" and {wait.topics} topics each"
    longest_ms = wait.longest_ms()
    if longest_ms == 0:
        yield f"  waits: none, because each receive asks the only broker ({calls})"
        return
    half, most = (wait.within_ms(share) / SECOND_MS for share in (0.5, NEARLY_ALL))
    shares = f"half of the messages at most {half:.0f} s, 99 of 100 at most {most:.0f} s"
    receives = f"receives of {MAX_AWAIT_MS / SECOND_MS:g} s, a proxy's longest"
    if longest_ms is None:
        by_chance = " or ".join(turns.value for turns in wait.turns)
        how_long = (
            f"how long is a matter of chance, as clients select {by_chance} (empty {receives}; "
            f"{shares}; there is no upper bound)"
        )
    else:
        how_long = (
            f"up to {longest_ms / SECOND_MS:g} s while no messages arrive elsewhere "
            f"({wait.empty_calls} empty {receives}; {shares}), and as long again whenever the "
            "receives at its broker return all they may before its turn comes"
        )
    yield (
        "  waits: none for a PushConsumer. A SimpleConsumer asks one broker per call, so with "
        f"{calls} {how_long}"
    )


def _taker_lines(sharing: Sharers) -> Iterator[str]:
    """Yield why each client may take from the queue, grouping clients with the same reason."""
    alike: dict[tuple[str, tuple[str, ...]], list[Taker]] = {}
    for taker in sorted(sharing.takers, key=_place):
        alike.setdefault((taker.reason.text, _formula_lines(taker)), []).append(taker)
    for clients in alike.values():
        yield ""
        if len(clients) == 1:
            taker = clients[0]
            place = "" if taker.index is None else f" ([{taker.index}] of cidAll)"
            yield f"Why {taker.client_id}{place}, since {utc_ms(taker.from_ms)}"
        else:
            yield f"Why these {len(clients):,} clients"
            yield from (f"    {_client(taker)}" for taker in clients[:LONGEST_LIST])
            if len(clients) > LONGEST_LIST:
                yield f"    … and {len(clients) - LONGEST_LIST:,} more"
        yield from _reason_lines(clients[0].reason)
    if (first := sharing.first_pop) is not None:
        yield ""
        yield f"Where the first pop started (epoch {first.epoch}, {utc_ms(first.change_ms)})"
        yield from (f"  {line}" for line in start_lines(first.start))


def _modes(sharing: Sharers) -> Iterator[str]:
    if sharing.pops:
        yield f"POP, share_queue_num {sharing.share_queue_nums}, {', '.join(sharing.strategies)}"
    if sharing.behind_proxy:
        yield "clients behind a proxy"
    if not (sharing.pops or sharing.behind_proxy):
        yield "members keep the queues that they held"


def _client(taker: Taker) -> str:
    return f"[{taker.index}] {taker.client_id} since {utc_ms(taker.from_ms)}"


def _clients(count: int) -> str:
    return f"{count:,} client{'' if count == 1 else 's'}"


def _between(figures: Mapping[str, int], what: str) -> str:
    low, high = figures[f"min_{what}"], figures[f"max_{what}"]
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _place(taker: Taker) -> int:
    return -1 if taker.index is None else taker.index


def _formula_lines(taker: Taker) -> tuple[str, ...]:
    return () if taker.reason.formula is None else taker.reason.formula.lines


def _truncated(entries: Sequence[str], marked: Collection[int]) -> Iterator[str]:
    """Yield the entries with their indices, abbreviating a long list to its beginning and the
    marked entries.
    """
    shown = set(range(len(entries)))
    if len(entries) > LONGEST_LIST:
        near = sorted({i + d for i in marked for d in range(-AROUND, AROUND + 1)} & shown)
        near = near[:LONGEST_LIST]
        shown = {*range(LONGEST_LIST - len(near)), *near}
    for is_shown, run in groupby(range(len(entries)), key=shown.__contains__):
        places = list(run)
        if not is_shown:
            yield f"    … and {len(places):,} more"
            continue
        for place in places:
            sign = ">" if place in marked else " "
            yield f"  {sign} [{place}] {entries[place]}"


def _reason_lines(reason: Reason) -> Iterator[str]:
    """Yield the reason as a sentence, with the formula below it."""
    yield f"  {reason.text}"
    if reason.formula is not None:
        yield from (f"    {line}" for line in reason.formula.lines)


def start_lines(start: PullStart) -> list[str]:
    """Return the explanation of a start as sentences."""
    lines = [f"{start.rule or start.status}: {start.text}"]
    seen = [
        f"{name} {value:,}"
        for name, value in (
            ("stored", start.stored_offset),
            ("minimum", start.min_offset),
            ("maximum", start.max_offset),
        )
        if value is not None
    ]
    lines.append(f"last seen before the change: {', '.join(seen) or 'nothing'}")
    if start.start_offset is not None:
        lines.append(f"starts at {start.start_offset:,}, {_bounds(start)}")
    elif start.start_offset_low is not None or start.start_offset_high is not None:
        lines.append(f"starts somewhere, {_bounds(start)}")
    if start.corrected_offset is not None:
        lines.append(
            f"OFFSET_ILLEGAL moves the first pull to {start.corrected_offset:,}: the start is "
            "outside the queue's range"
        )
    if start.skipped is not None:
        lines.append(_skipped(start, start.skipped))
    return lines


def _skipped(start: PullStart, messages: int) -> str:
    if not messages:
        return "skips nothing"
    if start.rule == STORED:
        return (
            f"skips nothing: the previous owner had read the {messages:,} messages that follow "
            "the newest commit before the change"
        )
    return f"skips {messages:,} messages after the last commit"


def _bounds(start: PullStart) -> str:
    low, high = start.start_offset_low, start.start_offset_high
    if low is not None and low == high:
        return "for sure"
    floor = "0" if low is None else f"{low:,}"
    return f"from {floor} up" if high is None else f"between {floor} and {high:,}"
