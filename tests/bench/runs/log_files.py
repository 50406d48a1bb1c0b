"""A collection of logs of a wanted size, made up line by line, of which it is known what it says.

Two brokers log the same clients: each connects, subscribes and leaves some time later. Everything
else in the files is what a broker writes all day and no reader wants.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

BROKERS = ("broker-a", "broker-b")
CLUSTER = "DefaultCluster"
GIANT = "giant-group"
TOPIC = "OrderTopic"
FIRST = datetime(2026, 11, 20, tzinfo=UTC)
SERVER_ZONE = timezone(timedelta(hours=8))  # broker logs are in GMT+8
SECONDS = 86_400
AT = "2026-11-20 08:00:00"
STAYS = 900
"""Seconds from a client's connection until it leaves."""
LINES_A_CLIENT = 3
OTHER_GROUPS = 500
CONNECTED = (
    "{at} INFO HeartbeatThread_1 - new consumer connected, group: {group} CONSUME_PASSIVELY "
    "CLUSTERING channel: ClientChannelInfo [channel=[id: 0x{client:08x}, L:/127.0.0.1:21020 - "
    "R:/10.0.0.1:40000], clientId={id}, language=JAVA, version=479, lastUpdateTimestamp={ms}]\n"
)
SUBSCRIBED = (
    "{at} INFO HeartbeatThread_1 - subscription changed, add new topic, group: {group} "
    "SubscriptionData [classFilterMode=false, topic={topic}, subString=*, tagsSet=[], codeSet=[], "
    "subVersion={ms}, expressionType=TAG]\n"
)
LEFT = (
    "{at} INFO ClientManageThread_1 - unregister a consumer[{group}] from consumerGroupInfo "
    "ClientChannelInfo [channel=[id: 0x{client:08x}, L:/127.0.0.1:21020 - R:/10.0.0.1:40000], "
    "clientId={id}, language=JAVA, version=479, lastUpdateTimestamp={ms}]\n"
)
NOISE = (
    "{at} INFO brokerOutApi_thread_1 - Registering current broker to name server completed. "
    "TargetHost=127.0.0.1:21000\n"
    "{at} INFO BrokerControllerScheduledThread1 - Dispatch task fall behind commit log 0bytes\n"
    "{at} INFO AdminBrokerThread_1 - AdminBrokerProcessor#updateAndCreateSubscriptionGroup called "
    "by 127.0.0.1:45166\n"
)


@dataclass(frozen=True)
class Logs:
    """What was made.

    Attributes:
        clients: How many connected; each left but those of the last `STAYS` seconds.
        left: How many of them left.
        lines: Of all files.
        bytes: Of all files.
    """

    clients: int
    left: int
    lines: int
    bytes: int


def write_logs(folder: Path, megabytes: int, giant_lines: int) -> Logs:
    """Write a collection.

    Args:
        folder: Which gets it.
        megabytes: Of all files together, about.
        giant_lines: Of one group in all files; the other groups together have as many again.
    """
    folder.mkdir(parents=True)
    (folder / "collection.toml").write_text(f'cluster = "{CLUSTER}"\n')
    clients = 2 * giant_lines // (LINES_A_CLIENT * len(BROKERS))
    lines, size, left = 0, 0, 0
    for broker in BROKERS:
        path = folder / f"brokers/{broker}/broker.log"
        path.parent.mkdir(parents=True)
        known = sum(map(len, _facts(clients, 0, SECONDS)))
        noise = max(0, megabytes * 1_000_000 // len(BROKERS) - known) // len(NOISE.format(at=AT))
        with path.open("w") as file:
            for begin in range(0, SECONDS, 3600):
                for text in _hour(clients, begin, noise):
                    file.write(text)
                    lines += text.count("\n")
                    left += text.count("unregister") if broker == BROKERS[0] else 0
        size += path.stat().st_size
    return Logs(clients, left, lines, size)


def _hour(clients: int, begin: int, noise: int) -> Iterator[str]:
    facts = iter([*_facts(clients, begin, begin + 3600)])
    for second in range(begin, begin + 3600):
        yield NOISE.format(at=_at(second)) * len(_share(noise, second))
        yield next(facts)


def _facts(clients: int, begin: int, end: int) -> Iterator[str]:
    """What every second says of clients."""
    for second in range(begin, end):
        came = _share(clients, second)
        left = _share(clients, second - STAYS) if second >= STAYS else range(0)
        values = {"at": _at(second), "topic": TOPIC}
        ms = int((FIRST + timedelta(seconds=second)).timestamp() * 1000)
        yield "".join(
            [(CONNECTED + SUBSCRIBED).format(**values, ms=ms, **_client(c)) for c in came]
            + [LEFT.format(**values, ms=ms, **_client(c)) for c in left]
        )


def _share(number: int, second: int) -> range:
    """Which of so many, spread over the day, fall into a second."""
    return range(number * second // SECONDS, number * (second + 1) // SECONDS)


def _client(number: int) -> dict[str, str | int]:
    group = GIANT if number % 2 else f"group-{number // 2 % OTHER_GROUPS:05d}"
    return {"group": group, "client": number, "id": f"10.0.0.1@{number}"}


def _at(second: int) -> str:
    return f"{FIRST.astimezone(SERVER_ZONE) + timedelta(seconds=second):%Y-%m-%d %H:%M:%S}"
