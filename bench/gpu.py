"""Surprisal, entropy and varentropy of each row of logits on a GPU, beside torch.

    PYTHONPATH=src python bench/gpu.py

Needs CUDA, torch and Triton. Times are medians of CUDA events. `amax` is `torch.amax(logits, -1)`, which reads the same
bytes and does next to nothing; `compiled` and `eager` are the textbook formulas with and without `torch.compile`;
`checked` is the default of `row_scores`, which refuses bad rows. The error is the largest of |ours - float64| /
(surprisal + entropy) over the three columns of 512 rows.

The next table goes on to a verdict. `nodes` is the one pass over the logits that all sums of a Tally need, `tally` the
whole call, which waits for the device, and `evaluate` the whole call to a verdict. `T` is how far the temperature of
4096 rows is from that of the same rows in float64 on the processor. `hidden` makes logits from hidden states (8192 x
4096, V = 128 256, bf16) 1024 rows at a time; `product` is the matrix product alone, all logits at once.

Before that, 20 cases are held to the processor: counts and decisions must be equal, sums and temperatures near.

A second table sums 5e8 two-outcome predictions to a Summary. `kernel` is its one pass; `read` is `p.sum()` plus reading
the bytes of the labels (as floats: torch takes four times as long to sum bytes as such); `compiled` and `eager` are the
textbook formulas for the sums of surprisal, entropy, varentropy and the squared error. The status is 1 where a target
is missed.
"""

import sys
from typing import Any

import torch
import triton

from safecal import Evaluation
from safecal.engines.torch import binary_summary, evaluate, row_scores, summary, tally, triton_binary
from safecal.engines.torch.tensors import WIDTHS
from safecal.engines.torch.triton_nodes import launch_nodes

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
    ours = row_scores(y, some)
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
        "ours": lambda: row_scores(y, logits, check=False),
        "amax": lambda: torch.amax(logits, -1),
        "compiled": lambda: compiled(logits, y),
        "eager": lambda: formulas(logits, y),
        "checked": lambda: row_scores(y, logits),
        "summary": lambda: summary(y, logits),
    }
    return {name: milliseconds(call) for name, call in calls.items()}, error(logits, y)


VERDICT_NAMES = ("amax", "nodes", "tally", "evaluate")


