"""Facts that a name server's namesrv.log states."""

from rebalance_core.contracts.fact_declaration import (
    CLUSTER,
    NAME_SERVER,
    ONE_A_PLACE,
    TOPIC,
    LogFact,
)

NAME_SERVER_LOG = (
    LogFact(
        "broker_registered", NAME_SERVER, CLUSTER, "",
        "address; a replica that was not there before",
    ),
    LogFact(
        "broker_address", NAME_SERVER, CLUSTER, "",
        "broker, address: the name of a master's new address (4.9)",
    ),
    LogFact(
        "broker_known", NAME_SERVER, CLUSTER, "",
        "broker, address: the same, repeated at every registration of a master (4.9)",
        thinning=ONE_A_PLACE,
    ),
    LogFact(
        "broker_removed", NAME_SERVER, CLUSTER, "",
        "broker: no replica of that name is left here",
    ),
    LogFact(
        "replica_removed", NAME_SERVER, CLUSTER, "",
        "address: one process of a broker is out of the route here",
    ),
    LogFact(
        "topic_registered", NAME_SERVER, TOPIC, "topic",
        "topic, broker_name, read, write, perm: the first queues of a topic",
    ),
    LogFact(
        "topic_route", NAME_SERVER, TOPIC, "topic",
        "topic, broker_name, read, write, perm, and old: the same before",
    ),
    LogFact(
        "broker_channel_closed", NAME_SERVER, CLUSTER, "",
        "no field: a broker's channel was seen closing",
    ),
    LogFact(
        "name_server_property", NAME_SERVER, CLUSTER, "",
        "name (supportActingMaster) and value, at the start (5.x)",
    ),
    LogFact(
        "name_server_starting", NAME_SERVER, CLUSTER, "",
        "no field: a name server starts, and knows no broker yet",
    ),
    LogFact("name_server_stopping", NAME_SERVER, CLUSTER, "", "no field: it shuts down"),
    LogFact("broker_expired", NAME_SERVER, CLUSTER, "", "address: no registration for 120 s"),
)  # fmt: skip
