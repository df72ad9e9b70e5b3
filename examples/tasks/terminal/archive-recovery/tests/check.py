"""Compares what was recovered with digests that are written down here, not with the manifest in the agent's reach."""

import hashlib
import json
import os

FILES = {
    "friday/plan.old": "a6c35ef111bd7da6c8bebdc85d7621bdba6ea4315c8efac9d47061b3370128ad",
    "friday/plan.txt": "ba7e08b124778fd357cd7cbad955b842eb79de30e63e7f62c18cc90c80e6a5ea",
    "monday/a.txt": "d1f15adc3bda66d4cd3d6d9333b0dd5b9115b2906c0b8751cc434f925c85b1a5",
    "monday/b b.txt": "951515fc21c906b18a5bfb31cac696e788d65b75f09b1f32aefe2cb19fbbb4bf",
    "thursday/letter.txt": "7a71e0dd67f2de6abf9dfa5273a007483d139a0e9eb1ed73935f0eb5e2c6ff1a",
    "tuesday/deep/core.txt": "b7c9f06a3099b0bbd653a1f5fdc992355465d6bb13b2dfb9b6ae935a071c6554",
    "tuesday/list.txt": "07ea2ba9591c7e3a1ceb6338f5c1736e752c923002ecd9445dc254bc48af4838",
    "wednesday/one.txt": "5ecaadb8fcc73bc2051b52fcfef06f461df59f2c6bdd83cfc6179e9d90b3c5ed",
    "wednesday/two.txt": "22425f0ae6d9bddd8a47360c64eb70f2b18f015fa69df8bd70553a293de3ce02",
}
ROOT = "/workspace/recovered"
checks = {}
for name, digest in FILES.items():
    day = name.split("/")[0]
    try:
        path = os.path.join(ROOT, name)
        if os.path.islink(path):
            raise ValueError("a link")
        with open(path, "rb") as file:
            right = hashlib.sha256(file.read()).hexdigest() == digest
    except Exception as error:
        print(f"{name}: {error!r}")
        right = False
    checks[day] = checks.get(day, True) and right
found = {os.path.relpath(os.path.join(folder, name), ROOT) for folder, _, files in os.walk(ROOT) for name in files}
checks["nothing_else"] = bool(found) and found <= set(FILES)
reward = {"reward": int(all(checks.values()))} | {name: int(ok) for name, ok in checks.items()}
with open("/logs/verifier/reward.json", "w") as file:
    json.dump(reward, file)
