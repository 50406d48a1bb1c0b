"""The rollout planner: of many paces of one deploy, the one that hurts least.

`search` reads what is asked and lists the plans, `futures` plays a plan in one group,
`choice` gives plans up until one is left, `words` reports it. `process.rollouts` runs them.

May import: `planning`, `engine` and all below; numpy, pyarrow. Begin with `search`.
"""
