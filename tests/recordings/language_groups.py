"""A collection of one group at rest whose members are clients of several languages.

Lines and dumps have the form of those that brokers 5.3.3 and their mqadmin wrote with such members
(recording `go-java`, cases).
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rebalance_core.model.queue import MessageQueue

GROUP, TOPIC_RETRY = "g-mixed", "%RETRY%g-mixed"
BEGIN_MS, DUMPED_MS = 1_762_743_600_000, 1_762_747_200_000
PRINTED = {
    "JAVA": ("JAVA", 479, "V5_3_3"),
    "GO": ("GO", 317, "V4_5_2"),
    "CPP": ("CPP", 63, "V3_1_8"),
    "NODE": ("JAVA", 121, "V3_4_9"),
    "RUST": ("RUST", 473, "V5_3_1_SNAPSHOT"),
    "DOTNET": ("DOTNET", 405, "V4_9_7"),
}
"""By language what brokers print of a member: language, version number, version."""
_JAVA_CLASS = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@362e24d"
_IDLE = (
    "ProcessQueueInfo [commitOffset=700, cachedMsgMinOffset=0, cachedMsgMaxOffset=0, "
    "cachedMsgCount=0, cachedMsgSizeInMiB=0, transactionMsgMinOffset=0, "
    "transactionMsgMaxOffset=0, transactionMsgCount=0, locked=false, tryUnlockTimes=0, "
    "lastLockTimestamp=20251110030100000, droped=false, lastPullTimestamp=20251110035958000, "
    "lastConsumeTimestamp=20251110035957000]"
)
ANSWERING = ("JAVA", "GO", "RUST", "DOTNET")
"""Clients that tell mqadmin which queues they hold."""


def write_group(
    folder: Path,
    members: Mapping[str, str],
    held: Mapping[MessageQueue, Sequence[str]],
    strategy: str | None = None,
    *,
    holders_shown: bool = True,
    answers: bool = False,
) -> Path:
    """Write the collection.

    Args:
        folder: where to; it is made.
        members: language by client id; no two of one address.
        held: client ids that read each queue; all queues of one topic, from 0 on at each broker.
        strategy: what consumer_groups.jsonl states; None: no such file.
        holders_shown: False: mqadmin gave up asking, as one member did not answer, and
            consumerProgress -s prints N/A for every queue.
        answers: consumerStatus has the answers of those that answer; Java's divide by AVG.
    """
    queues = sorted(held)
    (topic,) = {queue.topic for queue in queues}
    numbers = {
        broker: sum(queue.broker_name == broker for queue in queues)
        for broker in sorted({queue.broker_name for queue in queues})
    }
    addresses = {broker: f"10.1.1.{place}:10911" for place, broker in enumerate(numbers, 1)}
    _write(
        folder / "collection.toml",
        'cluster = "C"\nadmin_time_zone = "UTC"\n\n[expected]\n'
        f'brokers = {json.dumps([*numbers])}\nname_servers = ["namesrv-1"]\n',
    )
    if strategy is not None:
        stated = {"consumer_group": GROUP, "strategy": strategy}
        _write(folder / "consumer_groups.jsonl", json.dumps(stated) + "\n")
    _write(
        folder / "namesrv/namesrv-1/namesrv.log",
        "".join(
            f"{_at(BEGIN_MS)} INFO RemotingExecutorThread_1 - new broker registered, {address} "
            f"HAServer: {address[:-1]}2\n"
            for address in addresses.values()
        ),
    )
    for broker, number in numbers.items():
        log = _broker_log(broker, addresses[broker], topic, number, members)
        _write(folder / "brokers" / broker / "broker.log", log)
        _dump(folder, f"consumerConnection-{GROUP}-{broker}", _connections(topic, members))
    for with_clients in (False, True):
        name = f"consumerProgress-s-{GROUP}" if with_clients else f"consumerProgress-{GROUP}"
        _dump(folder, name, _progress(queues, held if holders_shown else {}, with_clients))
    if answers:
        _write_answers(folder, topic, members, held)
    _dump(folder, f"topicRoute-{topic}", _route(numbers, addresses))
    _dump(folder, f"topicStatus-{topic}", _status(queues))
    _dump(folder, "clusterList", _cluster(addresses))
    return folder


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8", newline="\n")


def _dump(folder: Path, name: str, text: str) -> None:
    _write(folder / "mqadmin" / f"{DUMPED_MS}-{name}.txt", text)


def _at(ms: int, zone_ms: int = 8 * 3_600_000) -> str:
    return f"{datetime.fromtimestamp((ms + zone_ms) / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def _broker_log(
    broker: str, address: str, topic: str, number: int, members: Mapping[str, str]
) -> str:
    """Boots, makes the topics, and sees each member come; then registers every minute."""
    shape = "perm=RW-, topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false, attributes={}]"
    lines = [
        (0, f"main - brokerName={broker}"),
        (0, "main - brokerPermission=6"),
        (0, "main - brokerRole=ASYNC_MASTER"),
        (
            3,
            f"main - The broker[{broker}, {address}] boot success. serializeType=JSON and name "
            "server is 10.20.0.1:9876",
        ),
        (
            6,
            f"AdminBrokerThread_1 - create new topic [TopicConfig [topicName={topic}, "
            f"readQueueNums={number}, writeQueueNums={number}, {shape}]",
        ),
        (
            8,
            f"HeartbeatThread_1 - create new topic TopicConfig [topicName={TOPIC_RETRY}, "
            f"readQueueNums=1, writeQueueNums=1, {shape}",
        ),
    ]
    for place, (client_id, language) in enumerate(members.items()):
        printed, version, _ = PRINTED[language]
        second = 60 + 2 * place
        lines.append(
            (
                second,
                f"HeartbeatThread_1 - new consumer connected, group: {GROUP} CONSUME_PASSIVELY "
                f"CLUSTERING channel: ClientChannelInfo [channel=[id: 0x{place + 1:08x}, "
                f"L:/{address} - R:/10.2.0.{place + 1}:30001], clientId={client_id}, "
                f"language={printed}, version={version}, "
                f"lastUpdateTimestamp={BEGIN_MS + 1000 * second + 400}]",
            )
        )
        subscriptions = [
            f"SubscriptionData [classFilterMode=false, topic={name}, subString=*, tagsSet=[], "
            f"codeSet=[], subVersion={BEGIN_MS + place}, expressionType=TAG]"
            for name in (TOPIC_RETRY, topic)
        ]
        if not place:
            lines += [
                (
                    second,
                    "HeartbeatThread_1 - subscription changed, add new topic, group: "
                    f"{GROUP} {one}",
                )
                for one in subscriptions
            ]
        lines.append(
            (
                second,
                "HeartbeatThread_1 - registerConsumer info changed ConsumerData "
                f"[groupName={GROUP}, consumeType=CONSUME_PASSIVELY, messageModel=CLUSTERING, "
                "consumeFromWhere=CONSUME_FROM_LAST_OFFSET, unitMode=false, "
                f"subscriptionDataSet=[{', '.join(subscriptions)}]] 10.2.0.{place + 1}:30001",
            )
        )
    ok = "brokerOutApi_thread_2 - register broker[0]to name server 10.20.0.1:9876 OK"
    lines += [(second, ok) for second in range(180, 3_660, 60)]
    return "".join(f"{_at(BEGIN_MS + 1000 * second)} INFO {text}\n" for second, text in lines)


def _connections(topic: str, members: Mapping[str, str]) -> str:
    rows = [
        f"{client_id:<36} {f'10.2.0.{place}:30001':<22} {PRINTED[language][0]:<10} "
        f"{PRINTED[language][2]}"
        for place, (client_id, language) in enumerate(members.items(), 1)
    ]
    head = f"{'#ClientId':<36} {'#ClientAddr':<22} {'#Language':<10} #Version"
    below = f"\nBelow is subscription:\n{'#Topic':<20} #SubExpression\n"
    below += "".join(f"{name:<20} *\n" for name in (TOPIC_RETRY, topic))
    return (
        "\n".join([head, *rows])
        + f"\n{below}\n"
        + (
            "ConsumeType: CONSUME_PASSIVELY\nMessageModel: CLUSTERING\n"
            "ConsumeFromWhere: CONSUME_FROM_LAST_OFFSET\n"
        )
    )


def _progress(
    queues: Sequence[MessageQueue], held: Mapping[MessageQueue, Sequence[str]], with_clients: bool
) -> str:
    client = f"{'#Client IP':<22}" if with_clients else ""
    text = (
        f"{'#Topic':<66}{'#Broker Name':<34}{'#QID':<6}{'#Broker Offset':<22}"
        f"{'#Consumer Offset':<22}{client}{'#Diff':<22}{'#Inflight':<22}#LastTime\n"
    )
    for queue in queues:
        address = next(iter(held.get(queue, ())), "N/A").partition("@")[0]
        text += (
            f"{queue.topic:<66}{queue.broker_name:<34}{queue.queue_id:<6}{700:<22}{700:<22}"
            f"{f'{address:<22}' if with_clients else ''}{0:<22}{0:<22}"
            f"{_at(DUMPED_MS - 3_000, 0)}\n"
        )
    return text + "\nConsume TPS: 12.30\nConsume Diff Total: 0\nConsume Inflight Total: 0\n"


def _write_answers(
    folder: Path,
    topic: str,
    members: Mapping[str, str],
    held: Mapping[MessageQueue, Sequence[str]],
) -> None:
    asked = [(one, language) for one, language in members.items() if language in ANSWERING]
    index = f"{'#Index':<11}{'#ClientId':<41}{'#Version':<21}#ConsumerRunningInfoFile\n"
    for place, (client_id, language) in enumerate(asked, 1):
        index += f"{place:<11}{client_id:<41}{PRINTED[language][2]:<21}{DUMPED_MS}/{client_id}\n"
        properties = {
            "PROP_CONSUMER_START_TIMESTAMP": str(BEGIN_MS + 60_000),
            "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
            "PROP_CONSUMEORDERLY": "false",
            "PROP_CLIENT_VERSION": {"GO": "v2.1.1"}.get(language, PRINTED[language][2]),
        }
        if language == "JAVA":
            properties["allocateMessageQueueStrategy"] = _JAVA_CLASS
        text = "#Consumer Properties#\n"
        text += "".join(f"{name:<40}: {value}\n" for name, value in properties.items())
        text += "\n\n#Consumer Subscription#\n"
        for number, name in enumerate((TOPIC_RETRY, topic), 1):
            text += f"{number:03} Topic: {name:<40} ClassFilter: false    SubExpression: *\n"
        columns = f"{'#Topic':<66}{'#Broker Name':<34}{'#QID':<6}"
        text += f"\n\n#Consumer Offset#\n{columns}#Consumer Offset    \n"
        text += f"\n\n#Consumer MQ Detail#\n{columns}#ProcessQueueInfo   \n"
        for queue, owners in held.items():
            if client_id in owners:
                text += f"{queue.topic:<66}{queue.broker_name:<34}{queue.queue_id:<6}{_IDLE}\n"
        text += f"\n\n#Consumer Pop Detail#\n{columns}#ProcessQueueInfo   \n"
        text += "\n\n#Consumer RT&TPS#\n\n\n#User Consume Info#\n\n\n#Consumer jstack#\n"
        name = f"{DUMPED_MS}-consumerStatus-{GROUP}/{client_id}.txt"
        _write(folder / "mqadmin" / name, text)
    index += "\n\nSame subscription in the same group of consumer\n\nRebalance OK\n"
    _dump(folder, f"consumerStatus-{GROUP}", index)


def _route(numbers: Mapping[str, int], addresses: Mapping[str, str]) -> str:
    brokers = [
        {"brokerAddrs": {"0": addresses[name]}, "brokerName": name, "cluster": "C"}
        for name in numbers
    ]
    queues = [
        {
            "brokerName": name,
            "perm": 6,
            "readQueueNums": number,
            "topicSysFlag": 0,
            "writeQueueNums": number,
        }
        for name, number in numbers.items()
    ]
    return json.dumps({"brokerDatas": brokers, "filterServerTable": {}, "queueDatas": queues})


def _status(queues: Sequence[MessageQueue]) -> str:
    head = f"{'#Broker Name':<34}{'#QID':<6}{'#Min Offset':<22}{'#Max Offset':<24}#Last Updated\n"
    return head + "".join(
        f"{queue.broker_name:<34}{queue.queue_id:<6}{0:<22}{700:<24}"
        f"{_at(DUMPED_MS - 3_000, 0)},000\n"
        for queue in queues
    )


def _cluster(addresses: Mapping[str, str]) -> str:
    head = (
        f"{'#Cluster Name':<18}{'#Broker Name':<24}{'#BID':<6}{'#Addr':<23}{'#Version':<28}"
        "#InTPS(LOAD)      #OutTPS(LOAD) #PCWait(ms) #Hour #SPACE\n"
    )
    return head + "".join(
        f"{'C':<18}{name:<24}{'0':<6}{address:<23}{'V5_3_3':<28}"
        "0.00(0,0ms)        0.00(0,0ms)           0 498675.60 0.1500\n"
        for name, address in addresses.items()
    )
