"""Keeps notes. Configuration in config.json, notes in <data>/notes.jsonl."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

os.chdir(os.path.dirname(os.path.abspath(__file__)))
with open("config.json") as file:
    config = json.load(file)
path = os.path.join(config["data"], "notes.jsonl")
notes = []
with open(path, encoding="utf-8") as file:
    for line in file:
        notes.append(json.loads(line))


class Handler(BaseHTTPRequestHandler):
    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/healthz":
            self.answer(200, {"status": "ok"})
        elif self.path == "/notes":
            self.answer(200, notes)
        else:
            self.answer(404, {"error": "not found"})

    def do_POST(self):
        if self.path != "/notes":
            return self.answer(404, {"error": "not found"})
        value = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        note = {"id": len(notes) + 1, "text": value["text"]}
        notes.append(note)
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")
        self.answer(201, note)


ThreadingHTTPServer((config["host"], config["port"]), Handler).serve_forever()
