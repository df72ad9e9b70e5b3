"""A group with uneven outcomes through every adapter that there is: two rows, a number, a null verdict, a spent budget, a failed infrastructure.

For each word of each adapter's table: every trained token comes once and none of a null, no null is a 0, and the baseline is that of an independent computation.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import statistics
import sys
import types
import unittest
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args
from unittest import mock

import paddock_rl
from paddock_rl import MultiRow, NoNumber, Paddock, advantages, agentlightning, areal, convert, decode, nemo_gym, openrlhf, skyrl, slime, trl, trl_async, trl_harness, verifiers, verl
from paddock_rl.adapters import ADAPTERS, Adapter
from paddock_rl.convert.verifiers import trace_of
from paddock_rl.groups import Groups, Refused
from paddock_rl.rows import Group

from . import encoder, slime_fixture
from .stand_in import says
from .test_agentlightning import collected
from .test_trl import Server, Trainer

N = 5
NUMBERS = {0: 1.0, 1: 0.0, 3: 0.5}
"""By slot: what they are worth. 2 has a null verdict, 4 a failed infrastructure."""
MEAN = statistics.fmean(NUMBERS.values())
LOST = 1


def uneven() -> encoder.Header:
    """Ids are of one row each: those of slot s begin with 1000 (s + 1), those of the second row of slot 0 with 9000."""
    rows = [
        encoder.row("side", "r0", 1.0, [(2, 1)], rows_of_rollout=2, is_last=False),
        encoder.row("main", "r0", 1.0, [(3, 2), (2, 1)], rows_of_rollout=2),
        encoder.row("row1", "r1", 0.0, [(3, 2), (2, 1)]),
        encoder.row("row2", "r2", None, [(3, 2)]),
        encoder.row("row3", "r3", 0.5, [(3, 4)], end="budget"),
        encoder.row("row4", "r4", None, [(3, 1)], unusable_reason="infra", end="infra"),
    ]
    for row in rows:
        start = 9000 if row["row_id"] == "side" else 1000 * (int(row["rollout_id"][1:]) + 1)
        row["arrays"]["token_ids"] = [start + index for index in range(row["n_tokens"])]
    members = [encoder.member(f"r{slot}", NUMBERS.get(slot), slot) for slot in range(4)]
    members[3]["end"] = "budget"
    members.append(encoder.member("r4", None, 4, out="infra", end="infra", status="infra_error"))
    return encoder.round_of(members, rows)


def group() -> Group:
    return decode(encoder.encode(uneven()))


TRAINED = {
    id_: (row.rollout_id, row.row_id) for row in group().rows if row.usable for id_, bit in zip(row.token_ids, row.loss_mask, strict=True) if bit
}


@dataclass
class Given:
    """What a trainer gets of one rollout: a number for its baseline, or an advantage, and the ids that it would train."""

    number: float | None
    trained: list[int]
    advantage: float | None = None

    @property
    def slot(self) -> int | None:
        """Whose tokens they are."""
        found = {TRAINED[id_][0] for id_ in self.trained}
        return int(found.pop()[1:]) if len(found) == 1 else None


def ids(tokens: Sequence[int], mask: Sequence[Any]) -> list[int]:
    return [token for token, bit in zip(tokens, mask, strict=True) if bit]


Drive = Callable[["Uneven", str, str], "list[Given]"]
DRIVES: dict[str, Drive] = {}


def drives(name: str) -> Callable[[Drive], Drive]:
    def keep(drive: Drive) -> Drive:
        DRIVES[name] = drive
        return drive

    return keep


@drives("to_trl")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    found = convert.to_trl(group(), several=several)  # type: ignore[arg-type]
    return [Given(*row) for row in zip(found["reward"], map(ids, found["completion_ids"], found["env_mask"]), strict=True)]


@drives("to_trl_async")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    given = group()
    found = convert.to_trl_async(given, advantages(given, "trl"), 0)
    return [Given(each["metrics"]["reward"], ids(each["input_ids"], each["completion_mask"]), each["advantage"]) for each in found]


@drives("to_verl")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    return test.of_verl(convert.to_verl(group(), null=null))  # type: ignore[arg-type]


@drives("to_slime")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    found = convert.to_slime(group(), 0, null=null)  # type: ignore[arg-type]
    return [Given(rows[-1]["reward"], [id_ for row in rows for id_ in ids(row["tokens"][-row["response_length"] :], row["loss_mask"])]) for rows in found]


@drives("to_skyrl")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    return test.of_skyrl(convert.to_skyrl(group(), null=null))  # type: ignore[arg-type]


@drives("to_areal")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    return [
        Given(rows[-1]["rewards"][0], [id_ for row in rows for id_ in ids(row["input_ids"][0], row["loss_mask"][0])])
        for rows in convert.to_areal(group())
        if rows is not None
    ]


@drives("to_verifiers")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    return test.of_traces(convert.to_verifiers(group()))


@drives("to_tinker")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    given = group()
    found = []
    for datum in convert.to_tinker(given, advantages(given, "tinker")):
        values = datum["loss_fn_inputs"]
        (worth,) = {value for value, bit in zip(values["advantages"], datum["mask"], strict=True) if bit}
        found.append(Given(None, ids(values["target_tokens"], datum["mask"]), worth))
    return found


@drives("to_openrlhf")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    found = convert.to_openrlhf(group(), several=several, null=null)  # type: ignore[arg-type]
    return [Given(each["reward"], [id_ for start, end in each["action_ranges"] for id_ in each["observation_tokens"][start:end]]) for each in found]


@drives("to_nemo")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    found = convert.to_nemo(group(), 0, several=several, null=null)  # type: ignore[arg-type]
    return [Given(each["reward"], [id_ for part in each["message_log"] for id_ in ids(part["token_ids"], part["token_loss_mask"])]) for each in found]


@drives("trl")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    rollouts = trl.Rollouts(test.groups().run, task=str, move_weights=lambda *_: None, null=null, several=several)  # type: ignore[arg-type]
    trainer = Trainer(rollouts, num_generations=N)
    trainer.state.global_step = 3
    rollouts.bind(trainer)
    trainer.tell("on_train_begin")
    found = rollouts(["one"] * N, trainer)
    return [Given(*row) for row in zip(found["paddock_number"], map(ids, found["completion_ids"], found["env_mask"]), strict=True)]


@drives("trl_async")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    def samples(*given: Any) -> list[Any]:
        return [SimpleNamespace(**each) for each in convert.to_trl_async(*given)]

    worker = trl_async.Worker(test.groups(), [], N)
    worker.groups.run.attach()
    transfer = worker.weights(None)
    trainer = SimpleNamespace(state=SimpleNamespace(global_step=0), args=SimpleNamespace(temperature=1.0, max_staleness=9), model_version=3)
    worker.bind(SimpleNamespace(**vars(trainer), rollout_worker=worker, weight_transfer=transfer, add_callback=lambda _: None))
    with mock.patch.object(trl_async, "rollout_samples", samples):
        worker._hand(worker.groups.settled([trl_async.Asked("one", N)], 0)[0])
    found = [worker.rollout_buffer.get() for _ in range(worker.rollout_buffer.qsize())]
    return [Given(each.metrics["reward"], ids(each.input_ids, each.completion_mask), each.advantage) for each in found]


@drives("trl_harness")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    groups = test.groups()
    groups.run.attach()
    factory = trl_harness.Factory(lambda: groups, "run", 2, N)({"temperature": 1.0})
    sessions = [factory.create("one", seed=0) for _ in range(N)]
    with ThreadPoolExecutor(N) as threads:
        list(threads.map(lambda session: session.wait_for_completion(), sessions))
    found = []
    for session in sessions:
        # As TRL puts them together: all of one rollout is under its one number.
        trained = [id_ for turn in session.fetch_training_trace().turns for id_ in ids(turn.completion_token_ids, turn.loss_mask[len(turn.prompt_token_ids) :])]
        found.append(Given(session.verify([]).env_reward, trained))
        session.close()
    said = {each["row"]: each["outcome"] for each in test.servers[-1].disposed()}
    test.assertEqual(said, {"row2": "skipped", "row4": "skipped"})
    return found


@drives("verl")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    return test.of_verl(verl.outputs(test.settled(), N, null))  # type: ignore[arg-type]


@drives("slime")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    args = slime_fixture.arguments(N, mine=True)
    word = "fan_out" if several == "all" else several
    rollouts = slime.Rollouts(test.groups(), null=null, several=word)  # type: ignore[arg-type]
    samples = slime_fixture.flat(rollouts.generate_rollout(args, 0, slime_fixture.Source(args, ["one"])).samples)
    _, worth = slime.rewards(args, samples)
    found: dict[int, Given] = {}
    for sample, own in zip(samples, worth, strict=True):
        kept = null == "masked_mean" or not sample.remove_sample
        given = found.setdefault(sample.index, Given(sample.reward if kept else None, [], None if sample.remove_sample else own))
        given.trained += ids(sample.tokens[-sample.response_length :], sample.loss_mask)
    return list(found.values())


@drives("skyrl")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    word = "step_wise" if several == "all" else several
    generator = skyrl.Generator(test.groups(), null=null, several=word)  # type: ignore[arg-type]
    trajectories = [SimpleNamespace(instance_id="one", repetition_id=place) for place in range(N)]
    batch = {"prompts": ["one"] * N, "trajectory_ids": trajectories, "batch_metadata": SimpleNamespace(global_step=1, training_phase="train")}
    found = asyncio.run(generator.generate({**batch, "sampling_params": {"temperature": 1.0}}))
    return test.of_skyrl({**found, "is_last_step": found["is_last_step"] or [True] * N})


@drives("areal")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    workflow = areal.Workflow(test.groups(), N, several=several)  # type: ignore[arg-type]
    data, engine = {"messages": "one"}, SimpleNamespace(get_version=lambda: 0)

    async def episodes() -> list[Any]:
        return await asyncio.gather(*(workflow.arun_episode(engine, data) for _ in range(N)))

    found = [each for each in asyncio.run(episodes()) if each is not None]
    return [Given(each["rewards"][0], ids(each["input_ids"][0], each["loss_mask"][0])) for each in found]


@drives("openrlhf")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    groups = test.groups()
    executor = openrlhf.executor(lambda engine: groups, N, null=null, several=several)()  # type: ignore[arg-type]
    params = SimpleNamespace(temperature=1.0, top_p=1.0, top_k=-1)

    async def samples() -> list[Any]:
        asked = (executor.execute("one", None, params, 128, SimpleNamespace(pad_token_id=0), None) for _ in range(N))
        return await asyncio.gather(*asked)

    try:
        found = asyncio.run(samples())
    finally:
        executor.close()
    given = {each["row"] for each in test.servers[-1].disposed() if each["outcome"] == "used"}
    test.assertEqual(given, {"main", "row1", "row3"})
    return [Given(each["reward"], [id_ for start, end in each["action_ranges"] for id_ in each["observation_tokens"][start:end]]) for each in found]


class Base:
    """As much of a class of NeMo Gym's as is looked at: pydantic's models."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    @classmethod
    def model_validate(cls, given: dict[str, Any]) -> dict[str, Any]:
        return given

    def model_post_init(self, context: Any) -> None: ...


