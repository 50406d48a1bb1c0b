"""What routes say of a topic's perm while slaves alone answer for its broker (rocketmq.md §15)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rebalance_core.model.times import SECOND_MS

PERM_WRITE = 2
"""PermName.PERM_WRITE."""
ROUTE_SLACK_MS = 10_000
"""A dump is named by when mqadmin was started; on a busy host it asks so much later."""


class RoutePerms:
    """Perms of one topic as its brokers registered them, whatever a route without a master says.

    A name server takes W from all queues of a broker whose slaves may act as master when the master
    goes. It logs nothing then, but the change back when the master returns.

    Args:
        stated: (broker, time, perm, a route says it) of all files, in order of time.
        was_masterless: `ClusterContext.was_masterless`.
    """

    def __init__(
        self,
        stated: Iterable[tuple[str, int, int, bool]],
        was_masterless: Callable[[str, int, int], bool],
    ) -> None:
        self._was_masterless = was_masterless
        self._first: dict[str, int] = {}
        for broker, at_ms, perm, routed in stated:
            if not (routed and self._may_be_wiped(broker, at_ms, perm)):
                self._first.setdefault(broker, perm)

    def registered(self, broker: str, at_ms: int, routed: int, known: int | None) -> int:
        """The perm behind that of a route.

        Args:
            broker: whose queues they are.
            at_ms: when the route was so.
            routed: the route's perm.
            known: the perm by then; None: not known, and the next that is told counts.
        """
        if not self._may_be_wiped(broker, at_ms, routed):
            return routed
        perm = self._first.get(broker, routed) if known is None else known
        return routed | perm & PERM_WRITE

    def _may_be_wiped(self, broker: str, at_ms: int, perm: int) -> bool:
        # logs say the second, and names of dumps when their command was started
        from_ms, to_ms = at_ms - SECOND_MS, at_ms + ROUTE_SLACK_MS
        return not perm & PERM_WRITE and self._was_masterless(broker, from_ms, to_ms)
