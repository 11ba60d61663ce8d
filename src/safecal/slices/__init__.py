"""Slices: for whom the model is over-confident, found on one half of the rows and shown on the other."""
