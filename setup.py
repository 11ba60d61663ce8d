"""The compiled kernel. It is optional: without a compiler, NumPy does the same work."""

import sys

from setuptools import Extension, setup

# Same results on every processor: nothing is contracted, nothing reordered. And no debug symbols, for which Python's
# own flags may ask: they would be two thirds of the library.
FLAGS = (
    ["/std:c11", "/fp:precise"]
    if sys.platform == "win32"
    else ["-O3", "-g0", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Werror=implicit"]
)
KERNELS = "src/safecal/_kernels"
SOURCES = (
    "_compiled", "_binary", "_gaps", "_logits", "_odds", "_points", "_runs", "_shares", "_spectrum", "_states", "_sums",
    "_tempered",
)  # fmt: skip

setup(
    ext_modules=[
        Extension(
            "safecal._kernels._compiled",
            [f"{KERNELS}/{name}.c" for name in SOURCES],
            depends=[f"{KERNELS}/{name}.h" for name in ("_class_rows", "_compiled", "_elementary", "_nodes", "_tiles")],
            extra_compile_args=FLAGS,
            optional=True,
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
