"""Values of options that several jobs have: what is wrong with one, before anything starts."""

import re
from collections.abc import Iterator

from rebalance_core.model.errors import RebalanceError
from rebalance_core.model.times import INSTANT_FORM, read_instant
from rebalance_core.strategies import parse_strategy

LAST_MS = 2**63 - 1  # a BIGINT
MOST_DIGITS = 30  # more are no number of anything, and Python reads at most 4,300

# TopicValidator.isTopicOrGroupIllegal (5.x), VALID_PATTERN_STR (4.9): what a group's name is of.
_NO_GROUP_PATTERN = re.compile(r"[^%|a-zA-Z0-9_\-*?]")

# SparkSubmit: "Master must either be yarn or start with spark, k8s, or local"; sc is Connect's.
_LOCAL = re.compile(r"local(-cluster\[\s*\d+\s*(,\s*\d+\s*){2}\]|\[(\d+|\*)(\s*,\s*\d+)?\])?")
_REMOTE = re.compile(r"yarn|(spark|k8s|sc)://.+")


def whole_number(text: str) -> int | None:
    """The number that a text of ASCII digits is, None for any other.

    >>> whole_number("-5"), whole_number("--5"), whole_number("5.0")
    (-5, None, None)
    """
    digits = text.removeprefix("-")
    plain = digits.isdecimal() and digits.isascii() and len(digits) <= MOST_DIGITS
    return int(text) if plain else None


def instant(text: str) -> int:
    """Epoch milliseconds of a time as operators write it; ValueError says what is valid.

    >>> instant("2026-11-21T03:30:00+08:00")
    1795203000000
    """
    number = whole_number(text)
    time = read_instant(text if number is None else number)
    if abs(time) > LAST_MS:
        raise ValueError(f"expected {INSTANT_FORM}")
    return time


def group_mistakes(pattern: str | None) -> Iterator[str]:
    """What is wrong with a pattern of --group."""
    if pattern is None:
        return
    wrong = _NO_GROUP_PATTERN.search(pattern)
    if not pattern:
        yield "--group is empty: name a group, exactly or with * and ?"
    elif wrong:
        yield (
            f"--group {pattern}: {wrong[0]!r} is in no group's name; signs of a pattern are "
            "* (any text) and ? (one character)"
        )


def strategy_mistakes(text: str | None) -> Iterator[str]:
    """What is wrong with a strategy that all groups are to have."""
    if text is None:
        return
    try:
        parse_strategy(text)
    except RebalanceError as error:
        yield f"--strategy {text}: {error}"


def master_mistakes(master: str | None) -> Iterator[str]:
    """What is wrong with --master; Spark says it after it has started."""
    if master is not None and not (_LOCAL.fullmatch(master) or _REMOTE.fullmatch(master)):
        yield (
            f"--master {master}: expected local, local[N], local[*], spark://HOST:PORT, yarn or "
            "k8s://URL"
        )
