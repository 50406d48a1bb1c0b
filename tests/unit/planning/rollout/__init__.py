"""The rollout planner: what is asked, plans, figures, the choice, words."""
