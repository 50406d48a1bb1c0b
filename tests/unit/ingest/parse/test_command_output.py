from rebalance_core.ingest.parse.command_output import read_output
from tests.unit.ingest.documents import codes, facts, kinds

NOT_ONLINE = """\
org.apache.rocketmq.tools.command.SubCommandException: ConsumerConnectionSubCommand command failed
	at org.apache.rocketmq.tools.command.connection.ConsumerConnectionSubCommand.execute(ConsumerConnectionSubCommand.java:102)
	at org.apache.rocketmq.tools.command.MQAdminStartup.main(MQAdminStartup.java:131)
Caused by: org.apache.rocketmq.client.exception.MQBrokerException: CODE: 206  DESC: the consumer group[crm] not online BROKER: 10.0.9.1:10911
For more information, please visit the url, https://rocketmq.apache.org/docs/bestPractice/06FAQ
	at org.apache.rocketmq.client.impl.MQClientAPIImpl.getConsumerConnectionList(MQClientAPIImpl.java:1874)
	... 3 more
"""  # noqa: E501 - the columns are upstream's
NO_BROKER = """\
org.apache.rocketmq.tools.command.SubCommandException: ConsumerConnectionSubCommand command failed
	at org.apache.rocketmq.tools.command.MQAdminStartup.main(MQAdminStartup.java:131)
Caused by: org.apache.rocketmq.remoting.exception.RemotingConnectException: connect to 10.0.9.1:10911 failed
	... 3 more
"""  # noqa: E501 - the columns are upstream's
NOISE = """\
Picked up JAVA_TOOL_OPTIONS: -Xmx1g
OpenJDK 64-Bit Server VM warning: ignoring option PermSize=128m; support was removed in 8.0
RocketMQLog:WARN No appenders could be found for logger (io.netty.util.internal.PlatformDependent0).
RocketMQLog:WARN Please initialize the logger system properly.
SLF4J: Failed to load class "org.slf4j.impl.StaticLoggerBinder".
WARNING: An illegal reflective access operation has occurred
17:22:34.874 [NettyClientSelector_1] INFO RocketmqRemoting - closeChannel: close the connection
16:40:00,123 |-INFO in ch.qos.logback.classic.LoggerContext[default] - Found resource
"""


def texts(text: str) -> list[str]:
    return [line.text for line in read_output(text, "f").lines]


def test_warnings_of_the_jvm_and_its_loggers_are_known() -> None:
    output = read_output(NOISE + "#Topic\n", "f")
    assert [line.text for line in output.lines] == ["#Topic"]
    assert output.lines[0].source == "f:9"
    assert output.others == []


def test_a_stack_becomes_its_root_cause() -> None:
    [error] = facts(read_output(NOT_ONLINE, "f").others, "admin_error")
    assert error["code"] == 206
    assert error["exception"] == "org.apache.rocketmq.client.exception.MQBrokerException"
    assert error["message"].startswith("CODE: 206  DESC: the consumer group[crm] not online")
    assert texts(NOT_ONLINE) == []


def test_a_failure_without_an_answer_has_no_code() -> None:
    [error] = facts(read_output(NO_BROKER, "f").others, "admin_error")
    assert error["code"] is None
    assert error["message"] == "connect to 10.0.9.1:10911 failed"


def test_two_failures_are_two_facts() -> None:
    assert len(facts(read_output(NOT_ONLINE + NO_BROKER, "f").others, "admin_error")) == 2


def test_nothing_printed() -> None:
    for text in ("", "\n", "\r\n \t\n", "\ufeff", NOISE):
        assert kinds(read_output(text, "f").others) == ["no_output"]


def test_colours_and_carriage_returns_go() -> None:
    assert texts("\x1b[1;31m#Topic\x1b[0m  a\r\nb\r\n") == ["#Topic  a", "b"]


def test_broken_characters_are_refused() -> None:
    for broken in ("a\x00b", "a\ufffdb", "a\rb", "\x1b[", "a\udc80"):
        assert codes(read_output(f"x\n{broken}\ny\n", "f").others) == ["UNPARSABLE_LINE"], broken


def test_the_last_line_states_whether_it_is_whole() -> None:
    assert [line.whole for line in read_output("a\nb", "f").lines] == [True, False]
