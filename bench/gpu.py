"""Surprisal, entropy and varentropy of each row of logits on a GPU, beside torch.

    PYTHONPATH=src python bench/gpu.py

Needs CUDA, torch and Triton. Times are medians of CUDA events. `amax` is `torch.amax(logits, -1)`, which reads the same
bytes and does next to nothing; `compiled` and `eager` are the textbook formulas with and without `torch.compile`;
`checked` is the default of `row_scores`, which refuses bad rows. The error is the largest of |ours - float64| /
(surprisal + entropy) over the three columns of 512 rows. The status is 1 where a target is missed.
"""

import sys
from typing import Any

import torch
import triton

from safecal.engines.torch import row_scores, summary

SHAPES = (  # rows, classes, dtype, whether the targets hold
    (8192, 128_256, torch.bfloat16, True),
    (16_384, 32_000, torch.bfloat16, True),
    (1_000_000, 1000, torch.float32, True),
    (8192, 128_257, torch.bfloat16, False),
    (16_384, 50_257, torch.bfloat16, False),
    (1_000_000, 999, torch.float32, False),
    (250_000, 4000, torch.bfloat16, False),
    (20_000_000, 10, torch.float32, False),
    (5_000_000, 64, torch.float32, False),
    (50_000_000, 2, torch.float32, False),
)
NAMES = ("ours", "amax", "compiled", "eager", "checked", "summary")
WANTED = (1.0, 3.0, 14.0)  # times faster than amax, compiled and eager
ERROR = 1e-5


def formulas(logits: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return surprisal, entropy and varentropy as one writes them down."""
    log_p = torch.log_softmax(logits.float(), -1)
    p = log_p.exp()
    entropy = -(p * log_p).sum(-1)
    varentropy = (p * (log_p + entropy[:, None]) ** 2).sum(-1)
    return -log_p.gather(-1, y[:, None])[:, 0], entropy, varentropy


def error(logits: Any, y: Any) -> float:
    """Return the largest error of 512 rows against float64, relative to surprisal plus entropy."""
    some, y = logits[:512], y[:512]
    log_p = torch.log_softmax(some.double(), -1)
    p = log_p.exp()
    h = -(p * log_p).sum(-1)
    v = (p * (log_p + h[:, None]) ** 2).sum(-1)
    s = -log_p.gather(-1, y[:, None])[:, 0]
    ours = row_scores(some, y)
    return max(float(((a - b).abs() / (s + h)).max()) for a, b in zip(ours, (s, h, v), strict=False))


def milliseconds(call: Any) -> float:
    """Return the median time of a call."""
    return float(triton.testing.do_bench(call, warmup=30, rep=120, return_mode="median"))


def measure(rows: int, classes: int, dtype: torch.dtype) -> tuple[dict[str, float], float]:
    """Return the times by name, and the error."""
    torch._dynamo.reset()
    torch.cuda.empty_cache()
    generator = torch.Generator("cuda").manual_seed(0)
    logits = torch.empty((rows, classes), dtype=dtype, device="cuda").normal_(0.0, 3.0, generator=generator)
    y = torch.randint(classes, (rows,), device="cuda", generator=generator)
    compiled = torch.compile(formulas, dynamic=False)
    calls = {
        "ours": lambda: row_scores(logits, y, check=False),
        "amax": lambda: torch.amax(logits, -1),
        "compiled": lambda: compiled(logits, y),
        "eager": lambda: formulas(logits, y),
        "checked": lambda: row_scores(logits, y),
        "summary": lambda: summary(logits, y),
    }
    return {name: milliseconds(call) for name, call in calls.items()}, error(logits, y)


def main() -> int:
    """Print one line for each shape; the status is 1 where a target is missed."""
    print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, triton {triton.__version__}; milliseconds")
    print("| rows x classes | dtype |", " | ".join(NAMES), "| amax/ours | compiled/ours | eager/ours | TB/s | error |")
    print("|---|---|" + "---:|" * (len(NAMES) + 5))
    missed = False
    for rows, classes, dtype, held in SHAPES:
        times, worst = measure(rows, classes, dtype)
        ratios = [times[name] / times["ours"] for name in ("amax", "compiled", "eager")]
        missed |= worst > ERROR
        missed |= held and any(r < w for r, w in zip(ratios, WANTED, strict=True))
        shown = " | ".join(f"{times[name]:.3f}" for name in NAMES)
        ratio = " | ".join(f"{r:.2f}" for r in ratios)
        speed = rows * classes * dtype.itemsize / times["ours"] / 1e9
        print(f"| {rows} x {classes} | {str(dtype)[6:]} | {shown} | {ratio} | {speed:.2f} | {worst:.1e} |", flush=True)
    print("a target was missed" if missed else "all targets were met")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
