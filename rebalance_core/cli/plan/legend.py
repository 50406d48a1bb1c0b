"""What the headings of a plan's tables mean, printed below them."""

from textwrap import wrap

WIDTH = 96
_HEADINGS = (
    "moved: queues that got an owner, from another or as new ones; minimum: the fewest moves of a "
    "balanced result; amplif.: moved / minimum. mean peak ratio: queues of the busiest member / "
    "the mean, 1.00 is even. idle: members without a queue; orphaned: queues without an owner. "
    "replayed, skipped: messages read twice, and never, by the offsets at which owners start. "
    "orphan s, double s: queues x seconds without an owner, and with two, while members act one "
    "by one; read again: messages read twice meanwhile; settled after: in 99 % of the simulated "
    "futures. `-`: not known, or it means nothing here."
)


def legend() -> list[str]:
    """The lines."""
    return wrap(_HEADINGS, WIDTH, break_on_hyphens=False)
