"""A language model run over a million tokens, beside the same forward passes with plain cross-entropy.

    PYTHONPATH=src python bench/language_model.py

Needs CUDA, torch, Transformers and Triton. The model has about half a billion parameters and random weights, in
bfloat16. Both times include loading the model and making tokens.
"""

import random
import tempfile
import time
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from safecal.compat.huggingface import run_language_model

VOCABULARY, LENGTH, TEXTS, BATCH = 32_000, 2048, 488, 8


def make_model(folder: str) -> None:
    """Write a model with random weights, and a tokenizer whose words are numbers."""
    words = {f"w{k}": k for k in range(VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="w0", model_max_length=LENGTH)
    made.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16,
        max_position_embeddings=LENGTH,
    )  # fmt: skip
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


def plain(folder: str, texts: list[str]) -> None:
    """Run the model, and take the cross-entropy of all logits of a batch."""
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).cuda().eval()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    ids = [tokenizer(text)["input_ids"] for text in texts]
    with torch.inference_mode():
        for begin in range(0, len(ids), BATCH):
            x = torch.tensor(ids[begin : begin + BATCH]).cuda()
            z = model(input_ids=x, use_cache=False).logits[:, :-1]
            torch.nn.functional.cross_entropy(z.flatten(0, 1), x[:, 1:].flatten(), reduction="sum").item()


def measured(call: Any) -> tuple[float, float]:
    """Return seconds, and the most memory in GB."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - began, torch.cuda.max_memory_allocated() / 1e9


def main() -> None:
    """Print one line."""
    draw = random.Random(0)
    texts = [" ".join(f"w{draw.randrange(VOCABULARY)}" for _ in range(LENGTH)) for _ in range(TEXTS)]
    with tempfile.TemporaryDirectory() as folder:
        make_model(folder)
        run_language_model(folder, texts[:BATCH], text="given", batch_size=BATCH)  # compiles the kernel
        ours, memory = measured(lambda: run_language_model(folder, texts, text="given", batch_size=BATCH))
        other, held = measured(lambda: plain(folder, texts))
    print(f"{TEXTS * (LENGTH - 1)} tokens: {ours:.2f} s and {memory:.2f} GB; plain {other:.2f} s and {held:.2f} GB")
    print(f"{ours / other:.3f} times the time")


if __name__ == "__main__":
    main()
