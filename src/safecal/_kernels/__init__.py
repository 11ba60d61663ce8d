"""Bare row formulas on checked float64 blocks, in their stable form.

``bernoulli``, ``categorical``, ``gaussian``   one prediction and its outcome to a few numbers
``sums``                                       columns to sums, overall or by key

Kernels check nothing and know no class of the library: they take and return arrays.
"""
