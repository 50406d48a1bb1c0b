"""Groups that several tests of this folder speak about."""

from rebalance_core.model.queue import MessageQueue

MEMBERS = ["10.0.0.10@1#1", "10.0.0.1@1#1", "10.0.0.2@1#1"]  # Java order: '0' < '@'
EIGHT = [MessageQueue("T", f"broker-{b}", i) for b in "ab" for i in range(4)]


def queues(texts: str, topic: str = "T") -> list[MessageQueue]:
    """``"a0 b3"``: queue 0 of broker-a, queue 3 of broker-b."""
    return [MessageQueue(topic, f"broker-{text[0]}", int(text[1:])) for text in texts.split()]


def short(share: list[MessageQueue]) -> str:
    """The inverse of `queues`."""
    return " ".join(f"{q.broker_name[-1]}{q.queue_id}" for q in share)
