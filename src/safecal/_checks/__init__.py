"""Every check of what a caller passes in. Nothing else raises for bad input.

``message``    the template: argument, rule, value, place, count, hint
``arrays``     anything array-like to NumPy, without a change of value
``classes``    labels, probabilities and logits
``states``     true states, means and covariances
``densities``  outcomes of densities, and what distributions and callables give back
``columns``    weights, groups and options
"""
