"""``ClientChannelInfo`` of a broker's or proxy's log (rocketmq.md §10.2, §14)."""

from __future__ import annotations

from typing import Any

from rebalance_core.ingest.parse.channels.proxied_channel import proxied_channel
from rebalance_core.ingest.parse.text.between import between
from rebalance_core.ingest.parse.text.rendered import INT_MAX, MS_MAX, whole

_INFO = "ClientChannelInfo [channel="
_CLIENT_ID = ", clientId="


def channel_info(text: str) -> dict[str, Any] | None:
    """``ClientChannelInfo [channel={}, clientId=…, language=…, version=…, lastUpdateTimestamp=…]``.

    The fields are client_id, language, version, beat_ms and channel, the client's address. Of a
    connection to a broker also local, the broker's own address (empty if missing); behind a proxy
    the other fields of `proxied_channel`, and version is None: the one printed is the proxy's.
    """
    # a channel's own text may name the client too: the last one counts
    channel, found, rest = text.rpartition(_CLIENT_ID)
    pieces = between(rest, "", ", language=", ", version=", ", lastUpdateTimestamp=", "]")
    if not found or pieces is None or not channel.startswith(_INFO):
        return None
    client_id, language, version, beat = pieces
    ordinal, beat_ms = whole(version, INT_MAX), whole(beat, MS_MAX)
    if not client_id or ordinal is None or beat_ms is None:
        return None
    client = {"client_id": client_id, "language": language, "version": ordinal, "beat_ms": beat_ms}
    channel = channel.removeprefix(_INFO)
    if channel.startswith("[id: "):
        return _connection(channel) | client
    proxied = proxied_channel(channel)
    return None if proxied is None else proxied | client | {"version": None}


def _connection(text: str) -> dict[str, Any]:
    """``[id: 0x…, L:/ip:port - R:/ip:port]``.

    A closed one prints ``!`` for ``-`` and may lack its remote part: its id then stands for it.
    """
    channel_id, _, addresses = text.removeprefix("[id: ").removesuffix("]").partition(", ")
    before, _, remote = addresses.partition("R:")
    local = before.partition("L:")[2].rpartition("/")[2].rstrip(" -!")
    return {"channel": remote.rpartition("/")[2] or channel_id, "local": local}
