"""Every check of what a caller passes in. Nothing else raises for bad input.

``message``        the template (argument, rule, value, place, count, hint), and the phrases that name arguments
``arrays``         anything array-like to NumPy, without a change of value; numbers written as text
``columns``        weights, groups, clusters, runs and steps; rows that belong together; values of options
``labels``         what happened, as truths or class numbers
``classes``        probabilities and logits, the sums of rows, and predictions that are certain
``states``         true states, means and covariances; components that matter or are angles; poses
``mixtures``       components of mixtures, and clouds of particles
``densities``      outcomes of densities, and what distributions and callables give back
``forecasts``      intervals, quantiles, draws and steps
``maps``           options and columns of a map
"""
