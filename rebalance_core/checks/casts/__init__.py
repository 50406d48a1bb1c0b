"""Arrow arrays from one type to another, with the texts and values of Spark's casts."""
