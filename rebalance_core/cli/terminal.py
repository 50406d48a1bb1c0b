"""What the operator reads while a job runs; results alone go to stdout."""

import sys
from collections.abc import Iterable, Mapping

from rebalance_core.report.visible import visible


def say(text: str) -> None:
    """A word to the operator, each line of it marked as ours."""
    for line in visible_lines(text).split("\n"):
        print(f"rebalance: {line}", file=sys.stderr)


def joined(lines: Iterable[str]) -> str:
    """The lines as one text in which no name hides, moves the cursor or begins a line."""
    return "\n".join(visible(line, longest=None) for line in lines)


def visible_lines(text: str) -> str:
    """The text with all but its line ends made visible."""
    return joined(text.split("\n"))


def warn(text: str) -> None:
    """What the operator should look at, though the run goes on."""
    say(f"warning: {text}")


def warn_of_nothing(restrictions: Mapping[str, object]) -> None:
    """Say which options left no group in an output; nothing if none was given.

    Args:
        restrictions: value by option; None where it was not given.
    """
    given = [f"{option} {value}" for option, value in restrictions.items() if value is not None]
    if given:
        warn(f"{' '.join(given)}: nothing in the input matches, so the output has no group")
