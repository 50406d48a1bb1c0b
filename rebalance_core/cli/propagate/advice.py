"""What to do about slow changes: a remedy for each kind of cause."""

from collections.abc import Iterable, Mapping

from rebalance_core.clockwork.measured import CAUSES_JOINED_BY
from rebalance_core.model import events

_ROUTES = (
    "Members learn of routes at their own poll (pollNameServerInterval, 30 s) and act in their "
    "next pass (rocketmq.client.rebalance.waitInterval, 20 s); both can be shortened."
)
ADVICE: Mapping[str, str] = {
    events.BROKER_UP: (
        "A broker that came back knows a member from its next heartbeat on (30 s): until then "
        "passes that ask it see few members. Restart brokers one by one, no faster than `99 % by`."
    ),
    events.BROKER_DOWN: _ROUTES,
    events.TOPIC_CONFIG: _ROUTES,
    events.TOPIC_DELETED: _ROUTES,
    events.CONSUMER_LOST: (
        "Shut members down gracefully: a killed one keeps its order locks for 60 s, and one whose "
        "channel expires is gone without a notice to anybody."
    ),
    events.CONSUMER_JOIN: (
        "Members are told, and run one pass a second at most (5.2+): start several at once, or "
        "leave `99 % by` between two."
    ),
    events.CONSUMER_LEAVE: "As for joins: stop several at once, or leave `99 % by` between two.",
    events.SUBSCRIBE: "Give all members the same subscriptions before they start.",
    events.UNSUBSCRIBE: (
        "Brokers hear of it at the next heartbeat (30 s), and members that still subscribe divide "
        "by all: give all members the same subscriptions."
    ),
    events.CONSUMER_SUSPEND: "A suspended member keeps its share: stop it instead.",
    events.CONSUMER_RESUME: "A suspended member kept its share: stop it instead.",
    events.MASTER_DOWN: "Orderly queues that move wait for the master, which gives the locks.",
    events.MASTER_UP: (
        "A master that came back knows a member from its next heartbeat on (30 s): until then "
        "passes that ask it see few members, and few have all queues. Return masters one by one, "
        "no faster than `99 % by`."
    ),
}
"""By event type; the first of a cause that is here decides."""
MOST_ADVICE = 4


def advice_on(causes: Iterable[str]) -> dict[str, list[str]]:
    """Remedies for causes in their order, each with the event types that it is for."""
    found: dict[str, list[str]] = {}
    for cause in causes:
        kind = next((kind for kind in cause.split(CAUSES_JOINED_BY) if kind in ADVICE), None)
        if kind is None or (len(found) == MOST_ADVICE and ADVICE[kind] not in found):
            continue
        kinds = found.setdefault(ADVICE[kind], [])
        if kind not in kinds:
            kinds.append(kind)
    return found
