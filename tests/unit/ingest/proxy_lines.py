"""Lines of a proxy's broker.log, as 5.5.0 prints them, and small collections of them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rebalance_core.ingest.in_process import ingest_collection
from tests.recordings.tables import Row, Tables

START_MS = 1_795_331_400_000  # 2026-11-22 15:10:00 GMT+8
GROUP, CLIENT, TOPIC = "g-push", "vm@1@0@a", "GA"
PROXY_ADDRESSES = {"proxy-1": "10.0.9.1:8081", "proxy-2": "10.0.9.2:8081"}
SUBSCRIPTION = (
    "SubscriptionData [classFilterMode=false, topic={}, subString=*, tagsSet=[], codeSet=[], "
    "subVersion=1795331438836, expressionType=TAG]"
)
JSON = """{
  "clientType": "PUSH_CONSUMER",
  "subscription": {
    "group": {
      "name": "g-push"
    }
  }
}"""


def line(second: int, message: str, level: str = "INFO") -> str:
    at = datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(hours=8, seconds=second)
    return f"{at:%Y-%m-%d %H:%M:%S} {level} Thread-0 - {message}\n"


def grpc(client: str = CLIENT, port: int = 4001, proxy: str = "proxy-1") -> str:
    """A client's connection as its own proxy prints it."""
    return (
        f"GrpcClientChannel{{clientId={client}, remoteAddress=10.0.0.1:{port}, "
        f"localAddress={PROXY_ADDRESSES[proxy]}}}"
    )


def remote(
    port: int = 4001, proxy: str = "proxy-1", protocol: str = "GRPC_V2", attribute: str = "null"
) -> str:
    """The same as another proxy prints it."""
    address = PROXY_ADDRESSES[proxy]
    ip = address.partition(":")[0]
    return (
        f"RemoteChannel{{channelId=RemoteChannelId{{id={ip}@10.0.0.1:{port}@{address}@{protocol}}},"
        f" type={protocol}, remoteProxyIp={ip}, extendAttribute={attribute}}}"
    )


def remoting(client: str, port: int, proxy: str = "proxy-1", topic: str = TOPIC) -> str:
    """A remoting client's connection as its own proxy prints it."""
    address = PROXY_ADDRESSES[proxy]
    return (
        f"RemotingChannel{{parent=[id: 0x14f858ac, L:/{address} - R:/10.0.0.1:{port}], "
        f"clientId={client}, remoteAddress=10.0.0.1:{port}, localAddress={address}, "
        f"subscriptionData=[{SUBSCRIPTION.format('%RETRY%' + GROUP)}, "
        f"{SUBSCRIPTION.format(topic)}]}}"
    )


def info(channel: str, second: int, client: str = CLIENT, language: str = "JAVA") -> str:
    return (
        f"ClientChannelInfo [channel={channel}, clientId={client}, language={language}, "
        f"version=513, lastUpdateTimestamp={START_MS + 1000 * second + 7}]"
    )


def connected(
    second: int,
    channel: str,
    client: str = CLIENT,
    consume_type: str = "CONSUME_PASSIVELY",
    language: str = "JAVA",
) -> str:
    what = f"new consumer connected, group: {GROUP} {consume_type} CLUSTERING channel: "
    return line(second, what + info(channel, second, client, language))


def left(second: int, channel: str, client: str = CLIENT) -> str:
    what = f"unregister a consumer[{GROUP}] from consumerGroupInfo "
    return line(second, what + info(channel, second, client))


def closed(second: int, channel: str, client: str = CLIENT) -> str:
    return line(
        second,
        f"NETTY EVENT: remove not active channel[{info(channel, second, client)}] from "
        f"ConsumerGroupInfo groupChannelTable, consumer group: {GROUP}",
        "WARN",
    )


def expired(second: int, port: int = 4001) -> str:
    return line(
        second,
        "SCAN: remove expired channel from ConsumerManager consumerTable. "
        f"channel=10.0.0.1:{port}, consumerGroup={GROUP}",
        "WARN",
    )


def added(second: int, topic: str = TOPIC) -> str:
    what = f"subscription changed, add new topic, group: {GROUP} {SUBSCRIPTION.format(topic)}"
    return line(second, what)


def heartbeat(second: int) -> str:
    """The noise of a proxy that is told of a heartbeat."""
    data = SUBSCRIPTION.format(TOPIC)
    return line(second, f"subscription changed, group: {GROUP} OLD: {data} NEW: {data}")


def starting(second: int) -> str:
    return line(
        second, "Try to start service thread:RebalanceService started:false lastThread:null"
    )


def ingested_files(folder: Path, files: dict[str, str], settings: str = "") -> Tables:
    """The tables of a collection with these files; `settings` are added to collection.toml."""
    (folder / "collection.toml").write_text(f'cluster = "C"\nadmin_time_zone = "UTC"\n{settings}')
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return ingest_collection(folder).tables


def logs(**of_proxies: str) -> dict[str, str]:
    """``proxy_1="…"`` as the log of proxy-1."""
    return {f"proxy/{name.replace('_', '-')}/broker.log": text for name, text in of_proxies.items()}


def members(tables: Tables) -> list[tuple[str, str, int, Any]]:
    """Type, client id, second and detail of the events of members."""
    return [
        (
            row["event_type"].removeprefix("CONSUMER_"),
            row["client_id"],
            (row["event_ms"] - START_MS) // 1000,
            row.get("detail"),
        )
        for row in tables["cluster_events"]
        if row["event_type"].startswith("CONSUMER_")
    ]


def joins(tables: Tables) -> list[Row]:
    return [row for row in tables["cluster_events"] if row["event_type"] == "CONSUMER_JOIN"]
