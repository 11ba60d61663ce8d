"""A Spark dataframe: `evaluate_frame`, beside a `groupBy` of Spark's own with three sums and one logarithm.

    python bench/spark.py [--rows 5000000]

Spark runs on two threads of this machine. Times leave out starting it and three runs, in which the Java machine
compiles what it does; memory leaves out that of the Java machine.
"""

from files import main

PEER, OURS = "Spark, three sums by bin", "evaluate_frame, Spark"
_START = """
import safecal
from pyspark.sql import SparkSession, functions as F
from safecal.engines.frames import evaluate_frame
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.read.parquet({path!r})
frame.count()
"""
_WARM = """
for _ in range(3):
    work()
"""
_WORKS = {
    PEER: f"""{_START}
p, y = F.col("p"), F.col("y")
surprisal = -F.log(F.when(y == 1, p).otherwise(1 - p))
bins = frame.groupBy(F.least(F.floor(10 * p), F.lit(9)))
def work():
    assert len(bins.agg(F.sum(p), F.sum(y), F.sum(surprisal)).collect()) == 10
{_WARM}""",
    OURS: f"""{_START}
def work():
    assert evaluate_frame(frame, y_true="y", y_prob="p").n == {{rows}}
{_WARM}""",
}

if __name__ == "__main__":
    main(_WORKS, 5_000_000, 300.0)
