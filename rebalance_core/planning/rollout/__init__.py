"""The rollout planner, which finds the pace at which a deploy costs least.

`search` reads the request and lists the plans, `futures` plays a plan in a group, `choice` narrows
the plans down to the best one, and `words` reports it. `process.rollouts` runs them.

May import: `planning`, `engine` and all below; numpy, pyarrow. Begin with `search`.
"""
