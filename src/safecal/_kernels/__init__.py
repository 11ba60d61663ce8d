"""Bare row formulas on checked float64 blocks, in their stable form.

``classes``, ``states``, ``ensemble``   one prediction and its outcome to a few numbers
``spectrum``   the cell of a row, its nodes, its place in the order of the predictions: what inference needs beside sums
``compiled``   the same by the C kernel, where it was built, and sums by key

Kernels check nothing and know no class of the library: they take and return arrays.
"""
