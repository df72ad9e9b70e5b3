"""Exports and converters through the classes of those who read them, without their services: Tinker's `Datum`, ATIF's `Trajectory`.

The first argument is a file of `paddock export --format atif`.
"""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / place) for place in ("clients/python/src", "clients/python")]
LINES = Path(sys.argv.pop(1)).read_text().splitlines()

from atif import Trajectory  # noqa: E402
from paddock_rl import advantages, to_tinker  # noqa: E402
from tests.test_every_adapter import TRAINED, group  # noqa: E402
from tinker import types  # noqa: E402


class Shapes(unittest.TestCase):
    def test_tinker_takes_each_datum_as_it_is(self) -> None:
        given = group()
        computed = advantages(given, "tinker")
        worth = {row.row_id: computed.by_rollout[row.rollout_id] for row in given.rows}
        logprobs = {token: value for row in given.rows for token, value in zip(row.token_ids, row.logprobs, strict=True)}
        trained: list[int] = []
        for made in to_tinker(given, computed):
            datum = types.Datum(model_input=types.ModelInput.from_ints(made["model_input"]), loss_fn_inputs=made["loss_fn_inputs"])
            columns = {name: column.to_numpy() for name, column in datum.loss_fn_inputs.items()}
            self.assertEqual({name: str(column.dtype) for name, column in columns.items()}, {"target_tokens": "int64", "logprobs": "float32", "advantages": "float32"})
            self.assertEqual({len(column) for column in columns.values()}, {datum.model_input.length})
            # Position i predicts what follows i + 1 ids.
            self.assertEqual(datum.model_input.to_ints()[1:], columns["target_tokens"][:-1].tolist())
            own = [int(token) for token, bit in zip(columns["target_tokens"], made["mask"], strict=True) if bit]
            (row,) = {TRAINED[token][1] for token in own}
            for token, logprob, advantage, bit in zip(columns["target_tokens"], columns["logprobs"], columns["advantages"], made["mask"], strict=True):
                self.assertAlmostEqual(float(advantage), worth[row] if bit else 0.0, 6)
                self.assertAlmostEqual(float(logprob), logprobs[int(token)] if bit else 0.0, 6)
            trained += own
        self.assertEqual(sorted(trained), sorted(TRAINED))

    def test_atif_reads_each_line_and_loses_nothing(self) -> None:
        self.assertGreater(len(LINES), 1)
        for line in LINES:
            trajectory = Trajectory.model_validate_json(line)
            self.assertEqual(trajectory.schema_version, "ATIF-v1.8")
            agents = [step for step in trajectory.steps if step.source == "agent"]
            sampled = sum(len(step.metrics.completion_token_ids) for step in agents if step.metrics)
            self.assertEqual(sampled, trajectory.final_metrics.total_completion_tokens)
            self.assertGreater(sampled, 0)
            for step in agents:
                if step.metrics is not None and step.metrics.logprobs is not None:
                    self.assertEqual(len(step.metrics.logprobs), len(step.metrics.completion_token_ids))
            self.assertEqual(trajectory, Trajectory.model_validate(trajectory.to_json_dict()))


if __name__ == "__main__":
    unittest.main()
