"""A queue that members share, as a person reads it."""

from collections.abc import Iterator, Mapping

from rebalance_core.cli.explain.paragraphs import LONGEST_LIST, reason_lines
from rebalance_core.explain.answer import Lists
from rebalance_core.explain.shared.answer import Sharing, Taker
from rebalance_core.model.times import utc_ms


def takers_line(sharing: Sharing) -> str:
    """How many clients may take from the queue."""
    if not sharing.takers:
        return "  no client may take from it"
    return f"  {_clients(len(sharing.takers))} may take from it; nobody owns it alone"


def before_line(sharing: Sharing) -> str:
    """Who could take from it in the epoch before."""
    before = sharing.takers_before or ()
    if set(before) == {taker.client_id for taker in sharing.takers}:
        return "before: the same clients; the event changed nothing for this queue"
    if len(before) > LONGEST_LIST:
        return f"before: {_clients(len(before))}"
    return f"before: {', '.join(before) or 'no client'}"


def sharing_lines(sharing: Sharing, now: Lists) -> Iterator[str]:
    """The mode, since when, and the figures of the topic."""
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


def taker_lines(sharing: Sharing) -> Iterator[str]:
    """Why each client may take from the queue; those with one reason together."""
    alike: dict[tuple[str, tuple[str, ...]], list[Taker]] = {}
    for taker in sorted(sharing.takers, key=_place):
        alike.setdefault((taker.reason.text, _lines(taker)), []).append(taker)
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
        yield from reason_lines(clients[0].reason)


def _modes(sharing: Sharing) -> Iterator[str]:
    if sharing.pops:
        yield f"POP, share_queue_num {sharing.share_queue_nums}, {', '.join(sharing.strategies)}"
    if sharing.behind_proxy:
        yield "clients behind a proxy"
    if not (sharing.pops or sharing.behind_proxy):
        yield "members keep what they had" if sharing.mode_known else "how is not known"


def _client(taker: Taker) -> str:
    return f"[{taker.index}] {taker.client_id} since {utc_ms(taker.from_ms)}"


def _clients(count: int) -> str:
    return f"{count:,} client{'' if count == 1 else 's'}"


def _between(figures: Mapping[str, int], what: str) -> str:
    low, high = figures[f"min_{what}"], figures[f"max_{what}"]
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _place(taker: Taker) -> int:
    return -1 if taker.index is None else taker.index


def _lines(taker: Taker) -> tuple[str, ...]:
    return () if taker.reason.formula is None else taker.reason.formula.lines
