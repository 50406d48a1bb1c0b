"""Single passes on Spark, plans and producers, beside what they replace."""