def run_nemo_gym(test: Uneven, null: str, several: str, longest: int) -> list[Any]:
    groups = test.groups()
    server = nemo_gym.agent(lambda config: groups, N, null=null, several=several)()  # type: ignore[arg-type]
    server.server_client = SimpleNamespace(global_config_dict={})
    server.model_post_init(None)
    row = {"responses_create_params": {"input": "one", "temperature": 1.0, "max_output_tokens": longest}, "_ng_task_index": 4}
    bodies = [SimpleNamespace(model_dump=lambda **_: row) for _ in range(N)]

    async def rollouts() -> list[Any]:
        return await asyncio.gather(*(server.run(body) for body in bodies))

    try:
        return asyncio.run(rollouts())
    finally:
        server.close()


@drives("nemo_gym")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    found = run_nemo_gym(test, null, several, 4)
    given = {each["row"] for each in test.servers[-1].disposed() if each["outcome"] == "used"}
    test.assertEqual(given, {"main", "row1", "row3"})
    out = []
    for each in found:
        test.assertEqual(each["instance_config"]["mask_sample"], each["mask_sample"])
        ids_of: list[int] = []
        trained: list[int] = []
        for item in each["response"]["output"]:
            test.assertEqual(ids_of, item["prompt_token_ids"][: len(ids_of)])
            ids_of = item["prompt_token_ids"] + item["generation_token_ids"]
            trained += item["generation_token_ids"]
        out.append(Given(each["reward"], [] if each["mask_sample"] else trained))
    return out


