"""How sure, how much: tests, intervals and the temperature the data ask for.

``tempered``     the rows as an exponential family in the inverse temperature
``tails``        tail probabilities from cumulants
``saddlepoint``, ``enumeration``, ``surprises``   the law of the summed surprisal, three ways
``calibration``  the test
``evidence``, ``intervals``, ``curves``           bounds, at every level
``results``      what is returned
"""
