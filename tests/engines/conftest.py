"""One recipe of Spark for every module that asks it."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

SPARK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    # Small tables are otherwise computed row by row while a query is planned: slowly, and not by what users run.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
    # Nothing here runs long enough for a thorough compiler, or for a second thread of a garbage collector.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="session")
def sessions() -> Iterator[Callable[[], Any]]:
    """Return a function that starts Spark, or finds what was started; in the end it is stopped."""
    sql = pytest.importorskip("pyspark.sql")

    def session() -> Any:
        active = sql.SparkSession.getActiveSession()
        if active is not None:
            return active
        with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
            warnings.simplefilter("ignore")  # PySpark warns of pandas 3
            patch.setitem(os.environ, "PYSPARK_PYTHON", sys.executable)
            patch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)  # what workers run is run here too, and measured
            return sql.SparkSession.builder.master("local[2]").config(map=SPARK).getOrCreate()

    yield session
    active = sql.SparkSession.getActiveSession()
    if active is not None:
        active.stop()


@pytest.fixture
def spark(sessions: Callable[[], Any]) -> Any:
    return sessions()
