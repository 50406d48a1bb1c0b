"""An explanation as a person reads it."""

from collections.abc import Collection, Iterator, Sequence

from rebalance_core.cli.explain.paragraphs import reason_lines, truncated
from rebalance_core.cli.explain.sharing_text import (
    before_line,
    sharing_lines,
    taker_lines,
    takers_line,
)
from rebalance_core.cli.terminal import joined
from rebalance_core.explain.answer import Acquisition, Event, Explanation, Holder, Lists
from rebalance_core.explain.explainer import queue_text
from rebalance_core.explain.start import start_lines
from rebalance_core.model.times import utc_ms


def render_explanation(explanation: Explanation) -> str:
    """The whole answer, the owner first."""
    lines = [
        f"{queue_text(explanation.queue)} of {explanation.consumer_group} "
        f"({explanation.cluster}) at {utc_ms(explanation.at_ms)}",
        *_owners(explanation),
        "",
        *_event(explanation),
        "",
    ]
    if explanation.sharing is not None:
        lines += [*sharing_lines(explanation.sharing, explanation.after), ""]
    lines += _list_lines(explanation)
    if explanation.sharing is not None:
        lines += taker_lines(explanation.sharing)
    for holder in explanation.holders:
        lines += ["", *_holder(holder)]
    if explanation.nobody is not None:
        what = "holds it" if explanation.sharing is None else "may take from it"
        lines += ["", f"Why nobody {what}", *reason_lines(explanation.nobody)]
    if explanation.notes:
        lines += ["", "Notes", *(f"  {note}" for note in explanation.notes)]
    if explanation.agrees is False:
        lines += ["", _differing(explanation)]
    return joined(lines)


def _differing(explanation: Explanation) -> str:
    told = "THE LEDGER DIFFERS: worked out again from its own lists,"
    report = "This is a bug; please report it with the ledger."
    if explanation.sharing is not None:
        clients = ", ".join(explanation.sharing.differs)
        return f"{told} it is not what {clients} may take from. {report}"
    expected = ", ".join(sorted(explanation.expected)) or "no owner"
    return f"{told} the owner is {expected}. {report}"


def _owners(explanation: Explanation) -> Iterator[str]:
    if explanation.sharing is not None:
        yield takers_line(explanation.sharing)
        return
    if not explanation.holders:
        yield "  nobody holds it"
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
    if explanation.holders_before is None:
        yield "  there is no epoch before"
        return
    if explanation.sharing is not None:
        yield f"  {before_line(explanation.sharing)}"
        return
    before = ", ".join(explanation.holders_before) or "no owner"
    same = set(explanation.holders_before) == {h.client_id for h in explanation.holders}
    yield f"  before: {before}" + ("; the event left this queue where it was" if same else "")


def _settling(explanation: Explanation, event: Event) -> str:
    if event.latest_ms is None:
        return "it moved no queue" + (
            "" if explanation.sharing is None else " that one client owns"
        )
    text = f"all its changes have happened by {utc_ms(event.latest_ms)}"
    if event.transient:
        return f"{text}, but it ended before (transient): they may never have happened"
    if explanation.at_ms < event.latest_ms:
        return f"{text}: at this time some clients may not have followed yet"
    return text


def _list_lines(explanation: Explanation) -> Iterator[str]:
    """cidAll, then mqAll, each before the event and now; once if it is the same."""
    before, after = explanation.before, explanation.after
    yield from _one_list(
        "cidAll",
        None if before is None else (before.cid_all, before.client_indexes),
        (after.cid_all, after.client_indexes),
    )
    if explanation.sharing is not None and not after.mq_all:
        return  # the ledger does not say which queues there are
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
        yield from truncated(*before)
    yield f"{name} {'before and now' if same else 'now'}: {len(now[0]):,}"
    yield from truncated(*now)


def _holder(holder: Holder) -> Iterator[str]:
    place = "" if holder.index is None else f" ([{holder.index}] of cidAll)"
    yield f"Why {holder.client_id}{place}"
    yield from reason_lines(holder.reason)
    if holder.taken is not None:
        yield from _taken(holder.taken)
    if holder.start is not None:
        yield "Where it started to read"
        yield from (f"  {line}" for line in start_lines(holder.start))
    elif holder.taken is not None:
        yield "Where it started to read"
        yield "  unknown: it held the queue when the log began"


def _taken(taken: Acquisition) -> Iterator[str]:
    came = f" from {taken.from_client}" if taken.from_client else ""
    yield "When it took the queue"
    yield (
        f"  epoch {taken.epoch}, {taken.cause}: {taken.kind}{came}, between "
        f"{utc_ms(taken.earliest_ms)} and {utc_ms(taken.latest_ms)}"
    )
