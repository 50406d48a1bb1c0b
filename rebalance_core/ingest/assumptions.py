"""Values assumed when no file states them; each assumed field yields an INFO finding."""

from dataclasses import dataclass

from rebalance_core.model.group_settings import GroupSettings

_DEFAULTS = GroupSettings()


@dataclass(frozen=True)
class Assumptions:
    """The section ``[assume]`` of the configuration.

    Attributes:
        strategy: strategy text for groups whose client logs and ``consumerStatus`` were not
            collected.
        consume_from_where: ConsumeFromWhere for groups that no heartbeat line or dump describes.
        client_version: the client version of members whose registration is in no log or dump.
        broker_version: the broker version of brokers that no ``clusterList`` lists.
        time_zone: the time zone of files with local times that have no zone in ``collection.toml``.
    """

    strategy: str = _DEFAULTS.strategy
    consume_from_where: str = _DEFAULTS.consume_from_where
    client_version: str = _DEFAULTS.client_version
    broker_version: str = _DEFAULTS.broker_version
    time_zone: str = "UTC"
