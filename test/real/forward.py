"""An independent judge of exported rows: `forward.py MODEL ROWS...`, ROWS in the format `jsonl`.

Each row goes through the model once, float32, by transformers alone; what the row says of each trainable token is
compared with what the model says. `raw`: of the logits; `processed` and `temperature`: of the logits over the
temperature of the call that sampled the token. One line of JSON per file: {rows, tokens, max, mean, p99}.
"""
import json
import sys

import torch
from transformers import AutoModelForCausalLM


@torch.no_grad()
def differences(model, row):
    ids = row['token_ids']
    hidden = model.model(torch.tensor([ids])).last_hidden_state[0]
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
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, attn_implementation='sdpa').eval()
    for file in files:
        with open(file) as lines:
            rows = [json.loads(line) for line in lines]
        found = sorted(delta for row in rows for delta in differences(model, row))
        masked = sum(sum(row['loss_mask']) for row in rows)
        if masked != len(found):
            raise SystemExit(f'{file}: {masked} tokens are to be trained, {len(found)} stand in trained segments')
        p99 = found[min(len(found) - 1, int(0.99 * len(found)))]
        print(json.dumps({'rows': len(rows), 'tokens': len(found), 'max': found[-1], 'mean': sum(found) / len(found), 'p99': p99}))


main()
