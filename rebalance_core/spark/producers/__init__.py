"""Producers on Spark: `simulate` for a model, `replay` for recorded results."""
