"""Evaluations of data that lie elsewhere or do not fit in memory. Every engine returns the types of the core.

``batches``     rows that come in batches
``frames``      the front door of dataframes
``partitions``  frames as Arrow tables, a batch at a time; ``workers`` sums the partitions of Dask and Spark
``expressed``   sums as expressions, which Spark and remote databases compute by themselves
``torch``       predictions in tensors, on a processor or a GPU
"""
