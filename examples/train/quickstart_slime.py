"""slime on rollouts of a harness of your own, beside `./paddock serve`; PADDOCK_CONTROL_URL and PADDOCK_CONTROL_TOKEN say where it is.

    python train.py ... --rollout-function-path quickstart_slime.generate_rollout --custom-reward-post-process-path quickstart_slime.normalise

slime is in no package index and needs GPUs: here this goes as far as the samples that slime's rollout process would get, and their normalised rewards, with
shapes of slime's source in the place of its classes (clients/python/tests/slime_fixture.py). Nothing is trained.
"""

import os

from paddock_rl import Paddock
from paddock_rl.groups import Groups
from paddock_rl.slime import Rollouts, rewards
from quickstart_harness import solve

run = Paddock(os.environ["PADDOCK_CONTROL_URL"]).run(purpose="train")
rollouts = Rollouts(Groups(run, harness=solve, spare=2), null="left_out", several="fan_out")
generate_rollout = rollouts.generate_rollout
normalise = rewards
