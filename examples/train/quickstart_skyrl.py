"""SkyRL on rollouts of a harness of your own, beside `./paddock serve`; PADDOCK_CONTROL_URL and PADDOCK_CONTROL_TOKEN say where it is.

With GPUs `generator()` is what `BasePPOExp.get_generator` of an experiment of yours returns. On a CPU this goes as far as SkyRL's advantages: its own
input, its own check of the output, its own GRPO. Nothing is trained.
"""

import asyncio
import os

from paddock_rl import Paddock
from paddock_rl.groups import Groups
from paddock_rl.skyrl import Generator
from quickstart_harness import solve


def generator():
    run = Paddock(os.environ["PADDOCK_CONTROL_URL"]).run(purpose="train")
    return Generator(Groups(run, harness=solve, spare=2), null="masked_mean")


if __name__ == "__main__":
    import torch
    from skyrl.backends.skyrl_train.utils.ppo_utils import compute_grpo_outcome_advantage
    from skyrl.train.generators.utils import prepare_generator_input
    from skyrl.train.utils.trainer_utils import validate_generator_output

    row = {"prompt": [{"role": "user", "content": "Add 2 and 2."}], "env_class": None, "env_extras": {}, "uid": "sum"}
    batch, uids = prepare_generator_input([row], 4, {"temperature": 1.0}, "none", "train", 1)
    made = generator()
    output = asyncio.run(made.generate(batch))
    validate_generator_output(len(batch["prompts"]), output)
    rewards = torch.tensor(output["rewards"]).unsqueeze(-1)
    worth, _ = compute_grpo_outcome_advantage(rewards, torch.ones_like(rewards), uids, 1e-6)
    print(f"rewards {output['rewards']}, advantages {[round(float(each), 3) for each in worth]}")
    made.steps.finish()
