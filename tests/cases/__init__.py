"""Evidence that operators really held: rebuilt from public threads, and damaged recordings."""
