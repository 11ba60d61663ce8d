"""From sums to a verdict: limits, places, the decision and why; evaluations, and one beside another."""
