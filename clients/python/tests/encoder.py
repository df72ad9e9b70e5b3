"""Writes `PDKROWS1` as the format is described, sharing nothing with the reader, and makes rounds to write."""

from __future__ import annotations

import copy
import json
import math
import random
import struct
from typing import Any

Header = dict[str, Any]


def encode(header: Header) -> bytes:
    """The binary body of a header whose rows hold their arrays as lists."""
    header = copy.deepcopy(header)
    area = bytearray()
    for row in header["rows"]:
        known = (("token_ids", "i4", "i"), ("loss_mask", "u1", "B"), ("logprobs", "f4", "f"))
        scored = (("entropies", "f4", "f"), ("observation_mask", "u1", "B"), ("ref_logprobs", "f4", "f"), ("teacher_logprobs", "f4", "f"))
        for name, dtype, code in (*known, *(one for one in scored if row["arrays"].get(one[0]) is not None)):
            values = [math.nan if value is None else value for value in row["arrays"][name]]
            area += bytes(-len(area) % 8)
            row["arrays"][name] = {"offset": len(area), "length": len(values), "dtype": dtype}
            area += struct.pack(f"<{len(values)}{code}", *values)
    text = json.dumps(header, ensure_ascii=False).encode()
    head = b"PDKROWS1" + struct.pack("<I", len(text)) + text
    return head + bytes(-len(head) % 8) + bytes(area)


def member(rollout: str, reward: float | None, slot: int = 0, **more: Any) -> Header:
    out = None if reward is not None else "no_number"
    known = {"rollout_id": rollout, "slot": slot, "attempt": 0, "out": out, "end": "completed", "cut": None, "reward": reward}
    rest = {"status": "scored" if reward is not None else "unscorable", "sampled_tokens": 3, "harness": "reference"}
    return {**known, **rest, "labels": {}, "findings": [], **more}


def row(row_id: str, rollout: str, reward: float | None, turns: list[tuple[int, int]], **more: Any) -> Header:
    """A row of turns, each some context and some sampled tokens; ids count up, logprobs are minus a thousandth of the place."""
    mask = [bit for context, sampled in turns for bit in [0] * context + [1] * sampled]
    spans, at = [], 0
    for context, sampled in turns:
        spans.append([at + context, at + context + sampled])
        at += context + sampled
    versions = [[start, end, 3, 3] for start, end in spans]
    own = {
        "row_id": row_id,
        "rollout_id": rollout,
        "session_id": f"session of {rollout}",
        "role": "main",
        "node_ids": [f"{row_id}-call-{index}" for index in range(len(turns))],
        "is_last": True,
        "fork_reason": None,
        "end": "completed",
        "cut": None,
        "usable": reward is not None,
        "unusable_reason": None if reward is not None else "no_number",
        "reward": reward,
        "weight": 1.0,
        "rows_of_rollout": 1,
        "trained_tokens_of": {"row": sum(mask), "rollout": sum(mask), "group": sum(mask)},
        "prompt_len": turns[0][0],
        "n_tokens": len(mask),
        "versions": versions,
        "temperatures": [[start, end, 1.0] for start, end in spans],
        "turn_spans": spans,
        "observation_spans": [],
        "mask_reasons": [],
        "logprob_kind": "processed",
        "media": [],
        "arrays": {
            "token_ids": list(range(100, 100 + len(mask))),
            "loss_mask": mask,
            "logprobs": [-index / 1000 if bit else 0.0 for index, bit in enumerate(mask)],
        },
    }
    return {**own, **more}


def round_of(members: list[Header], rows: list[Header], **more: Any) -> Header:
    head = {"run_id": "run", "group_id": "group", "round": 0, "row_mode": "chains", "claim_id": "claim", "policy": {"version": 3}}
    rest = {"task": {"digest": "d", "name": "sum", "instruction": "Add 2 and 2."}, "labels": {"set": "a"}}
    return {**head, **rest, "members": members, "rows": rows, **more}


def simple(rewards: list[float | None]) -> Header:
    """A round of one row per rollout."""
    members = [member(f"r{slot}", reward, slot) for slot, reward in enumerate(rewards)]
    rows = [row(f"row{slot}", f"r{slot}", reward, [(3, 2), (2, 1)]) for slot, reward in enumerate(rewards)]
    return round_of(members, rows)


def anything(random_: random.Random) -> Header:
    """A round of any shape that the format allows: empty, one token, unknown logprobs, text of every alphabet."""
    members, rows = [], []
    for slot in range(random_.randrange(5)):
        reward = random_.choice([None, 0.0, 1.0, random_.uniform(-3, 3)])
        name = "".join(random_.choice('aé漢🙂\n"') for _ in range(5)) + str(slot)
        members.append(member(name, reward, slot))
        for index in range(random_.randrange(3)):
            turns = [(random_.randrange(1, 9), random_.randrange(9)) for _ in range(random_.randrange(1, 5))]
            made = row(f"{name}/{index}", name, reward, turns)
            made["arrays"]["token_ids"] = [random_.randrange(2**31) for _ in made["arrays"]["token_ids"]]
            made["arrays"]["logprobs"] = [random_.choice([None, 0.0, -random_.random()]) for _ in made["arrays"]["logprobs"]]
            rows.append(made)
    return round_of(members, rows)
