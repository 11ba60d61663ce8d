"""Every check of what a caller passes in. Nothing else raises for bad input.

``message``        the template (argument, rule, value, place, count, hint), and the phrases that name arguments
``arrays``         anything array-like to NumPy, without a change of value; numbers written as text
``rows``           rows that belong together: one pandas index, two models on the same rows
``columns``        weights, groups, clusters, runs and steps; names and values of options
``labels``         what happened, as truths or class numbers
``classes``        probabilities and logits, the sums of rows, and predictions that are certain
``states``         true states, means and covariances; components that matter or are angles
``mixtures``       components of mixtures, and clouds of particles
``densities``      outcomes of densities, and what distributions and callables give back
``recalibration``  options and columns of a recalibration
"""
