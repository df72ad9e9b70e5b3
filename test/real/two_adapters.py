"""Two random LoRA adapters of a Llama, and the models that they make of it.

`two_adapters.py SOURCE PLACE`: PLACE/a and PLACE/b are adapters as PEFT writes them, PLACE/merged-a and PLACE/merged-b the
models with their weights put into SOURCE's: transformers alone, nothing of a server.
"""
import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

RANK, ALPHA = 4, 8


def sizes(config):
    head = config.hidden_size // config.num_attention_heads
    return {
        'q_proj': config.num_attention_heads * head,
        'k_proj': config.num_key_value_heads * head,
        'v_proj': config.num_key_value_heads * head,
    }


def adapter(config, seed):
    random = torch.Generator().manual_seed(seed)
    for layer in range(config.num_hidden_layers):
        for name, out in sizes(config).items():
            a = torch.randn(RANK, config.hidden_size, generator=random) / config.hidden_size**0.5
            yield f'model.layers.{layer}.self_attn.{name}', a, torch.randn(out, RANK, generator=random)


@torch.no_grad()
def main(source, place):
    config = AutoConfig.from_pretrained(source)
    for seed, name in enumerate('ab'):
        made = list(adapter(config, seed))
        directory = Path(place) / name
        directory.mkdir(parents=True)
        tensors = {}
        for module, a, b in made:
            tensors[f'base_model.model.{module}.lora_A.weight'] = a
            tensors[f'base_model.model.{module}.lora_B.weight'] = b
        save_file(tensors, directory / 'adapter_model.safetensors')
        about = {'peft_type': 'LORA', 'task_type': 'CAUSAL_LM', 'r': RANK, 'lora_alpha': ALPHA, 'bias': 'none'}
        about |= {'lora_dropout': 0.0, 'fan_in_fan_out': False, 'target_modules': sorted(sizes(config))}
        (directory / 'adapter_config.json').write_text(json.dumps(about))
        merged = Path(place) / f'merged-{name}'
        shutil.copytree(source, merged, ignore=shutil.ignore_patterns('*.safetensors'))
        model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
        for module, a, b in made:
            model.get_submodule(module).weight += (ALPHA / RANK) * (b @ a)
        model.save_pretrained(merged)


main(*sys.argv[1:])
