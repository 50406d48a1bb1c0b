"""Java objects as the logs render them, back to plain values (SEM §10.2)."""

from __future__ import annotations

from typing import Any

from rebalance_core.ingest.cut import cut

PERM_READ, PERM_WRITE, PERM_INHERIT = 4, 2, 1  # PermName.PERM_READ and the others
_MS_DIGITS = 15
_PERM_LETTERS = {"R": PERM_READ, "W": PERM_WRITE, "X": PERM_INHERIT, "-": 0}


def channel_info(text: str) -> dict[str, Any] | None:
    """``ClientChannelInfo [channel=[id: 0x…, L:/ip:port - R:/ip:port], clientId=…, …]``.

    A closed channel prints ``!`` for ``-`` and may lack its remote part; ``channel`` is then the
    channel's id, else the remote address.
    """
    pieces = cut(
        text,
        "ClientChannelInfo [channel=[id: ",
        "], clientId=",
        ", language=",
        ", version=",
        ", lastUpdateTimestamp=",
        "]",
    )
    if pieces is None:
        return None
    channel, client_id, language, version, beat = pieces
    if not client_id or not version.isdecimal() or not beat.isdecimal():
        return None
    channel_id, _, addresses = channel.partition(", ")
    remote = addresses.partition("R:")[2].rpartition("/")[2]
    return {
        "channel": remote or channel_id,
        "client_id": client_id,
        "language": language,
        "version": int(version),
        "beat_ms": int(beat),
    }


def consumer_data(text: str) -> dict[str, Any] | None:
    """``ConsumerData [groupName=…, …, subscriptionDataSet=[SubscriptionData […], …]]``."""
    pieces = cut(
        text,
        "ConsumerData [groupName=",
        ", consumeType=",
        ", messageModel=",
        ", consumeFromWhere=",
        ", unitMode=",
        ", subscriptionDataSet=[",
        "",
    )
    if pieces is None or not pieces[0]:
        return None
    group, consume_type, model, where, _, subscriptions = pieces
    return {
        "group": group,
        "consume_type": consume_type,
        "message_model": model,
        "consume_from_where": where,
        **_subscriptions(subscriptions),
    }


def _subscriptions(text: str) -> dict[str, Any]:
    """Topics of a list of ``SubscriptionData […, topic=…, …, subVersion=…, …]``, sorted.

    ``known_ms`` is the lowest subVersion: a client sets one when it subscribes and again when its
    queues change, so it was there at that time.
    """
    topics, versions = set(), []
    for part in text.split("SubscriptionData [classFilterMode=")[1:]:
        pieces = cut(part, "", ", topic=", ", subString=", ", subVersion=", ", expressionType=")
        if pieces is not None and pieces[1]:
            topics.add(pieces[1])
            if pieces[3].isdecimal() and len(pieces[3]) <= _MS_DIGITS:
                versions.append(int(pieces[3]))
    return {"topics": sorted(topics), "known_ms": min(versions, default=None)}


def topic_config(text: str) -> dict[str, Any] | None:
    """``TopicConfig [topicName=…, readQueueNums=…, writeQueueNums=…, perm=RW-, …]``."""
    pieces = cut(
        text,
        "TopicConfig [topicName=",
        ", readQueueNums=",
        ", writeQueueNums=",
        ", perm=",
        ", topicFilterType=",
    )
    if pieces is None:
        return None
    topic, read, write, perm = pieces
    bits = perm_bits(perm)
    if not topic or not read.isdecimal() or not write.isdecimal() or bits is None:
        return None
    return {"topic": topic, "read": int(read), "write": int(write), "perm": bits}


def queue_data(text: str) -> dict[str, Any] | None:
    """``QueueData [brokerName=…, readQueueNums=…, writeQueueNums=…, perm=6, topicSysFlag=…]``."""
    pieces = cut(
        text,
        "QueueData [brokerName=",
        ", readQueueNums=",
        ", writeQueueNums=",
        ", perm=",
        ", topicSysFlag=",
    )
    if pieces is None:
        return None
    broker, read, write, perm = pieces
    bits = perm_bits(perm)
    if not broker or not read.isdecimal() or not write.isdecimal() or bits is None:
        return None
    return {"broker_name": broker, "read": int(read), "write": int(write), "perm": bits}


def perm_bits(text: str) -> int | None:
    """Bits of ``RW-`` and the like (PermName.perm2String), or of a plain number.

    >>> perm_bits("RW-"), perm_bits("4"), perm_bits("?")
    (6, 4, None)
    """
    if text.isdecimal():
        return int(text)
    if len(text) != 3 or any(letter not in _PERM_LETTERS for letter in text):
        return None
    return sum(_PERM_LETTERS[letter] for letter in text)


def message_queues(text: str) -> list[tuple[str, str, int]]:
    """All ``MessageQueue [topic=…, brokerName=…, queueId=…]`` of a text, in order."""
    queues = []
    for part in text.split("MessageQueue [topic=")[1:]:
        pieces = cut(part, "", ", brokerName=", ", queueId=", "]")
        if pieces is not None and pieces[2].lstrip("-").isdecimal():
            queues.append((pieces[0], pieces[1], int(pieces[2])))
    return queues
