"""Policy files: what they say, each mistake with its line, and the YAML of a policy."""

import pytest

from rebalance_core.contracts.bundled_files import bundled
from rebalance_core.model.errors import UsageError
from rebalance_core.planning.autoscale.manifest import manifest
from rebalance_core.planning.autoscale.policy import (
    KEDA,
    UP_LIMITS,
    Direction,
    Keda,
    Policy,
    StepLimit,
    parse_policy,
    read_policies,
)
from rebalance_core.planning.autoscale.variations import with_variations
from rebalance_core.planning.scenario.pods import Stop

WHOLE = """
name = "mine"
kind = "keda"
min = 0
max = 12
sizes = [12, 4]
start = {median = "20s", spread = "5s"}
pre_stop = "20s"
grace = "15s"
graceful = false

[lag]
target = 500

[rate]
target = 140
window = "2m"

[scale_down]
stabilization = "2m"
select = "Min"
policies = [{type = "Pods", value = 2, period = "1m"}]

[controller]
sync = "10s"
tolerance = 0.2

[keda]
polling = "20s"
fallback = 6

[metrics]
scrape = "15s"
delay = "5s"
"""


def test_every_key_is_read() -> None:
    policy = parse_policy(WHOLE, "mine.toml")
    assert (policy.least, policy.most, policy.sizes) == (0, 12, (4, 12))
    assert policy.keda == Keda(polling_s=20, fallback=6)
    assert policy.down == Direction(120, "Min", (StepLimit("Pods", 2, 60),))
    assert policy.up == Direction(None, "Max", UP_LIMITS)  # a behavior, so the defaults hold
    assert (policy.sync_s, policy.tolerance) == (10, 0.2)
    assert (policy.metrics.scrape_s, policy.metrics.rate_window_s) == (15, 120)
    assert policy.start.median_ms == 20_000
    assert policy.stop == Stop(20_000, 15_000, graceful=False)
    assert policy.stop.killed
    assert policy.stop.end_ms == 15_000


def test_bundled_policies_are_read() -> None:
    policies = read_policies(list(bundled("policies")))
    assert [policy.name for policy in policies] == list(bundled("policies"))
    assert len({policy.name for policy in with_variations(policies)}) == len(policies) * 19
    assert with_variations([Policy("f", "fixed", replicas=3)]) == (
        Policy("f", "fixed", replicas=3),
    )


HEAD = 'name = "x"\n[lag]\ntarget = 1\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('name = "x"\nmin = 9\nmax = 3\n[lag]\ntarget = 1', "f.toml:2: min 9 is above max 3"),
        ('name = "x"\nmin = 0\n[lag]\ntarget = 1', 'f.toml:2: min = 0 needs kind = "keda"'),
        ('name = "recorded"\n[lag]\ntarget = 1', "f.toml:1: name 'recorded' is that of"),
        ('name = "x"\n', "[lag] or [rate] is missing"),
        ("min = 1\n[lag]\ntarget = 1", "name is missing"),
        ('name = "x"\n[lag]\ntargt = 1', "f.toml:3: unknown"),
        ('name = "x"\n[lag]\ntarget = 0', "expected a number above 0"),
        ('name = "x"\nkind = "fixed"', "needs replicas"),
        ('name = "x"\nkind = "fixed"\nreplicas = 3\nmax = 4', "excludes max"),
        ('name = "x"\nsizes = [4, 20]\nmax = 8\n[lag]\ntarget = 1', "size 20 is not within"),
        (HEAD + '[scale_up]\nstabilization = "2h"', "f.toml:5: stabilization"),
        (HEAD + '[scale_up]\npolicies = [{type = "Pods"}]', "value is missing"),
        (HEAD + '[keda]\ncooldown = "1m"', '[keda] needs kind = "keda"'),
        (HEAD + "[controller]\ntolerance = 1", "from 0 to below 1"),
    ],
)
def test_a_mistake_names_its_line(text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_policy(text, "f.toml")
    assert said in str(error.value)


def test_two_policies_need_two_names() -> None:
    with pytest.raises(UsageError, match="'hpa' is the name of two policies"):
        read_policies(["hpa", "hpa"])
    with pytest.raises(UsageError, match="kda"):
        read_policies(["kda"])


ROW = {"consumer_group": "Orders_Pay", "cluster": "c"}


def test_a_scaled_object_states_the_policy() -> None:
    text = manifest(
        parse_policy(WHOLE, "f"), ROW["consumer_group"], ["Pay", "Orders.1"], ["assumed"]
    )
    for line in (
        "# assumed",
        "kind: ScaledObject",
        "  name: orders-pay",
        "  pollingInterval: 20",
        "  minReplicaCount: 0",
        "    failureThreshold: 3",
        "          stabilizationWindowSeconds: 120",
        "          - {type: Pods, value: 2, periodSeconds: 60}",
        '      threshold: "500"',
        r'      query: "sum(rate(rocketmq_messages_in_total{topic=~\"Orders\\\\.1|Pay\"}[120s]))"',
    ):
        assert line in text.splitlines(), line
    assert "4, 12 need a controller" in text


def test_an_hpa_states_the_policy() -> None:
    policy = Policy("p", least=2, most=9, lag=parse_policy(WHOLE, "f").lag)
    text = manifest(policy, ROW["consumer_group"], ["Pay"], [])
    assert "kind: HorizontalPodAutoscaler" in text
    assert "  minReplicas: 2" in text
    assert '        averageValue: "500"' in text
    assert "behavior" not in text
    assert "replicas: 7" in manifest(
        Policy("f", "fixed", replicas=7), ROW["consumer_group"], [], []
    )
    assert KEDA == "keda"
