"""How sure, how much: tests, intervals and the temperature the data ask for.

``results``                      what is returned: a value with its interval, a test
``law``                          how the summed surprise is distributed under each temperature; tails, spread of a mean
``points``, ``nodes``            that law, from cells of log-odds, and from sums at a few temperatures
``clustered``                    the same where rows come in clusters, and how their sums spread
``lattice``, ``tails``           tails of a sum of few surprises, and of rows; quantiles
``bounds``                       intervals of all rows: ECD, temperature, mistakes
``calibration``                  the test of all rows, and the temperature
``sum_bounds``, ``key_temperatures``   intervals of many bins, ranges or groups at once
``ranges``, ``local``            how predictions are cut into ranges, what is known of each, and whether all are alike
``directions``                   along which axis or direction of states errors are off
``cox``, ``shifts``              shift and slope of two classes and which fault explains them; a shift for each class
``forecasts``                    what forecasters look at: coverage, bias, spread
"""
