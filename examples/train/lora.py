"""LoRA for `loop.py`: what it adds to weights trains, they do not; saved as PEFT saves it, which vLLM and SGLang load."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch.nn.utils import parametrize

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class Added(torch.nn.Module):
    """A weight, and `b @ a` times `alpha / rank`, 2, on top; `b` begins as zeros, so nothing is added at first."""

    def __init__(self, weight: torch.Tensor, rank: int) -> None:
        super().__init__()
        out, into = weight.shape
        self.a = torch.nn.Parameter(torch.randn(rank, into) / into**0.5)
        self.b = torch.nn.Parameter(torch.zeros(out, rank))

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight + 2 * self.b @ self.a


def put_on(model: Any, rank: int) -> None:
    """From now on only what is added to the projections of each layer trains. Rank 0: nothing is, and all of it does."""
    if not rank:
        return
    model.requires_grad_(False)
    found = [module for name, module in model.named_modules() if name.rpartition(".")[2] in PROJECTIONS]
    if not found:
        raise SystemExit(f"The model has none of {', '.join(PROJECTIONS)}: name its linear layers in lora.py.")
    for module in found:
        parametrize.register_parametrization(module, "weight", Added(module.weight, rank))


def save_as_adapter(model: Any, place: Path, name: str) -> dict[str, str]:
    """The adapter as `Run.policy` takes it. Its name has a digest of its weights: what a trainer made again after it went back is another one."""
    tensors, modules, rank = {}, set(), 0
    for at, module in model.named_modules():
        if isinstance(module, Added):
            where = at.removesuffix(".parametrizations.weight.0")
            modules.add(where.rpartition(".")[2])
            rank = module.a.shape[0]
            for letter, tensor in (("A", module.a), ("B", module.b)):
                tensors[f"base_model.model.{where}.lora_{letter}.weight"] = tensor.detach().clone()
    weights = save(tensors)
    about = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": rank, "lora_alpha": 2 * rank, "bias": "none"}
    about |= {"lora_dropout": 0.0, "fan_in_fan_out": False, "target_modules": sorted(modules)}
    directory = place.resolve() / f"{name}-{hashlib.sha256(weights).hexdigest()[:12]}"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "adapter_model.safetensors").write_bytes(weights)
    (directory / "adapter_config.json").write_text(json.dumps(about))
    return {"name": directory.name, "path": str(directory)}
