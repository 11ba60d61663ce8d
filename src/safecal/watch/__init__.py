"""`safecal watch`: batches that come in, a state that survives, and who is told."""
