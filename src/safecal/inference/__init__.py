"""How sure, how much: tests, intervals and the temperature the data ask for.

``law``            how the summed surprise is distributed under each temperature, and the bounds that follow
``points``, ``nodes``, ``states``, ``clustered``   that law, from each kind of spectrum
``lattice``, ``two_sizes``, ``enumeration``, ``tails``   its tails, where surprises are few and where they are many
``bounds``, ``tested``, ``temperature``   intervals, the test and the temperature, read off a tally
``keyed``          intervals of many bins or groups at once
``dependence``, ``cluster_bounds``, ``cluster_mistakes``, ``needed``   the same where rows come in clusters
``calibration``, ``saddlepoint``, ``surprises``, ``tempered``   the same test, from rows
``results``        what is returned
"""
