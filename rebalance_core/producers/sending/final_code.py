"""The exception that a send ends with when every attempt failed."""

from rebalance_core.producers.sending.answers import (
    BROKER_EXCEPTION,
    CLIENT_EXCEPTION,
    CONNECT,
    REMOTING_CLASSES,
    TIMEOUT,
    JavaFailure,
)

CONNECT_BROKER = 10001  # ClientErrorCode.CONNECT_BROKER_EXCEPTION
ACCESS_BROKER_TIMEOUT = 10002
BROKER_NOT_EXIST = 10003
NOT_FOUND_TOPIC = 10005
NO_CODE = -1


def final_failure(last: JavaFailure, attempts: int) -> JavaFailure:
    """``MQClientException`` around the last attempt's exception. rocketmq.md §9.3."""
    codes = {
        BROKER_EXCEPTION: last.code,
        REMOTING_CLASSES[CONNECT]: CONNECT_BROKER,
        REMOTING_CLASSES[TIMEOUT]: ACCESS_BROKER_TIMEOUT,
        CLIENT_EXCEPTION: BROKER_NOT_EXIST,
    }
    code = codes.get(last.java_class, NO_CODE)
    return JavaFailure(CLIENT_EXCEPTION, code, last.java_class, attempts)


def no_route() -> JavaFailure:
    """The topic has no queue to send to."""
    return JavaFailure(CLIENT_EXCEPTION, NOT_FOUND_TOPIC)
