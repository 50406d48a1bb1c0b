"""Producers in this process: `simulate` for a model, `replay` for recorded results."""
