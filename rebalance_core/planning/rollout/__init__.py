"""The rollout planner: it finds the pace of a deploy that costs least.

`search` reads the request and lists the plans, `futures` plays a plan in a group, `choice` narrows
the plans down to the best, `words` reports it. `process.rollouts` runs them.

May import: `planning`, `engine` and all below; numpy, pyarrow. Begin with `search`.
"""
