"""Properties that every family, summary, bin rule and metric obeys."""
