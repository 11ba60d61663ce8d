"""How sure, how much: tests, intervals and the temperature the data ask for.

``results``                      what is returned: a value with its interval, a test
``law``                          how the summed surprise is distributed under each temperature; states
``points``, ``nodes``            that law, from cells of log-odds, and from sums at a few temperatures
``clustered``                    the same where rows come in clusters, and how their sums spread
``tails``, ``lattice``           tails of a sum: where surprises are many, and where they are few
``bounds``, ``calibration``      intervals, the temperature and the test, of all rows
``sum_bounds``, ``key_temperatures``   intervals of many bins, ranges or groups at once
``ranges``, ``local``            how predictions are cut into ranges, and what is known of each
``evenness``                     whether calibration is the same all along the predictions, and in all groups
``directions``                   along which axis or direction of states errors are off
``mistakes``, ``cox``, ``shifts``   other scales than nats
``faults``                       how much the likelihood gains by each simple fault
``forecasts``                    what forecasters look at: coverage, bias, spread
"""
