"""Keeps notes. Configuration in config.json, notes in <data>/notes.jsonl."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

os.chdir(os.path.dirname(os.path.abspath(__file__)))
with open("config.json") as file:
    config = json.load(file)
os.makedirs(config["data"], exist_ok=True)
path = os.path.join(config["data"], "notes.jsonl")
notes = []
lock = threading.Lock()


def load():
    """Reads the intact notes and cuts off what a crash left behind them."""
    if not os.path.exists(path):
        return
    with open(path, "rb") as file:
        data = file.read()
    for line in data.splitlines():
        try:
            note = json.loads(line)
            notes.append({"id": note["id"], "text": note["text"]})
        except (ValueError, KeyError, TypeError):
            continue
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(note) + "\n" for note in notes)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


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
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path != "/notes":
            return self.answer(404, {"error": "not found"})
        try:
            text = json.loads(body)["text"]
        except (ValueError, KeyError, TypeError):
            text = None
        if not isinstance(text, str):
            return self.answer(400, {"error": "send {\"text\": \"...\"}"})
        with lock:
            note = {"id": max((n["id"] for n in notes), default=0) + 1, "text": text}
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(note) + "\n")
                file.flush()
                os.fsync(file.fileno())
            notes.append(note)
        self.answer(201, note)


load()
ThreadingHTTPServer((config["host"], int(config["port"])), Handler).serve_forever()
