"""RocketMQ's own consumer groups, which belong to no application and are exempt from all rules."""

REVIVE_GROUP = "CID_RMQ_SYS_REVIVE_GROUP"
"""PopAckConstants: the group through which a broker reads popped messages that were not
acknowledged.
"""
SYSTEM_GROUPS = frozenset(
    {
        "TOOLS_CONSUMER",
        "FILTERSRV_CONSUMER",
        "SELF_TEST_C_GROUP",
        "CID_ONS-HTTP-PROXY",
        "CID_ONSAPI_PULL",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_OWNER",
        "__MONITOR_CONSUMER",
        "CLIENT_INNER_PRODUCER",
        "CID_DefaultHeartBeatSyncerTopic",  # with which proxies exchange their members
    }
)
"""MixAll's own groups and those of proxies; groups that begin with CID_RMQ_SYS_ belong to
brokers.
"""


def is_system_group(group: str) -> bool:
    """Return True for a group that belongs to the brokers, the proxies or mqadmin.

    >>> is_system_group("CID_RMQ_SYS_TRANS"), is_system_group("orders")
    (True, False)
    """
    return group in SYSTEM_GROUPS or group.startswith("CID_RMQ_SYS_")
