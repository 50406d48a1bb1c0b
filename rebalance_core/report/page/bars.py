"""Small bars in running text: groups compared, queues of each member, moves in each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from rebalance_core.report.audit_report import GroupBalance, GroupCounts
from rebalance_core.report.page.patterns import ALARM, INK, LINE
from rebalance_core.report.page.svg import joined, number, tag

HEIGHT = 26
LOAD_WIDTH, MOVES_WIDTH, GROUPS_WIDTH = 220, 120, 420
WIDEST_BAR = 14
LOAD_INK, MOVES_INK = "#64748b", "#64748b"
MOST_TITLES = 40


@dataclass(frozen=True, slots=True)
class BalanceLine:
    """A group's row in the table of balance and movement."""

    balance: GroupBalance
    load: Markup
    moves: Markup
    moved: int
    words: str


def balance_line(balance: GroupBalance) -> BalanceLine:
    """The row with its bars."""
    return BalanceLine(
        balance,
        load_bars(balance),
        bars(pooled(balance.moved, MOVES_WIDTH // 2), MOVES_WIDTH, MOVES_INK),
        sum(balance.moved),
        load_words(balance),
    )


def load_bars(balance: GroupBalance) -> Markup:
    """A bar for each member, the largest first; a line at the even share; a dot for an idle one."""
    order = sorted(
        zip(balance.queues, balance.client_ids, strict=True), key=lambda p: (-p[0], p[1])
    )
    counts = pooled([count for count, _ in order], LOAD_WIDTH // 2, whole=False)
    titles = [f"{client}: {count}" for count, client in order] if len(order) <= MOST_TITLES else []
    even = sum(balance.queues) / len(balance.queues) if balance.queues else 0
    return bars(counts, LOAD_WIDTH, LOAD_INK, even, titles)


def load_words(balance: GroupBalance) -> str:
    """The same in words: who has most and least."""
    if not balance.client_ids:
        return "no member"
    pairs = list(zip(balance.queues, balance.client_ids, strict=True))
    most = min(pairs, key=lambda pair: (-pair[0], pair[1]))
    least = min(pairs)
    if most[0] == least[0]:
        return f"each {most[0]:,}"
    return f"most {most[0]:,} ({most[1]}), least {least[0]:,} ({least[1]})"


def bars(
    counts: Sequence[float],
    width: int,
    colour: str,
    even: float = 0,
    titles: Sequence[str] = (),
) -> Markup:
    """Upright bars, at most `width` wide; with `even`: its line, and a dot for each 0."""
    if not counts:
        return Markup("")
    step = min(width / len(counts), WIDEST_BAR)
    gap = 2 if step >= 6 else 0.5 if step >= 3 else 0
    top = max(max(counts), 1)
    room, base = HEIGHT - 7, HEIGHT - 5
    drawn, zeros = [], []
    for at, count in enumerate(counts):
        title = tag("title", titles[at]) if titles else Markup("")
        tall = max(count / top * room, 1.0)
        x = at * step
        if count:
            area = {"x": x, "y": base - tall, "width": step - gap, "height": tall}
            drawn.append(tag("rect", title, **area) if titles else tag("rect", **area))
        elif even:
            zeros.append(f"M{number(x + (step - gap) / 2)} {HEIGHT - 2}h0")
    right = number(step * len(counts))
    lines = [tag("path", d=f"M0 {base}.5H{right}", stroke=LINE, fill="none")]
    if even:
        y = number(base - even / top * room)
        dashes = tag("path", d=f"M0 {y}H{right}", stroke=INK, stroke_dasharray="3 2", fill="none")
        lines.append(dashes)
    if zeros:
        dot = {"stroke": ALARM, "stroke_width": "3", "stroke_linecap": "round"}
        lines.append(tag("path", d="".join(zeros), fill="none", **dot))
    inner = tag("g", *drawn, fill=colour)
    return tag("svg", inner, *lines, width=width, height=HEIGHT, role="img", aria_label="bars")


def pooled(counts: Sequence[int], most: int, whole: bool = True) -> list[float]:
    """At most `most` numbers: neighbours added up (`whole`) or averaged."""
    if len(counts) <= most:
        return [float(count) for count in counts]
    cuts = [at * len(counts) // most for at in range(most + 1)]
    parts = [counts[start:end] for start, end in pairwise(cuts)]
    return [sum(part) / (1 if whole else len(part)) for part in parts]


def group_bar(groups: GroupCounts) -> Markup:
    """How the compared groups split, in one bar."""
    kinds = (
        (groups.equal, "#cbd5e1"),
        (groups.shared, "#93c5fd"),
        (groups.differing, ALARM),
        (groups.unstable, "#94a3b8"),
        (groups.unknown, "#f1f5f9"),
    )
    whole = sum(count for count, _ in kinds)
    if not whole:
        return Markup("")
    left, parts = 0.0, []
    for count, colour in kinds:
        if count:
            width = max(count / whole * GROUPS_WIDTH, 3.0)
            area = {"x": left, "y": 0.5, "width": width, "height": 11}
            parts.append(tag("rect", **area, fill=colour, stroke="#475569"))
            left += width
    view = f"-0.5 0 {number(left + 1)} 12"
    drawn = joined(parts)
    return tag("svg", drawn, viewBox=view, preserveAspectRatio="none", class_="split", height=12)
