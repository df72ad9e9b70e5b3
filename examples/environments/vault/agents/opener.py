#!/usr/bin/env python3
"""An agent that calls tools, which it finds at an MCP server. Another program than guide.py, with a loop and a memory of its own."""
import json, os, urllib.request


class Agent:
    def __init__(self, path):
        self.path = path
        self.past = json.load(open(path)) if os.path.exists(path) else []

    def post(self, url, body):
        headers = {"content-type": "application/json", "accept": "application/json", "authorization": "Bearer x"}
        return json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)))

    def mcp(self, method, params):
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.post(os.environ["PADDOCK_MCP_URL"], asked)["result"]

    def turn(self, said):
        tools = [
            {"type": "function", "function": {"name": one["name"], "description": one["description"], "parameters": one["inputSchema"]}}
            for one in self.mcp("tools/list", {})["tools"]
        ]
        self.past.append({"role": "user", "content": said})
        while True:
            body = {"model": os.environ["OPENAI_MODEL"], "messages": self.past, "tools": tools}
            answer = self.post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)["choices"][0]["message"]
            self.past.append(answer)
            if not answer.get("tool_calls"):
                break
            for call in answer["tool_calls"]:
                given = {"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"])}
                text = self.mcp("tools/call", given)["content"][0]["text"]
                self.past.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        json.dump(self.past, open(self.path, "w"))
        return self.past[-1]["content"]


print(Agent(os.environ["HOME"] + "/past.json").turn(os.environ["PADDOCK_PROMPT"]))
