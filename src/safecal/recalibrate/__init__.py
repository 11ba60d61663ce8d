"""What fixes it: a temperature for probabilities, an inflation for covariances.

``temperature``    `Temperature` and `SafeTemperature`: two ways to choose one
``recalibration``  what both share: fitting it, applying it, reading and writing it
``fitting``        the inverse temperature of some rows, or why they have none
``tempering``      the tempered predictions themselves
"""