def measure_verdict(rows: int, classes: int, dtype: torch.dtype) -> tuple[dict[str, float], float]:
    """Return the times by name, and the relative error of the temperature."""
    torch.cuda.empty_cache()
    generator = torch.Generator("cuda").manual_seed(0)
    logits = torch.empty((rows, classes), dtype=dtype, device="cuda").normal_(0.0, 3.0, generator=generator)
    y = torch.randint(classes, (rows,), device="cuda", generator=generator)
    out = torch.empty((WIDTHS[2], rows), device="cuda")
    calls = {
        "amax": lambda: torch.amax(logits, -1),
        "nodes": lambda: launch_nodes(logits[None], y, out, -1),
        "tally": lambda: tally(y, logits),
        "evaluate": lambda: evaluate(y, logits),
    }
    times = {name: milliseconds(call) for name, call in calls.items()}
    some = logits[: min(4096, 40_000_000 // classes)].float()
    drawn = torch.multinomial(torch.softmax(some, -1), 1, generator=generator)[:, 0]
    sharp = (1.5 * some).to(dtype)
    ours, wanted = evaluate(drawn, sharp), evaluate(drawn.cpu(), sharp.double().cpu())
    assert ours.verdict.decision == wanted.verdict.decision
    return times, abs(ours.temperature.value / wanted.temperature.value - 1.0)


CASES = (  # classes (1: two outcomes, by their log-odds; 0: by their probabilities), rows, dtype, times too sharp, bins
    (2, 30_000, torch.float32, 1.5, 10), (3, 50_000, torch.bfloat16, 1.0, 10), (5, 2000, torch.float16, 3.0, 7),
    (10, 40_000, torch.float32, 2.0, 40), (10, 40_000, torch.bfloat16, 0.7, 10), (32, 9000, torch.float32, 1.0, 10),
    (33, 9000, torch.float32, 1.2, 10), (64, 30_000, torch.float16, 1.5, 10), (128, 9000, torch.float32, 1.0, 5),
    (129, 9000, torch.float32, 1.5, 10), (512, 3000, torch.bfloat16, 1.1, 10), (513, 3000, torch.float32, 1.1, 10),
    (1000, 5000, torch.bfloat16, 1.5, 10), (40_000, 700, torch.bfloat16, 1.2, 10), (1, 300_000, torch.float32, 1.4, 10),
    (1, 300_000, torch.bfloat16, 1.0, 25), (1, 900, torch.float16, 2.0, 3), (0, 300_000, torch.float32, 1.4, 10),
    (0, 300_000, torch.float32, 1.0, 25), (0, 900, torch.float32, 0.5, 4),
)  # fmt: skip


def compare() -> bool:
    """Hold the tallies of the device to those of the processor; tell whether one differs."""
    generator = torch.Generator("cuda").manual_seed(1)
    worst_sum = worst_temperature = 0.0
    missed = False
    for classes, rows, dtype, times, bins in CASES:
        z = torch.randn((rows, max(classes, 1)), device="cuda", generator=generator) * 2.0
        if classes > 1:
            y = torch.multinomial(torch.softmax(z, -1), 1, generator=generator)[:, 0]
            given = {"logits": (times * z).to(dtype)}
        else:
            z = z[:, 0]
            y = (torch.rand(rows, device="cuda", generator=generator) < torch.sigmoid(z)).to(torch.uint8)
            given = {"logits": (times * z).to(dtype)} if classes else {"y_prob": torch.sigmoid(times * z).to(dtype)}
        y[::17] = 99 if classes < 2 else -100
        ours = tally(y, **given, ignore_index=int(y[0]), bins=bins)
        theirs = tally(y.cpu(), **{k: v.cpu() for k, v in given.items()}, ignore_index=int(y[0]), bins=bins)
        assert ours.bins is not None
        assert theirs.bins is not None
        missed |= ours.bins.n.tolist() != theirs.bins.n.tolist()
        missed |= ours.n_certain != theirs.n_certain
        a, b = ours.summary.to_dict(), theirs.summary.to_dict()
        for name in ("sum_entropy", "sum_varentropy", "sum_brier", "sum_confidence", "sum_excess2_weight2"):
            worst_sum = max(worst_sum, abs(a[name] / b[name] - 1.0))
        first, second = Evaluation.of(ours), Evaluation.of(theirs)
        missed |= first.verdict.decision != second.verdict.decision
        worst_temperature = max(worst_temperature, abs(first.temperature.value / second.temperature.value - 1.0))
    print(
        f"{len(CASES)} cases beside the processor: counts and decisions {'DIFFER' if missed else 'equal'}, sums to "
        f"{worst_sum:.0e}, T to {worst_temperature:.0e}"
    )
    return missed or worst_sum > 1e-6 or worst_temperature > 1e-4


def verdict_table() -> bool:
    """Print the table of verdicts; tell whether a target was missed."""
    print("| rows x classes | dtype |", " | ".join(VERDICT_NAMES), "| nodes/amax | beyond | T |")
    print("|---|---|" + "---:|" * (len(VERDICT_NAMES) + 3))
    missed = False
    for rows, classes, dtype, held in SHAPES:
        times, worst = measure_verdict(rows, classes, dtype)
        ratio, beyond = times["nodes"] / times["amax"], times["tally"] - times["nodes"]
        missed |= worst > 1e-4 or (held and ratio > 3.5)
        shown = " | ".join(f"{times[name]:.3f}" for name in VERDICT_NAMES)
        print(
            f"| {rows} x {classes} | {str(dtype)[6:]} | {shown} | {ratio:.2f} | {beyond:.2f} | {worst:.1e} |",
            flush=True,
        )
    torch.cuda.empty_cache()
    hidden = torch.randn(8192, 4096, dtype=torch.bfloat16, device="cuda")
    weight = torch.randn(128_256, 4096, dtype=torch.bfloat16, device="cuda") / 32.0
    y = torch.randint(len(weight), (8192,), device="cuda")
    product = milliseconds(lambda: hidden @ weight.T)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    tally(y, hidden=hidden, weight=weight)
    most = (torch.cuda.max_memory_allocated() - before) / 1e6
    whole = milliseconds(lambda: tally(y, hidden=hidden, weight=weight))
    print(
        f"hidden {whole:.2f} ms, product {product:.2f} ms: {whole / product:.2f} times; {most:.0f} MB beyond the inputs"
    )
    return missed


BINARY_ROWS = 500_000_000
BINARY_NAMES = ("kernel", "read", "compiled", "eager", "summary", "evaluate")


def binary_formulas(p: Any, y: Any, logits: bool) -> Any:
    """Return four sums as one writes them down."""
    z = p.float() if logits else torch.logit(p)
    p = torch.sigmoid(z) if logits else p
    s = torch.nn.functional.softplus(torch.where(y != 0, -z, z))
    h = p * torch.nn.functional.softplus(-z) + (1.0 - p) * torch.nn.functional.softplus(z)
    return torch.stack([x.sum() for x in (s, h, p * (1.0 - p) * z * z, (p - y) ** 2)])


def measure_binary(logits: bool, labels: torch.dtype) -> tuple[dict[str, float], float]:
    """Return the times by name, and the relative error of the sum of entropies."""
    torch._dynamo.reset()
    torch.cuda.empty_cache()
    generator = torch.Generator("cuda").manual_seed(0)
    z = torch.empty(BINARY_ROWS, device="cuda").normal_(0.0, 3.0, generator=generator)
    p = torch.sigmoid(z).clamp(1e-7, 1.0 - 1e-7)
    y = (torch.rand(BINARY_ROWS, device="cuda", generator=generator) < p).to(labels)
    values = z if logits else p
    parts = torch.empty((triton_binary.programs(len(y)), len(triton_binary.SUMS)), dtype=torch.float64, device="cuda")
    compiled = torch.compile(binary_formulas, dynamic=False)
    form = {"logits" if logits else "y_prob": values}
    calls = {
        "kernel": lambda: triton_binary.launch_sums(values, y, parts, logits),
        "read": lambda: (values.sum(), y.view(torch.float32).sum()),
        "compiled": lambda: compiled(values, y, logits),
        "eager": lambda: binary_formulas(values, y, logits),
        "summary": lambda: binary_summary(y, **form),
        "evaluate": lambda: evaluate(y, **form),
    }
    times = {name: milliseconds(call) for name, call in calls.items()}
    some, part = values[:1_000_000].double(), slice(1_000_000)
    q = torch.sigmoid(some) if logits else some
    wanted = float(-(q * q.log() + (1.0 - q) * (1.0 - q).log()).sum())
    part_sums = binary_summary(y[part], **{name: value[part] for name, value in form.items()})
    assert part_sums.sum_entropy is not None
    return times, abs(part_sums.sum_entropy / wanted - 1.0)


def binary_table() -> bool:
    """Print the table of two outcomes; tell whether a target was missed."""
    print("| 5e8 fp32 | labels |", " | ".join(BINARY_NAMES), "| kernel/read | compiled/kernel | eager/kernel | error |")
    print("|---|---|" + "---:|" * (len(BINARY_NAMES) + 4))
    missed = False
    for logits in (False, True):
        for labels in (torch.uint8, torch.int64):
            times, worst = measure_binary(logits, labels)
            kernel = times["kernel"]
            missed |= kernel > 2.0 * times["read"] or worst > ERROR
            shown = " | ".join(f"{times[name]:.3f}" for name in BINARY_NAMES)
            ratios = (kernel / times["read"], times["compiled"] / kernel, times["eager"] / kernel)
            ratio = " | ".join(f"{r:.2f}" for r in ratios)
            form = "logits" if logits else "probabilities"
            print(f"| {form} | {str(labels)[6:]} | {shown} | {ratio} | {worst:.1e} |", flush=True)
    return missed


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
    missed |= compare()
    missed |= verdict_table()
    missed |= binary_table()
    print("a target was missed" if missed else "all targets were met")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
