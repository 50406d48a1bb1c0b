"""What the operator reads while a job runs; results alone go to stdout."""

import sys


def say(text: str) -> None:
    """A word to the operator."""
    print(f"rebalance: {text}", file=sys.stderr)


def warn(text: str) -> None:
    """What the operator should look at, though the run goes on."""
    say(f"warning: {text}")
