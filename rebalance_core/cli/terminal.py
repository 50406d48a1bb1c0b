"""What the operator reads while a job runs; results alone go to stdout."""

import sys
from collections.abc import Mapping


def say(text: str) -> None:
    """A word to the operator."""
    print(f"rebalance: {text}", file=sys.stderr)


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
