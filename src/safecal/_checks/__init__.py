"""Every check of what a caller passes in. Nothing else raises for bad input.

``message``        the template (argument, rule, value, place, count, hint), and the phrases that name arguments
``arrays``         anything array-like to NumPy, without a change of value; numbers written as text
``columns``        weights, groups, clusters, runs and steps; rows that belong together; values of options
``column_order``   names of columns that say another order than their places
``labels``         what happened, as truths or class numbers; names of classes
``classes``        probabilities and logits, the sums of rows, predictions that are certain, and clips
``states``         true states, means and covariances; components that matter or are angles; poses
``mixtures``       components of mixtures, and clouds of particles
``forecasts``      intervals, quantiles, draws, densities with their samplers, and confidences said in steps
``maps``           options and columns of a map
"""
