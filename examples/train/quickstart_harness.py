"""The harness of the trainers' quickstarts: one request to the model, and a reward that means nothing."""

import json
import urllib.request


def solve(rollout):
    """`rollout` has `base_url`, `key` and the trainer's `prompt`. None is no reward, and what is raised is a failure of the infrastructure."""
    prompt = rollout.prompt
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    body = json.dumps({"model": "policy", "messages": messages}).encode()
    headers = {"authorization": f"Bearer {rollout.key}", "content-type": "application/json"}
    asked = urllib.request.Request(f"{rollout.base_url}/chat/completions", body, headers)
    with urllib.request.urlopen(asked) as answered:
        answer = json.load(answered)["choices"][0]["message"]["content"]
    return float(len(answer) % 3)
