"""A whole trainer in one file: GRPO on what Paddock recorded. `python loop.py --model DIR --tasks DIR --push ./push.sh`

`lag` + 1 steps of groups are under way, so that sampling goes on while it trains: rows are up to `lag` versions old when they are used.
The loss corrects for that token by token, with the clipped ratio to the recorded logprobs; `--kl` holds the model near what it began as;
of `--lr`, the share `--decay` is gone at the end. All rows of a rollout (sub-agents, compaction, forks) have its one advantage; the mean
is over trained tokens. After each step the engine loads the weights: by `--push`, a program that gets their directory, or by `--requests`,
posted to each replica; with `--lora` an adapter of that rank. Started again, it goes on from its checkpoint: what was lost comes again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import lora
import torch
from paddock_rl import Advantages, Bound, Full, Gated, Group, Mismatch, Outcome, Paddock, Row, Run
from paddock_rl import advantages, check_mismatch, row_scales
from transformers import AutoModelForCausalLM


class Sample(NamedTuple):
    """A row, what its rollout was worth, and the factor that makes a sum over tokens the mean over the step."""

    row: Row
    advantage: float
    scale: float


def padded(arrays: Iterable[Any]) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(list(array)) for array in arrays], batch_first=True)


def token_logprobs(model: Any, rows: Sequence[Row]) -> torch.Tensor:
    """[rows, longest]: the model's logprob of each token of each row at the temperature that sampled it; 0 in front and behind."""
    ids, there = padded(row.token_ids for row in rows), padded([1] * row.n_tokens for row in rows)
    heat = torch.ones(ids.shape)
    for at, row in enumerate(rows):
        for start, end, temperature in row.temperatures if row.logprob_kind != "raw" else ():
            heat[at, start:end] = 1.0 if temperature is None else temperature
    logits = model(input_ids=ids, attention_mask=there).logits[:, :-1].float() / heat[:, 1:, None]
    found = torch.log_softmax(logits, dim=-1).gather(-1, ids[:, 1:, None])[..., 0]
    return torch.nn.functional.pad(found * there[:, 1:], (1, 0))


def clipped_loss(model: Any, samples: Sequence[Sample], low: float, high: float, kl: float = 0.0, reference: Any = None) -> Any:
    """The summed loss of these rows, with `kl` times their distance (k3) from the reference; and how many tokens were clipped."""
    rows = [sample.row for sample in samples]
    new = token_logprobs(model, rows)
    old, mask = padded(row.logprobs for row in rows), padded(row.loss_mask for row in rows) > 0
    worth, scale = torch.tensor([(sample.advantage, sample.scale) for sample in samples]).T[..., None]
    # Behind the mask logprobs may be unknown; a NaN there must not reach the gradient.
    ratio = torch.exp(torch.where(mask, new - old, torch.zeros_like(new)))
    clipped = torch.clamp(ratio, 1 - low, 1 + high)
    loss = -torch.minimum(ratio * worth, clipped * worth)
    if kl:
        apart = torch.where(mask, token_logprobs(reference, rows).detach() - new, torch.zeros_like(new))
        loss = loss + kl * (apart.exp() - apart - 1)
    return (loss * scale * mask).sum(), int(((clipped * worth < ratio * worth) & mask).sum())


def batches(samples: Sequence[Sample], most_tokens: int) -> Iterator[list[Sample]]:
    """Samples of about one length side by side, `most_tokens` with their padding."""
    rest = sorted(samples, key=lambda sample: sample.row.n_tokens)
    while rest:
        fits = [at for at in range(1, len(rest) + 1) if at * rest[at - 1].row.n_tokens <= most_tokens]
        yield rest[: max(fits)]
        rest = rest[max(fits) :]


def why_not(row: Row, step: int, args: Any) -> Outcome | None:
    old = row.oldest_version is not None and step - row.oldest_version > args.lag
    return "skipped" if row.n_tokens > args.most_tokens else "stale" if old else None


def samples_of(judged: Sequence[tuple[Group, Advantages]], step: int, args: Any) -> list[Sample]:
    """What a step trains: rows with a signal that are neither too old nor too long."""
    chosen: list[tuple[Row, float]] = []
    for group, found in judged:
        worth = {} if found.no_signal else {each.row_id: each.advantage for each in found.rows}
        chosen += [(row, value) for row in group.rows if (value := worth.get(row.row_id)) is not None and not why_not(row, step, args)]
    return [Sample(*each, scale) for each, scale in zip(chosen, row_scales([row for row, _ in chosen], "token"))]


@torch.no_grad()
def mismatch_of(model: Any, samples: Sequence[Sample], version: int, args: Any) -> Mismatch:
    """Rows that the very weights at hand have sampled must have the logprobs that these weights give."""
    rows, found = [], []
    for batch in batches([s for s in samples if s.row.oldest_version == version], args.most_tokens):
        rows += [sample.row for sample in batch]
        found += [line[: row.n_tokens].tolist() for row, line in zip(rows[-len(batch) :], token_logprobs(model, rows[-len(batch) :]))]
    return check_mismatch(rows, found, Bound(kl=args.most_kl))


