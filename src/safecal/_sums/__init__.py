"""All sums of an evaluation, and how they are made and merged."""
