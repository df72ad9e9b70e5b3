"""Tinker's `Datum`, which SkyRL's server takes as well.

| who groups | who computes advantages | null | several rows |
|---|---|---|---|
| your loop | you: `advantages(group, "tinker")` | left out | a datum each, with the same advantage |
"""

from __future__ import annotations

from typing import Any

from ..advantages import Advantages
from ..rows import Group
from ._rows import numbers


def to_tinker(group: Group, computed: Advantages) -> list[dict[str, Any]]:
    """`Datum` fields (tinker-cookbook at 9dfcc3a2c, tinker_cookbook/rl/data_processing.py): everything shifted by one, so that
    position i holds the token that is predicted after i + 1 ids. `mask` stands beside `loss_fn_inputs`, since no loss takes it: where it
    is 0 the advantage is 0 too. `Datum(model_input=ModelInput.from_ints(d["model_input"]), loss_fn_inputs=d["loss_fn_inputs"])` takes
    the lists as they are (tinker 0.38).
    """
    out = []
    rows = {row.row_id: row for row in group.rows}
    for found in computed.rows:
        if found.advantage is None:
            continue
        row = rows[found.row_id]
        ids = list(row.token_ids)
        mask = list(row.loss_mask)
        if mask[0]:
            raise ValueError(f"row {row.row_id} trains its first token, which nothing predicts")
        out.append(
            {
                "model_input": ids[:-1],
                "loss_fn_inputs": {
                    "target_tokens": ids[1:],
                    "logprobs": numbers(row)[1:],
                    "advantages": [found.advantage if bit else 0.0 for bit in mask[1:]],
                },
                "mask": mask[1:],
            }
        )
    return out
