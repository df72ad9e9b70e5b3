"""Asks the published graders about pairs: one JSON object {gold, answer} per line in, one per line out. Each grader is a
module of a package; `math.ts` beside this file makes the virtual environment. A grader that raises or takes 10 s says no."""

import importlib.util
import json
import multiprocessing
import resource
import sys
import types
from pathlib import Path

verl = Path(sys.argv[1])
# Such a number must not take the machine's memory either.
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))


def module(name, path):
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=[str(path.parent)])
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def package(name):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []


# The graders want one function of verl; the limit of this file takes its place.
for name in ["verl", "verl.utils"]:
    package(name)
functional = types.ModuleType("verl.utils.py_functional")
functional.timeout_limit = lambda **_: lambda inner: inner
sys.modules["verl.utils.py_functional"] = functional
rewards = verl / "verl/utils/reward_score"
prm800k = module("prm800k_grader", rewards / "prime_math/__init__.py")
verl_math = module("verl_math_reward", rewards / "math_reward.py")
from math_verify import parse, verify  # noqa: E402


def math_verify(gold, answer):
    return bool(verify(parse(f"\\boxed{{{gold}}}", parsing_timeout=None), parse(f"\\boxed{{{answer}}}", parsing_timeout=None), timeout_seconds=None))


graders = {
    "math_verify": math_verify,
    "prm800k": lambda gold, answer: bool(prm800k.grade_answer(answer, gold)),
    "verl": lambda gold, answer: verl_math.compute_score(f"\\boxed{{{answer}}}", gold) == 1.0,
}


def grade(pipe):
    """One process: a number of a billion digits is made in C, where no alarm reaches."""
    while True:
        name, gold, answer = pipe.recv()
        try:
            says = graders[name](gold, answer)
        except BaseException:  # A grader ends in many ways, also by SystemExit.
            says = False
        pipe.send(says)


def begun():
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=grade, args=(theirs,), daemon=True)
    process.start()
    return process, ours


process, pipe = begun()
for line in sys.stdin:
    pair = json.loads(line)
    says = {}
    for name in graders:
        pipe.send((name, pair["gold"], pair["answer"]))
        if pipe.poll(10):
            says[name] = pipe.recv()
        else:
            says[name] = False
            process.kill()
            process, pipe = begun()
    print(json.dumps(says), flush=True)
