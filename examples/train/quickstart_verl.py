"""verl on rollouts of a harness of your own, beside `./paddock serve`; PADDOCK_CONTROL_URL and PADDOCK_CONTROL_TOKEN say where it is.

With GPUs verl makes `Rollouts` itself: +actor_rollout_ref.rollout.agent.agent_loop_manager_class=quickstart_verl.Rollouts. On a CPU this goes as far as
verl's advantages: prompts as its trainer has them, its own output class and tensors, its own GRPO. A dict is in the place of TransferQueue; nothing is trained.
"""

import os
from concurrent.futures import wait

import transfer_queue
from omegaconf import OmegaConf
from paddock_rl import Paddock
from paddock_rl.groups import Groups
from paddock_rl.verl import Manager
from quickstart_harness import solve


class Rollouts(Manager):
    def open(self):
        run = Paddock(os.environ["PADDOCK_CONTROL_URL"]).run(purpose="train")
        return Groups(run, harness=solve, spare=2)


if __name__ == "__main__":
    import numpy
    from tensordict import NonTensorStack, TensorDict
    from verl.protocol import DataProto
    from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories
    from verl.utils import tensordict_utils

    put = {}
    transfer_queue.kv_put = lambda key, partition_id, tag: print(f"{key}: {tag['status']}")
    transfer_queue.kv_batch_put = lambda keys, partition_id, fields, tags: put.update(keys=keys, fields=fields)
    rollout = {"n": 4, "temperature": 1.0}
    config = {"actor_rollout_ref": {"rollout": rollout}, "trainer": {"v1": {"trainer_mode": "sync"}}}
    manager = Rollouts.create(config=OmegaConf.create(config))
    prompt = [{"role": "user", "content": "Add 2 and 2."}]
    prompts = TensorDict({"uid": NonTensorStack("sum"), "raw_prompt": NonTensorStack(prompt)}, batch_size=[1])
    tensordict_utils.assign_non_tensor_data(prompts, "global_steps", 1)
    manager.generate_sequences(prompts)
    wait(manager.under_way)
    columns = put["fields"].select("response_mask", "rm_scores").to_padded_tensor()
    data = DataProto(batch=columns, non_tensor_batch={"uid": numpy.array(put["fields"]["uid"], dtype=object)})
    data.batch["token_level_rewards"] = data.batch["rm_scores"]
    data = compute_advantage_for_multi_trajectories(data, put["keys"], adv_estimator="grpo")
    worth = [float(row[mask.bool()][0]) for row, mask in zip(data.batch["advantages"], data.batch["response_mask"], strict=True)]
    print(f"rows {put['keys']}, advantages {[round(each, 3) for each in worth]}")
    manager.steps.finish()
