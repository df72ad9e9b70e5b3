"""An independent judge of exported rows: `forward.py MODEL ROWS...`, ROWS in the format `jsonl`.

Each row goes through the model once, float32, by transformers alone; what the row says of each trainable token is
compared with what the model says. `raw`: of the logits; `processed` and `temperature`: of the logits over the
temperature of the call that sampled the token. Pictures of a row (`media`, each at its path) are made into pixel values by
the model's own processor in transformers. One line of JSON per file: {rows, tokens, max, mean, p99}.
"""
import json
import sys

import torch
from PIL import Image
from transformers import AutoConfig, AutoImageProcessor, AutoModelForCausalLM, AutoModelForImageTextToText


@torch.no_grad()
def differences(model, processor, row):
    ids = row['token_ids']
    seen = {}
    if row.get('media'):
        pictures = [Image.open(medium['path']).convert('RGB') for medium in row['media']]
        places = [[int(token == model.config.image_token_id) for token in ids]]
        seen = {**processor(pictures, return_tensors='pt'), 'mm_token_type_ids': torch.tensor(places)}
    hidden = model.model(torch.tensor([ids]), **seen).last_hidden_state[0]
    temperature = {call['call_id']: call['temperature'] for call in row['sampling']}
    for part in row['segments']:
        if not part['trained']:
            continue
        heat = 1.0
        if row['logprob_kind'] != 'raw':
            said = temperature[part['call_id']]
            heat = 1.0 if said is None else said
        for at in range(part['start'], part['end']):
            if row['loss_mask'][at] != 1:
                continue
            logits = model.lm_head(hidden[at - 1]).float()
            expected = torch.log_softmax(logits / heat, dim=-1)[ids[at]].item()
            yield abs(expected - row['logprobs'][at])


def main():
    torch.set_num_threads(2)
    directory, *files = sys.argv[1:]
    sees = hasattr(AutoConfig.from_pretrained(directory), 'vision_config')
    processor = AutoImageProcessor.from_pretrained(directory) if sees else None
    loader = AutoModelForImageTextToText if sees else AutoModelForCausalLM
    model = loader.from_pretrained(directory, dtype=torch.float32, attn_implementation='sdpa').eval()
    for file in files:
        with open(file) as lines:
            rows = [json.loads(line) for line in lines]
        found = sorted(delta for row in rows for delta in differences(model, processor, row))
        masked = sum(sum(row['loss_mask']) for row in rows)
        if masked != len(found):
            raise SystemExit(f'{file}: {masked} tokens are to be trained, {len(found)} stand in trained segments')
        p99 = found[min(len(found) - 1, int(0.99 * len(found)))]
        print(json.dumps({'rows': len(rows), 'tokens': len(found), 'max': found[-1], 'mean': sum(found) / len(found), 'p99': p99}))


main()
