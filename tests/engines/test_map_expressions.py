"""What `to_sql` writes for Spark, run by Spark."""

from typing import Any

import numpy as np
import pytest

from safecal import maps

pytestmark = pytest.mark.extra

P = [0.0, 1e-6, 0.2, 0.5, 0.8, 1.0 - 1e-6, 1.0]


@pytest.mark.parametrize("kind", [maps.Temperature, maps.Affine, maps.Beta, maps.Isotonic])
def test_spark_computes_what_a_map_of_two_classes_does(kind: type[maps.Map], spark: Any) -> None:
    rng = np.random.default_rng(3)
    z = rng.normal(0.0, 2.0, 3000)
    model = kind().fit(rng.random(3000) < 1.0 / (1.0 + np.exp(0.5 - 0.7 * z)), logits=z)
    frame = spark.createDataFrame(list(enumerate(P)), ["i", "my `p"])
    rows = frame.selectExpr("i", f"{model.to_sql('my `p', dialect='spark')} AS found").orderBy("i").collect()
    assert [row["found"] for row in rows] == pytest.approx(model.apply(P), rel=1e-9, abs=1e-300)


def test_spark_computes_groups_and_classes(spark: Any) -> None:
    rng = np.random.default_rng(4)
    sites = np.array(["it's", "a \\ b", "c"])[rng.integers(0, 3, 3000)]
    p = rng.dirichlet([1.0, 1.0, 1.0], 3000)
    y = np.array([rng.choice(3, p=row) for row in p])
    model = maps.Affine().fit(y, p, by=sites)
    few = [(i, str(sites[i]), *map(float, p[i])) for i in range(40)]
    text = model.to_sql("a", "b", "c", by="site", dialect="spark").split(",\n")
    rows = spark.createDataFrame(few, ["i", "site", "a", "b", "c"]).selectExpr("i", *text).orderBy("i").collect()
    computed = np.array([[row[f"calibrated_{name}"] for name in "abc"] for row in rows])
    np.testing.assert_allclose(computed, model.apply(p[:40], by=sites[:40]), rtol=1e-9)
