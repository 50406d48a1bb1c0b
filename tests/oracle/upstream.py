"""The released client classes, called over py4j in the JVM of a Spark session."""

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from rebalance_core.strategies.machine_room_nearby import NEARBY
from rebalance_core.strategies.registry import STRATEGIES
from tests.oracle.cases import Case

JAVA_CLASSES = {one.NAME: one.JAVA_CLASS for one in STRATEGIES if one.JAVA_CLASS}
PACKAGE = "org.apache.rocketmq.client.consumer.rebalance"
# No invented NullPointerException messages (Java 15+): the vectors and old JVMs have none.
JAVA_OPTIONS = (
    "-XX:-ShowCodeDetailsInExceptionMessages -Dfile.encoding={charset} -Duser.home={home}"
)


class RoomResolver:
    """A Java ``MachineRoomResolver``: the room of the longest listed prefix of the name, else the
    text before the separator, None without one.
    """

    def __init__(self, params: dict[str, Any]) -> None:
        self._separator = params["room_separator"]
        self._client_rooms = params.get("client_rooms", {})
        self._broker_rooms = params.get("broker_rooms", {})

    def brokerDeployIn(self, queue: Any) -> str | None:  # noqa: N802 - a Java method
        return self._room(queue.getBrokerName(), self._broker_rooms)

    def consumerDeployIn(self, client_id: str) -> str | None:  # noqa: N802 - a Java method
        return self._room(client_id, self._client_rooms)

    def _room(self, name: str, rooms: dict[str, str]) -> str | None:
        for length in range(len(name), -1, -1):
            if name[:length] in rooms:
                return rooms[name[:length]]
        head, separator, _ = name.partition(self._separator)
        return head if separator else None

    class Java:
        implements = (f"{PACKAGE}.AllocateMachineRoomNearby$MachineRoomResolver",)


class Upstream:
    """Answers of one released version; one JVM cannot hold two, so one per process."""

    def __init__(self, version: str, charset: str, home: str) -> None:
        self._spark = (
            SparkSession.builder.master("local[1]")
            .appName(f"oracle {version}")
            .config("spark.jars.packages", f"org.apache.rocketmq:rocketmq-client:{version}")
            .config("spark.jars.ivy", f"{home}/ivy")
            .config(
                "spark.driver.extraJavaOptions", JAVA_OPTIONS.format(charset=charset, home=home)
            )
            .config("spark.ui.enabled", "false")
            .getOrCreate()
        )
        context = self._spark.sparkContext
        context.setLogLevel("ERROR")
        ensure_callback_server_started(context._gateway)
        self._jvm: Any = context._jvm

    def stop(self) -> None:
        """Ends the session."""
        self._spark.stop()

    def loaded_from(self) -> str:
        """Path of the jar the strategies were loaded from: shows which version answers."""
        java_class = self._class("AllocateMessageQueueAveragely")().getClass()
        return str(java_class.getProtectionDomain().getCodeSource().getLocation().getPath())

    def answer(self, case: Case) -> tuple[str, str]:
        """(name, result) where the result is written as in the allocation vectors."""
        try:
            strategy = self._strategy(case.name, case.params)
        except (Py4JJavaError, CapturedException) as error:
            return case.name, _thrown(error)
        # As RebalanceImpl does before it asks: whatever order they come in.
        queues = self._sorted(self._queue(*queue) for queue in case.queues)
        client_ids = self._sorted(case.client_ids)
        try:
            share = strategy.allocate("G", case.client_id, queues, client_ids)
        except (Py4JJavaError, CapturedException) as error:
            return strategy.getName(), _thrown(error)
        if share is None:
            return strategy.getName(), "null"
        texts = (f"{q.getTopic()}|{q.getBrokerName()}|{q.getQueueId()}" for q in share)
        return strategy.getName(), ",".join(texts)

    def _strategy(self, name: str, params: dict[str, Any]) -> Any:
        if name.startswith(NEARBY):
            inner = self._strategy(name.removeprefix(f"{NEARBY}-"), params)
            return self._class("AllocateMachineRoomNearby")(inner, RoomResolver(params))
        java_class = self._class(JAVA_CLASSES[name])
        if name == "CONSISTENT_HASH":
            return java_class(params["virtual_nodes"])
        strategy = java_class()
        if name == "MACHINE_ROOM" and params["consumer_idcs"] is not None:
            strategy.setConsumeridcs(self._jvm.java.util.HashSet(params["consumer_idcs"]))
        if name == "CONFIG" and params["config"] is not None:
            parts = (text.rsplit("|", 2) for text in params["config"])
            strategy.setMessageQueueList(self._list(self._queue(t, b, int(i)) for t, b, i in parts))
        return strategy

    def _class(self, name: str) -> Any:
        return getattr(self._jvm.org.apache.rocketmq.client.consumer.rebalance, name)

    def _queue(self, topic: str, broker_name: str, queue_id: int) -> Any:
        message = self._jvm.org.apache.rocketmq.common.message
        return message.MessageQueue(topic, broker_name, queue_id)

    def _sorted(self, items: Any) -> Any:
        java_list = self._list(items)
        self._jvm.java.util.Collections.sort(java_list)
        return java_list

    def _list(self, items: Any) -> Any:
        java_list = self._jvm.java.util.ArrayList()
        for item in items:
            java_list.add(item)
        return java_list


def _thrown(error: Py4JJavaError | CapturedException) -> str:
    # PySpark turns some Java exceptions into its own and keeps the original.
    thrown: Any = error._origin if isinstance(error, CapturedException) else error.java_exception
    message = thrown.getMessage()
    return f"!{thrown.getClass().getSimpleName()}: {'null' if message is None else message}"
