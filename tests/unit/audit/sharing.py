"""Groups that share queues: request modes, what clients pop as dumps show it, proxies' lists."""

from typing import Any

from rebalance_core.model.events import REQUEST_MODE, Event
from rebalance_core.model.group_settings import GroupSettings
from tests.unit.audit.snapshots import Row, event, fact

BROKER = GroupSettings(rebalance_mode="BROKER")
PROXY = GroupSettings(rebalance_mode="PROXY")
EVERYTHING = "POP(share_queue_num=0)"


def mode(detail: str = EVERYTHING, name: str = "T", at: float = 20) -> Event:
    """setConsumeMode of a topic."""
    return event(REQUEST_MODE, at, topic=name, detail=detail)


def status(
    client: str, at: float, popped: str = "", pulled: str = "", retry: str = ""
) -> list[Row]:
    """consumerStatus of a client: queues of T as ``a:0 b:-1``, what it pops and what it pulls.

    ``retry``: brokers whose retry queue it pulls.
    """
    rows = [fact("DUMP", at, client_id=client, command="consumerStatus")]
    own = [("POP_QUEUE", "T", one) for one in popped.split()]
    own += [("HELD_QUEUE", "T", one) for one in pulled.split()]
    own += [("HELD_QUEUE", "%RETRY%g", f"{broker}:0") for broker in retry.split()]
    for kind, name, queue in own:
        broker, queue_id = queue.split(":")
        where: dict[str, Any] = {"topic": name, "broker_name": broker, "queue_id": int(queue_id)}
        rows.append(fact(kind, at, client_id=client, dropped=False, **where))
    return [row | {"source": f"{at}-{client}"} for row in rows]


def listed_by(proxy: str, at: float, *clients: str, language: str = "JAVA") -> list[Row]:
    """Members as consumerConnection of a proxy lists them."""
    rows = [fact("GROUP_AT_PROXY", at, proxy=proxy, members=len(clients))]
    rows += [
        fact("CONNECTION", at, client_id=client, proxy=proxy, client_addr=client, language=language)
        for client in clients
    ]
    return [row | {"source": f"{at}-{proxy}"} for row in rows]
