"""Nights of a made-up cluster whose delays are known: logs of brokers and clients, ingested."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random

from rebalance_core.contracts.rows import LatenciesRow
from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.timing.delay import Delay, delay_ms
from rebalance_core.timing.draws import DRAW_BITS

BROKERS, MEMBERS, QUEUES = 4, 40, 6
APART_MS, FIRST_MS = 60_000, 1_795_230_060_000
_CREATED = (
    "Created a new client Instance, InstanceIndex:0, ClientID:{}, ClientConfig:ClientConfig{{}}, "
    "ClientVersion:V5_3_3"
)
_CONNECTED = (
    "{} INFO t - new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING channel: "
    "ClientChannelInfo [channel=[id: 0x{}{}, L:/10.0.1.{}:1 - R:/10.0.2.{}:{}], clientId={}, "
    "language=JAVA, version=479, lastUpdateTimestamp={}]\n"
)
_BEAT = (
    "HeartbeatData [clientID={}, producerDataSet=[], consumerDataSet=[ConsumerData [groupName=g, "
    "consumeType=CONSUME_PASSIVELY, messageModel=CLUSTERING, "
    "consumeFromWhere=CONSUME_FROM_LAST_OFFSET, unitMode=false, subscriptionDataSet="
    "[SubscriptionData [classFilterMode=false, topic=T, subString=*, tagsSet=[], codeSet=[], "
    "subVersion={}, expressionType=TAG]]]]]"
)
_TAKEN = "doRebalance, g, add a new mq, MessageQueue [topic=T, brokerName=b0, queueId={}]"
_LEFT = "unregister client[Producer: null Consumer: g] from broker[b{} 0 10.0.1.{}:1] success"


@dataclass(frozen=True)
class KnownDelays:
    """The delays of a cluster."""

    start_up: Delay
    registration: Delay
    unregistration: Delay
    queue_taken: Delay


KNOWN = KnownDelays(
    start_up=delay_ms((0, 700), (0.5, 1_500), (0.9, 3_000), (1, 9_000)),
    registration=delay_ms((0, 20), (0.5, 70), (0.9, 120), (1, 200)),
    unregistration=delay_ms((0, 10), (0.5, 30), (0.9, 90), (1, 400)),
    queue_taken=delay_ms((0, 5), (0.5, 12), (0.9, 40), (1, 300)),
)


def evenly(delay: Delay, count: int, random: Random) -> list[int]:
    """So many delays in ms, as evenly spread as there are quantiles, in a random order."""
    draws = [(2 * place + 1 << DRAW_BITS) // (2 * count) for place in range(count)]
    delays = [round(delay.delay_of(draw) / 1_000) for draw in draws]
    random.shuffle(delays)
    return delays


def night(folder: Path, delays: KnownDelays, seed: int) -> Sequence[LatenciesRow]:
    """Rows of ``latencies`` of a night in which so many members come, take queues and leave."""
    random = Random(seed)  # no secret
    start_ups = evenly(delays.start_up, MEMBERS, random)
    steps = evenly(delays.registration, MEMBERS * (BROKERS - 1), random)
    leaves = evenly(delays.unregistration, MEMBERS * (BROKERS - 1), random)
    takes = evenly(delays.queue_taken, MEMBERS * (QUEUES - 1), random)
    brokers: dict[int, list[tuple[int, str]]] = {broker: [] for broker in range(BROKERS)}
    for member in range(MEMBERS):
        client_id, begin_ms = f"10.0.2.{member}@1#{member}99", FIRST_MS + member * APART_MS
        lines = [(begin_ms, _CREATED.format(client_id))]
        own = [0, *(steps.pop() for _ in range(BROKERS - 1))]
        ms = begin_ms + start_ups.pop() - sum(own)
        lines.append((ms + 1, _BEAT.format(client_id, begin_ms)))
        for broker, step in enumerate(own):
            ms += step
            names = f"{member:02}", f"{broker:02}", broker, member, 1_000 + broker
            line = _CONNECTED.format(_second(ms), *names, client_id, ms)
            brokers[broker].append((ms, line))
        ms += 900
        for queue, step in enumerate([0, *(takes.pop() for _ in range(QUEUES - 1))]):
            ms += step
            lines.append((ms, _TAKEN.format(queue)))
        ms += 20_000
        for broker, step in enumerate([0, *(leaves.pop() for _ in range(BROKERS - 1))]):
            ms += step
            lines.append((ms, _LEFT.format(broker, broker)))
        path = folder / "clients" / f"c{member}" / "rocketmq_client.log"
        path.parent.mkdir(parents=True)
        path.write_text("".join(_client_line(ms, text) for ms, text in lines))
    for broker, of_broker in brokers.items():
        path = folder / "brokers" / f"b{broker}" / "broker.log"
        path.parent.mkdir(parents=True)
        path.write_text("".join(line for _, line in sorted(of_broker)))
    (folder / "collection.toml").write_text('cluster = "C"\n')
    return ingest_collection(folder).tables["latencies"]


def _second(ms: int) -> str:
    moment = datetime.fromtimestamp(ms / 1_000, timezone(timedelta(hours=8)))
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _client_line(ms: int, text: str) -> str:
    return f"{_second(ms)}.{ms % 1_000:03} INFO  [1] [main] [o.a.r.c.X#?:?] - {text}\n"
