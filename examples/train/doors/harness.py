"""An agent of two model calls that knows nothing of Paddock, nor of training: `harness.py < TASK.json`.

Standard input: `{"instruction": ..., "doors": {door: what stands behind it}}`. OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL say
where the model is. It opens the door that the model names at its answer's end, tells it what is there, and prints the model's last words.
"""

import http.client
import json
import os
import sys
from urllib.parse import urlsplit


def ask(messages):
    base = urlsplit(os.environ["OPENAI_BASE_URL"])
    connect = http.client.HTTPSConnection if base.scheme == "https" else http.client.HTTPConnection
    connection = connect(base.netloc, timeout=600)
    body = json.dumps({"model": os.environ["OPENAI_MODEL"], "messages": messages, "max_tokens": 8})
    headers = {"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "content-type": "application/json"}
    connection.request("POST", f"{base.path}/chat/completions", body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    if answer.status != 200:
        sys.exit(f"the model answered {answer.status}: {text}")
    return json.loads(text)["choices"][0]["message"]["content"] or ""


def main():
    task = json.load(sys.stdin)
    messages = [{"role": "user", "content": task["instruction"]}]
    said = ask(messages)
    door = said.split(" ")[-1]
    if door not in task["doors"]:
        print(said)
        return
    found = f"Behind the door stands {task['doors'][door]} . Say it ."
    messages += [{"role": "assistant", "content": said}, {"role": "user", "content": found}]
    print(ask(messages))


main()
