"""Two sets of weights of one shape, and which of them sampled a token.

`two_weights.py make SOURCE ONE TWO`: random Llamas with output embeddings of their own behind the tokenizer of SOURCE.
`two_weights.py judge ONE TWO FILE`: FILE holds lines {prompt, sampled, logprobs}. For each, one line of JSON says where the
weights changed, found from logprobs alone, and how far the recorded ones are then from recomputed ones, in nats:
`anew`  the second weights read everything before them again: {at, max}
`kept`  they went on with the keys and values of the first: {at, max}
"""
import json
import shutil
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM, LlamaForCausalLM


def make(source, *places):
    config = AutoConfig.from_pretrained(source, tie_word_embeddings=False, dtype='float32')
    for seed, place in enumerate(places):
        shutil.copytree(source, place, ignore=shutil.ignore_patterns('*.safetensors'), dirs_exist_ok=True)
        torch.manual_seed(seed)
        LlamaForCausalLM(config).to(torch.float32).save_pretrained(place)


def said(logits, ids):
    return torch.log_softmax(logits.float(), dim=-1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)


@torch.no_grad()
def judged(one, two, prompt, sampled, logprobs):
    ids, told, start = torch.tensor([prompt + sampled]), torch.tensor(logprobs), len(prompt)
    answer = ids[0, start:]
    by_one, by_two = ((said(model(ids).logits[0, start - 1 : -1], answer) - told).abs() for model in (one, two))
    count = len(sampled)

    def worst(at, second):
        parts = [*by_one[:at].tolist(), *second.tolist()]
        return {'at': at, 'max': max(parts)}

    def kept(at):
        # Of the last token that the first weights sampled nothing is computed yet.
        past = one(ids[:, : start + at - 1], use_cache=True).past_key_values
        logits = two(ids[:, start + at - 1 :], past_key_values=past, use_cache=True).logits[0, :-1]
        return worst(at, (said(logits, answer[at:]) - told[at:]).abs())

    anew = min((worst(at, by_two[at:]) for at in range(count + 1)), key=lambda found: found['max'])
    # Where the first weights stop agreeing, or just before: a token may be as likely under both.
    ends = next((at for at in range(count) if by_one[at] > 1e-2), count)
    near = [at for at in range(ends - 2, ends + 1) if 0 < at < count]
    return {'anew': anew, 'kept': min(map(kept, near), key=lambda found: found['max']) if near else anew}


def judge(first, second, file):
    torch.set_num_threads(2)
    load = {'dtype': torch.float32, 'attn_implementation': 'eager'}
    one, two = (AutoModelForCausalLM.from_pretrained(place, **load).eval() for place in (first, second))
    with open(file) as lines:
        for line in lines:
            print(json.dumps(judged(one, two, **json.loads(line))))


{'make': make, 'judge': judge}[sys.argv[1]](*sys.argv[2:])
