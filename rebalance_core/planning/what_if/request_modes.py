"""Request modes and rebalance modes as a planner states them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.model.group_settings import (
    REBALANCE_MODES,
    RequestMode,
    can_be_popped,
    parse_request_mode,
)

RequestModes = Mapping[str, "str | RequestMode"]
"""Topic -> ``PULL`` or ``POP(share_queue_num=N)``."""


def read_request_modes(name: str, modes: Any, mistakes: list[str]) -> dict[str, RequestMode]:
    """The modes by topic; what is wrong is left out and told.

    Args:
        name: How messages call the mapping.
        modes: Topic -> its mode.
        mistakes: Gets one sentence per mistake.
    """
    if not isinstance(modes, Mapping):
        mistakes.append(
            f"{name} = {modes!r}: expected topic -> request mode, e.g. "
            '{"orders": "POP(share_queue_num=1)"}'
        )
        return {}
    right: dict[str, RequestMode] = {}
    for topic, given in modes.items():
        try:
            mode = given if isinstance(given, RequestMode) else parse_request_mode(str(given))
        except UsageError as error:
            mistakes.append(f"{name}.{topic}: {error}")
            continue
        if mode.is_pop and not can_be_popped(str(topic)):
            mistakes.append(f"{name}.{topic}: retry topics are always pulled")
            continue
        right[str(topic)] = mode
    return right


def read_rebalance_mode(name: str, mode: Any, mistakes: list[str]) -> str:
    """CLIENT, BROKER or PROXY; anything else is told."""
    if mode not in REBALANCE_MODES:
        hint = did_you_mean(str(mode), REBALANCE_MODES)
        mistakes.append(f"{name} = {mode!r}: expected one of {', '.join(REBALANCE_MODES)}{hint}")
    return str(mode)


def check_topics(
    modes: Mapping[str, RequestMode], known: Iterable[str], mistakes: list[str]
) -> None:
    """Tells of every topic with a mode that the group does not have."""
    known = list(known)
    for topic in modes:
        if topic not in known:
            mistakes.append(
                f"request_modes: {topic!r} is no topic of the group; topics: "
                f"{', '.join(known) or 'none'}{did_you_mean(topic, known)}"
            )
