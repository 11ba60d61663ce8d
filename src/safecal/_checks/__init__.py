"""Every check of what a caller passes in. Nothing else raises for bad input.

``message``  the template: argument, rule, value, place, count, hint
``arrays``   anything array-like to NumPy, without a change of value
``classes``  labels, probabilities and logits
``states``   true states, means and covariances
``columns``  weights, groups and options
"""