def learn(model: Any, optimizer: Any, run: Run, groups: Sequence[Group], step: int, args: Any, first: bool = True) -> None:
    """One update on these groups, and word of it. `step` is the ordinal of the live weights, which the `first` one starts from."""
    judged = [(group, advantages(group, "grpo")) for group in groups]
    samples = samples_of(judged, step, args)
    mismatch = mismatch_of(model, samples, step, args) if first else None
    total, clipped = 0.0, 0
    optimizer.zero_grad()
    for batch in batches(samples, args.most_tokens):
        loss, cut = clipped_loss(model, batch, args.clip_low, args.clip_high, args.kl, args.reference)
        loss.backward()
        total, clipped = total + loss.item(), clipped + cut
    norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_norm))
    if samples:
        optimizer.param_groups[0]["lr"] = args.lr * (1 - args.decay * step / args.steps)
        optimizer.step()
    for group, found in judged:
        run.dispose_group(group, step, computed=found, left_out={r.row_id: w for r in group.rows if (w := why_not(r, step, args))})
    rewards = [member.number for group in groups for member in group.members if member.number is not None]
    ages = [step - sample.row.oldest_version for sample in samples if sample.row.oldest_version is not None]
    tokens = sum(sample.row.trained_tokens for sample in samples)
    values = {"loss": total, "norm": norm, "tokens": tokens, "clipped": clipped / max(tokens, 1), "age": max(ages, default=0)}
    values |= {"reward": sum(rewards) / len(rewards)} if rewards else {}
    if mismatch is not None:
        run.metrics(step, values, mismatch=mismatch.report())
    print(f"step {step}: " + ", ".join(f"{name} {value:.4g}" for name, value in values.items()), flush=True)


def push(model: Any, optimizer: Any, run: Run, version: int, args: Any) -> None:
    """Gives the engine these weights. Groups that would become too old by that are waited for and trained first."""
    while True:
        adapter = lora.save_as_adapter(model, Path(args.save), f"{run.run_id}-{version}") if args.lora else None
        try:
            run.policy(version, "live" if adapter else "pausing", step=version - 1 if version else None, mode=args.mode, adapter=adapter)
            break
        except Gated as gate:
            if waiting := run.claim(max(1, len(gate.blocking)), lease_s=args.lease_s):
                learn(model, optimizer, run, waiting, version - 1, args, first=False)
    if adapter:
        return
    try:
        model.save_pretrained(weights := args.weights or Path(args.save) / "weights")
        subprocess.run([args.push, weights], check=True) if args.push is not None else None
    except BaseException:
        run.policy(version, "failed")
        raise
    run.policy(version, "live", step=version - 1 if version else None, requests=json.loads(args.requests))


def train(model: Any, run: Run, ask: Callable[[str, int], Any], args: Any) -> None:
    """`ask(name, number)` asks for the group of this name, which is the process's `number`th, from 0; it may raise `Full`."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.0)
    saved = Path(args.save) / "checkpoint.pt"
    saved.parent.mkdir(parents=True, exist_ok=True)
    done, asked = 0, 0
    if saved.exists():
        state = torch.load(saved, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done = int(state["step"])
    incarnation = run.attach(done - 1 if done else None).incarnation
    push(model, optimizer, run, done, args)
    for step in range(done, args.steps):
        owed: list[Group] = []
        while len(owed) < args.groups:
            counts = run.state()["counts"]  # Each time anew: a group that has failed is asked for again.
            there = counts["running"] + counts["settled_unclaimed"] + counts["claimed"]
            for _ in range(min(args.lag + 1, args.steps - step) * args.groups - there):
                try:
                    ask(f"{run.run_id}-{incarnation}-{asked}", asked)
                except Full:
                    break
                asked += 1
            owed += run.claim(args.groups - len(owed), lease_s=args.lease_s)
        learn(model, optimizer, run, owed, step, args)
        push(model, optimizer, run, step + 1, args)
        if (step + 1) % args.save_every == 0 or step + 1 == args.steps:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}, saved.with_suffix(".new"))
            saved.with_suffix(".new").rename(saved)
            run.checkpoint(step)


def main() -> None:
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    known = {"url": "http://127.0.0.1:8791", "run": "loop", "harness": "reference", "save": "out/loop", "mode": "drain"}
    known |= {"steps": 40, "groups": 4, "n": 8, "lag": 1, "save_every": 5, "most_tokens": 8192, "lease_s": 600.0, "decay": 0.0, "lora": 0}
    known |= {"weights": "", "requests": "[]", "lr": 1e-5, "clip_low": 0.2, "clip_high": 0.28, "max_norm": 1.0, "kl": 0.0, "most_kl": 0.05}
    for name, default in known.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default, help=" ")
    for name, help in {"model": "what transformers can load", "tasks": "a directory of tasks", "push": "a program"}.items():
        parser.add_argument(f"--{name}", required=name != "push", help=help)
    args = parser.parse_args()
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32)
    lora.put_on(model, args.lora)
    args.reference = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32) if args.kl else None
    tasks = sorted(path.name for path in Path(args.tasks).iterdir() if path.is_dir())
    asked = {"purpose": "train", "harness": args.harness, "tasks": str(Path(args.tasks).resolve()), "groups_per_step": args.groups}
    with Paddock(args.url).run(args.run, **asked, staleness={"max": args.lag, "mode": "gate"}) as run:
        train(model, run, lambda name, at: run.submit({"group_id": name, "task": tasks[at % len(tasks)], "n": args.n}), args)


if __name__ == "__main__":
    main()
