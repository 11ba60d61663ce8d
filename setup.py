"""The compiled kernel. It is optional: without a compiler, NumPy does the same work."""

import sys

from setuptools import Extension, setup

# Same results on every processor: nothing is contracted, nothing reordered.
FLAGS = (
    []
    if sys.platform == "win32"
    else ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Werror=implicit"]
)

setup(
    ext_modules=[
        Extension(
            "safecal._kernels._compiled",
            ["src/safecal/_kernels/_compiled.c"],
            extra_compile_args=FLAGS,
            optional=True,
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
