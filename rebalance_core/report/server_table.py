"""The table of brokers and name servers: which of them are down, and what waits on their queues."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

UP: Final = "up"
DOWN: Final = "DOWN"
NOT_COLLECTED: Final = "not collected"
NO_STATE: Final = "unknown"
SERVER_STATES = (DOWN, NOT_COLLECTED, UP, NO_STATE)
"""The first to look at first."""
SERVERS_ON_PAGE = 100


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One server's row.

    Attributes:
        kind: what it is, in words.
        state: at the end, one of `SERVER_STATES`.
        since_ms: since when it is down, or up again after an outage of the night; None: unknown.
        log_ms: until when its logs go; None: none was read.
        version: a broker's version, where a file shows it.
        queues: the groups' queues on the broker with unread messages; unread: the number of these
            messages.
        seen_ms: when the newest end of such a queue was seen. None: unknown, of all of these.
    """

    cluster: str
    name: str
    kind: str
    state: str
    since_ms: int | None = None
    log_ms: int | None = None
    version: str | None = None
    queues: int | None = None
    unread: int | None = None
    seen_ms: int | None = None


def in_order(rows: Iterable[ServerRow]) -> tuple[ServerRow, ...]:
    """Return the rows, those that are down first, then those with most unread messages."""
    return tuple(
        sorted(
            rows,
            key=lambda row: (
                SERVER_STATES.index(row.state),
                -(row.unread or 0),
                row.cluster,
                row.kind,
                row.name,
            ),
        )
    )
