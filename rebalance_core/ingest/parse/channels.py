"""Formats in which brokers and proxies print their clients' connections."""

import json

from rebalance_core.ingest.parse import java_numbers, java_text

# Channels behind a proxy, as rendered by its log or by a broker with an embedded proxy
# (rocketmq.md §14).
GRPC, REMOTING = "GRPC", "REMOTING"
"""The protocol between a client and its proxy."""

_TYPES = {"GRPC_V2": GRPC, "GRPC_V1": GRPC, "REMOTING": REMOTING}
"""ChannelProtocolType."""


def proxied_channel(text: str) -> dict[str, object] | None:
    """Return the fields of a ``GrpcClientChannel``, ``RemotingChannel`` or ``RemoteChannel``.

    channel (the client's address), proxy_addr (the proxy's end of the connection), protocol
    (`GRPC`, `REMOTING`), remote (True if it belongs to another proxy, which reported it), topics
    (those that a remoting client subscribes to; None if not stated). The result is None for any
    other text.
    """
    if text.startswith("GrpcClientChannel{"):
        return _grpc(text)
    if text.startswith("RemotingChannel{"):
        return _remoting(text)
    return _remote(text) if text.startswith("RemoteChannel{") else None


def _grpc(text: str) -> dict[str, object] | None:
    pieces = java_text.between(
        text, "GrpcClientChannel{clientId=", ", remoteAddress=", ", localAddress=", "}"
    )
    return None if pieces is None else _channel(pieces[1], pieces[2], GRPC)


def _remoting(text: str) -> dict[str, object] | None:
    pieces = java_text.between(
        text,
        "RemotingChannel{parent=",
        ", clientId=",
        ", remoteAddress=",
        ", localAddress=",
        ", subscriptionData=[",
        "",
    )
    if pieces is None:
        return None
    topics = sorted(java_text.subscribed_topics(pieces[4]))
    return _channel(pieces[2], pieces[3], REMOTING, topics=topics or None)


def _remote(text: str) -> dict[str, object] | None:
    pieces = java_text.between(
        text,
        "RemoteChannel{channelId=RemoteChannelId{id=",
        "}, type=",
        ", remoteProxyIp=",
        ", extendAttribute=",
        "",
    )
    words = pieces[0].rsplit("@", 3) if pieces else []
    if pieces is None or len(words) != 4 or pieces[1] not in _TYPES:
        return None
    protocol = _TYPES[pieces[1]]
    topics = _listed(pieces[3].removesuffix("}")) if protocol == REMOTING else None
    return _channel(words[1], words[2], protocol, remote=True, topics=topics)


def _channel(
    channel: str,
    proxy_addr: str,
    protocol: str,
    *,
    remote: bool = False,
    topics: list[str] | None = None,
) -> dict[str, object] | None:
    addresses = [address.rpartition("/")[2] for address in (channel, proxy_addr)]
    if not all(addresses):
        return None
    return {
        "channel": addresses[0],
        "proxy_addr": addresses[1],
        "protocol": protocol,
        "remote": remote,
        "topics": topics,
    }


def _listed(text: str) -> list[str] | None:
    """Return the topics in the JSON list of a remoting client's subscriptions."""
    try:
        entries: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entries, list):
        return None
    subscriptions: list[dict[str, object]] = [one for one in entries if isinstance(one, dict)]
    topics = {one.get("topic") for one in subscriptions}
    return sorted(topic for topic in topics if isinstance(topic, str) and topic) or None


# ``ClientChannelInfo`` in a broker's or proxy's log (rocketmq.md §10.2, §14).
_INFO = "ClientChannelInfo [channel="
_CLIENT_ID = ", clientId="


def channel_info(text: str) -> dict[str, object] | None:
    """``ClientChannelInfo [channel={}, clientId=…, language=…, version=…, lastUpdateTimestamp=…]``.

    The fields are client_id, language, version, beat_ms and channel, the client's address. A
    connection to a broker also has local, the broker's own address (empty if missing). A connection
    behind a proxy also has the other fields of `proxied_channel`, and its version is None, because
    the printed version is the proxy's.
    """
    # a channel's own text may contain a client's name, so the last name counts
    channel, marker, rest = text.rpartition(_CLIENT_ID)
    pieces = java_text.between(rest, "", ", language=", ", version=", ", lastUpdateTimestamp=", "]")
    if not marker or pieces is None or not channel.startswith(_INFO):
        return None
    client_id, language, version, beat = pieces
    ordinal = java_text.whole(version, java_numbers.INT_MAX)
    beat_ms = java_text.whole(beat, java_text.MS_MAX)
    if not client_id or ordinal is None or beat_ms is None:
        return None
    client = {"client_id": client_id, "language": language, "version": ordinal, "beat_ms": beat_ms}
    channel = channel.removeprefix(_INFO)
    if channel.startswith("[id: "):
        return _connection(channel) | client
    proxied = proxied_channel(channel)
    return None if proxied is None else proxied | client | {"version": None}


def _connection(text: str) -> dict[str, object]:
    """Read ``[id: 0x…, L:/ip:port - R:/ip:port]``.

    A closed connection has ``!`` instead of ``-`` and may lack its remote part, for which its id
    then stands.
    """
    channel_id, _, addresses = text.removeprefix("[id: ").removesuffix("]").partition(", ")
    before, _, remote = addresses.partition("R:")
    local = before.partition("L:")[2].rpartition("/")[2].rstrip(" -!")
    return {"channel": remote.rpartition("/")[2] or channel_id, "local": local}