@drives("agentlightning")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    groups = test.groups()
    test.servers[-1].on("PUT /rl/v1/runs/run/engines", says({"engines": []}))
    with agentlightning.Server(groups, N) as server:
        found = collected(server, [{"input": "one"}] * N)
        server.steps.done()
    said = {each["row"]: each["outcome"] for each in test.servers[-1].disposed()}
    test.assertEqual({row for row, outcome in said.items() if outcome == "used"}, {"side", "main", "row1", "row3"})
    # A rollout without triplets is in no batch of its trainer.
    return [Given(one.reward if one.triplets else None, [id_ for triplet in one.triplets for id_ in triplet["response_token_ids"]]) for one in found]


@drives("verifiers")
def _(test: Uneven, null: str, several: str) -> list[Given]:
    # An episode is a rollout there, so the members of the group are those of as many episodes.
    given = group()
    found = [trace_of(given, member) for member in given.members]
    said = verifiers.dispositions([SimpleNamespace(ok=each["ok"], info=each["info"], reward=1.0) for each in found], 0)
    test.assertEqual([each["row"] for each in said], ["side", "main", "row1", "row3"])
    return test.of_traces(found)


class Uneven(unittest.TestCase):
    def setUp(self) -> None:
        self.servers: list[Server] = []
        fakes = {
            "torch": SimpleNamespace(tensor=lambda value, dtype: value, int32=0, float32=0, bool=0),
            "transformers": SimpleNamespace(TrainerCallback=object),
            "trl": SimpleNamespace(__version__="1.16.0"),
            "pydantic": SimpleNamespace(ConfigDict=dict, PrivateAttr=lambda default: default),
            "nemo_gym.base_responses_api_agent": SimpleNamespace(SimpleResponsesAPIAgent=Base),
            "nemo_gym.base_resources_server": SimpleNamespace(BaseRunRequest=Base, BaseVerifyResponse=Base),
            "openrlhf.utils.agent": SimpleNamespace(AgentExecutorBase=object),
            "openenv.core.harness.training": SimpleNamespace(TrainingTurn=SimpleNamespace, TrainingTrace=SimpleNamespace),
            "slime.rollout.base_types": SimpleNamespace(RolloutFnTrainOutput=slime_fixture.RolloutFnTrainOutput),
        }
        patched = mock.patch.dict(sys.modules, fakes)
        patched.start()
        self.addCleanup(patched.stop)

    def groups(self) -> Groups:
        server = Server(uneven())
        self.servers.append(server)
        self.addCleanup(server.close)
        run = Paddock(server.url, "token", patience_s=0).run()
        self.addCleanup(run.close)
        found = Groups(run, task=str)
        self.addCleanup(found.close)
        return found

    def settled(self) -> Group | None:
        groups = self.groups()
        groups.run.attach()
        return groups.settled([trl_async.Asked("one", N)], 0)[0]

    def of_verl(self, found: list[list[dict[str, Any]]]) -> list[Given]:
        return [
            Given(rows[-1]["reward_score"], [id_ for row in rows for id_ in ids(row["response_ids"], row["response_mask"])]) for rows in found if rows
        ]

    def of_skyrl(self, found: dict[str, list[Any]]) -> list[Given]:
        given = [Given(None, [])]
        for tokens, mask, reward, last in zip(found["response_ids"], found["loss_masks"], found["rewards"], found["is_last_step"], strict=True):
            given[-1].trained += ids(tokens, mask)
            if last:
                given[-1].number = reward
                given.append(Given(None, []))
        return given[:-1]

    def of_traces(self, found: list[dict[str, Any]]) -> list[Given]:
        given = []
        for trace in found:
            reward = trace["rewards"]["reward"]
            self.assertEqual((reward is not None, not trace["errors"]), (trace["ok"], trace["ok"]))
            trained = [id_ for node in trace["nodes"] for id_ in ids(node["token_ids"], node["mask"])]
            given.append(Given(None if reward is None else reward["score"], trained))
        return given

    def test_every_word_of_every_adapter(self) -> None:
        for adapter in ADAPTERS:
            for null in adapter.null:
                for several in adapter.several:
                    with self.subTest(adapter=adapter.name, null=null, several=several):
                        self.try_one(adapter, null, several)

    def try_one(self, adapter: Adapter, null: str, several: str) -> None:
        refused = NoNumber if null == "raise" else MultiRow if several == "refuse" else None
        if refused is not None:
            with self.assertRaises((NoNumber, MultiRow)):
                DRIVES[adapter.name](self, null, several)
            return
        given = DRIVES[adapter.name](self, null, several)
        lost = {id_ for id_, (_, row) in TRAINED.items() if row == "side"} if several == "main_chain" else set()
        self.assertEqual(sorted(id_ for each in given for id_ in each.trained), sorted(set(TRAINED) - lost))
        for each in given:
            self.assertEqual(each.slot is None, not each.trained)
            if each.slot is None:
                self.assertIn(each.number, (None, MEAN) if null == "masked_mean" else (None,))
                self.assertIn(each.advantage, (None,))
            elif each.number is not None:
                self.assertEqual(each.number, NUMBERS[each.slot])
        counted = {each.slot if each.slot is not None else -place: each.number for place, each in enumerate(given) if each.number is not None}
        if counted:
            # What the trainer takes for its baseline: each rollout once.
            self.assertAlmostEqual(statistics.fmean(counted.values()), MEAN)
            self.assertEqual(len(counted), N if null == "masked_mean" else len(NUMBERS))
        else:
            self.assertTrue(all(each.advantage is not None for each in given))
        spread = statistics.stdev(NUMBERS.values() if null != "masked_mean" or adapter.name == "slime" else counted.values())
        scale = {"slime": spread + 1e-6, "to_tinker": 1.0}.get(adapter.name, spread + 1e-4)
        for each in given:
            if each.advantage is not None and each.slot is not None:
                self.assertAlmostEqual(each.advantage, (NUMBERS[each.slot] - MEAN) / scale)

    def test_an_answer_that_is_longer_than_a_row_of_nemo_gym_allows_is_refused(self) -> None:
        with self.assertRaisesRegex(Refused, "row row3 has an answer of 4 tokens, and the trainer allows 3"):
            run_nemo_gym(self, "masked_mean", "main_chain", 3)
        self.assertEqual(self.servers[-1].disposed(), [])

    def test_the_table_holds_all_adapters_and_each_is_driven(self) -> None:
        names = [adapter.name for adapter in ADAPTERS]
        self.assertEqual(sorted(DRIVES), sorted(names))
        converters = [name for name in convert.__all__ if name.startswith("to_")]
        package = Path(paddock_rl.__file__).parent
        # A module that takes a `Groups` is one.
        seams = [path.stem for path in package.glob("*.py") if re.search(r"from \.groups import .*\bGroups\b", path.read_text())]
        self.assertEqual(sorted(names), sorted(converters + seams))

    def test_the_words_are_those_of_the_code(self) -> None:
        spelled = {"fan_out": "all", "step_wise": "all"}
        modules: dict[str, types.ModuleType] = {"trl": trl, "verl": verl, "slime": slime, "skyrl": skyrl, "areal": areal, "openrlhf": openrlhf, "nemo_gym": nemo_gym}
        for adapter in ADAPTERS:
            module = modules.get(adapter.name)
            kinds = {"trl": trl.Rollouts, "slime": slime.Rollouts, "skyrl": skyrl.Generator, "areal": areal.Workflow, "verl": verl.outputs, "openrlhf": openrlhf.executor, "nemo_gym": nemo_gym.agent}
            code = kinds.get(adapter.name) if module else getattr(convert, adapter.name) if adapter.name.startswith("to_") else None
            for what in ("null", "several"):
                words = getattr(adapter, what)
                found = inspect.signature(code).parameters.get(what) if code else None
                with self.subTest(adapter=adapter.name, what=what):
                    if found is None:
                        self.assertEqual(len(words), 1)
                        continue
                    known = getattr(module, what.title(), None) or getattr(convert, what.title())
                    self.assertEqual(sorted(spelled.get(word, word) for word in get_args(known)), sorted(words))
                    self.assertEqual(spelled.get(found.default, found.default), words[0])

    def test_the_readme_says_the_same(self) -> None:
        text = (Path(__file__).resolve().parents[1] / "README.md").read_text()
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
        told = {re.sub(r"^\[?`(paddock_rl\.)?(\w+)`.*", r"\2", row[0]): row[1:5] for row in rows if len(row) == 6}
        for adapter in ADAPTERS:
            words = [", ".join(f"`{word}`" for word in of) for of in (adapter.null, adapter.several)]
            self.assertEqual(told.get(adapter.name), [adapter.groups, adapter.advantages, *words], adapter.name)


if __name__ == "__main__":
    unittest.main()
