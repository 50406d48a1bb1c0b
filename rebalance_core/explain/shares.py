"""What strategies give to the clients of an epoch, each asked once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from rebalance_core.explain.view import Row
from rebalance_core.model.errors import AllocationError, UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import AllocationStrategy, parse_strategy

Share = frozenset[MessageQueue]


class Shares:
    """The shares of one topic.

    Args:
        queues: mqAll.
        client_ids: cidAll.
    """

    def __init__(self, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> None:
        self._queues, self._client_ids = queues, client_ids
        self._known: dict[tuple[str, str], dict[str, Share] | None] = {}

    def share(self, member: Row) -> Share | str:
        """What the member's strategy gives it, or what is thrown."""
        strategy = strategy_of(member)
        if strategy is None:
            return f"unknown strategy {member['strategy']}"
        key = (member["strategy"], member["version"])
        if key not in self._known:
            self._known[key] = self._of_all(strategy)
        shares = self._known[key]
        if shares is not None:
            return shares.get(member["client_id"], frozenset())
        # Somebody's allocation throws; others' may not.
        try:
            own = strategy.allocate(member["client_id"], self._queues, self._client_ids)
        except AllocationError as error:
            return str(error)
        return frozenset(own)

    def _of_all(self, strategy: AllocationStrategy) -> dict[str, Share] | None:
        try:
            shares = strategy.allocate_all(self._queues, self._client_ids)
        except AllocationError:
            return None
        return {client_id: frozenset(share) for client_id, share in shares.items()}


def strategy_of(member: Row) -> AllocationStrategy | None:
    """The strategy of a process; None if its text is none of RocketMQ's."""
    return _parsed(member["strategy"], member["version"])


@lru_cache(maxsize=1024)
def _parsed(text: str, version: str) -> AllocationStrategy | None:
    try:
        return parse_strategy(text, version=version)
    except UsageError:
        return None
