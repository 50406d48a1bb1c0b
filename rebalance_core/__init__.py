"""Who owns which queue, when, and where it starts to read."""
