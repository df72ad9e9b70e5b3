#!/usr/bin/env python3
"""An agent that only talks. It knows nothing of Paddock: it asks the server that it is pointed at, and keeps what was said in its home."""
import json, os, pathlib, urllib.request

log = pathlib.Path.home() / "said.json"
messages = json.loads(log.read_text()) if log.exists() else []
messages.append({"role": "user", "content": os.environ["PADDOCK_PROMPT"]})
asked = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions",
    json.dumps({"model": os.environ["OPENAI_MODEL"], "messages": messages}).encode(),
    {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
)
messages.append(json.load(urllib.request.urlopen(asked))["choices"][0]["message"])
log.write_text(json.dumps(messages))
print(messages[-1]["content"])
