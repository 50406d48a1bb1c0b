"""Why some of what was observed lies outside of what is simulated."""

from __future__ import annotations

from dataclasses import dataclass

from tests.recordings.timings.compared import Compared, Given


@dataclass(frozen=True)
class Explanation:
    """Of the changes of one recording that one cause put outside.

    Attributes:
        recording: its name.
        numbers: of its changes; none: all.
        why: one sentence.
        given: only where this is simulated; None: whatever is.
    """

    recording: str
    numbers: frozenset[int]
    why: str
    given: Given | None = None


FREEZES = (
    "The recorder had stopped the members over their next pass (`client_frozen`), which no input "
    "tells; the simulation has one member in ten out of step."
)
OVERLOADED = (
    "Five JVMs were started at once on two cores: `start()` took 3 to 5 s, first passes up to "
    "1.7 s, and timers run from some seconds before the join."
)
DATED_BY_EFFECT = "Nothing is sent, so files date the event by its effect, some ms too late."
BUSY_HOST = "The host was overloaded by nine JVMs."
EXPLANATIONS = (
    Explanation("timing", frozenset({20, 23, 34, 41, 53, 66}), FREEZES),
    Explanation("timing", frozenset({25, 45, 46, 47}), DATED_BY_EFFECT, Given.FILES),
    Explanation("timing", frozenset({37}), "c3's log was not collected, so the files date its "
                "`unsubscribe()` by a heartbeat 2 s before it.", Given.FILES),
    Explanation("pathologies", frozenset({22}), DATED_BY_EFFECT, Given.FILES),
    Explanation("scale-out-4.9", frozenset(), OVERLOADED),
    Explanation("join-leave-5.5", frozenset(), "The host was overloaded (load 30 to 50)."),
    Explanation("slave", frozenset(), BUSY_HOST),
    Explanation("slave-read", frozenset(), BUSY_HOST),
    Explanation("nightly", frozenset({19, 22, 28, 32}), "Eleven JVMs were started at once on two "
                "cores: first passes took up to 1.7 s."),
    Explanation("silent-loss", frozenset({11, 12}), "A host was frozen for 133 s: how "
                "often passes waited for it, and how often it listed each member, is in no input."),
)  # fmt: skip


def why(one: Compared, given: Given) -> str | None:
    """The explanation of what lies outside, or None."""
    for each in EXPLANATIONS:
        numbers = each.numbers or {one.change.number}
        if (
            each.recording == one.change.recording
            and one.change.number in numbers
            and each.given in (None, given)
        ):
            return each.why
    return None
