"""How sure, how much: tests, intervals and the temperature the data ask for.

``results``                      what is returned: a value with its interval, a test
``law``                          how the summed surprise is distributed under each temperature; states
``points``, ``nodes``            that law, from cells of log-odds, and from sums at a few temperatures
``clustered``, ``dependence``    the same where rows come in clusters
``tails``, ``lattice``           tails of a sum: where surprises are many, and where they are few
``bounds``, ``calibration``      intervals, the temperature and the test, of all rows
``sum_bounds``, ``key_temperatures``   intervals of many bins, ranges or groups at once
``ranges``, ``local``            how predictions are cut into ranges, and what is known of each
``directions``                   along which direction of states errors are too large
``mistakes``, ``cox``, ``shifts``   other scales than nats
``faults``                       which simple fault explains the outcomes of two classes best
``forecasts``                    what forecasters look at: coverage, bias, spread
``equality``                     what two equal models do by chance
"""
