"""The table of brokers and name servers: which are down, and how many messages wait in their
queues.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

UP: Final = "up"
DOWN: Final = "DOWN"
NOT_COLLECTED: Final = "not collected"
NO_STATE: Final = "unknown"
SERVER_STATES = (DOWN, NOT_COLLECTED, UP, NO_STATE)
"""Server states in order of urgency."""
SERVERS_ON_PAGE = 100


@dataclass(frozen=True, slots=True)
class ServerRow:
    """The row of a server.

    Attributes:
        kind: the kind of server, in words.
        state: its state at the end, one of `SERVER_STATES`.
        since_ms: when it went down, or came up again after an outage in the night; None if
            unknown.
        log_ms: when its logs end; None if none was read.
        version: a broker's version, if a file shows it.
        queues: the number of groups' queues on the broker with unread messages or, if it is down,
            that cannot be read; unread: the number of unread messages in them.
        seen_ms: when the end of such a queue was last observed. All of these may be None for
            unknown.
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
    """Return the rows with servers that are down first, then by unread messages."""
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
