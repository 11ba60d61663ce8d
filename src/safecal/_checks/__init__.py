"""Every check of what a caller passes in. Nothing else raises for bad input.

``message``        the template (argument, rule, value, place, count, hint), its phrases, what a map cannot do
``arrays``         anything array-like to NumPy, without a change of value; rows that belong together
``columns``        weights, groups, clusters, runs and steps; values of options; what stands around every door
``classes``        probabilities and logits, their range and clips; what happened of two outcomes
``class_columns``  a column a class, or a label: sums of rows, class numbers, names; predictions that are certain
``states``         true states, means and covariances; components that matter or are angles; poses
``mixtures``       components of mixtures, and clouds of particles
``forecasts``      intervals, quantiles, draws, densities with their samplers, and confidences said in steps
"""
