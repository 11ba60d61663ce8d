"""Evaluations of data that lie elsewhere or do not fit in memory. Every engine returns the types of the core."""
