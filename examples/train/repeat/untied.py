"""Makes the model that `repeat` starts from: `untied.py DIRECTORY`, where `scripts/real-up` has put SmolLM2-135M.

Its weights as they are, with output embeddings of their own: vLLM 0.32.0 leaves tied ones as they were when it reloads weights.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "doors"))

from tiny import untied  # noqa: E402


def make(cache: Path) -> Path:
    """The directory of the model, made where it is not there yet; it appears whole or not at all."""
    tied = cache / "models" / "smollm2"
    made = cache / f"untied-{tied.resolve().parent.name}"
    if not made.exists():
        work = Path(tempfile.mkdtemp(dir=cache))
        for file in (*tied.glob("*.json"), *tied.glob("*.jinja")):
            shutil.copy(file, work)
        untied(AutoModelForCausalLM.from_pretrained(tied, dtype=torch.float32)).save_pretrained(work)
        work.chmod(0o755)
        work.rename(made)
    return made


if __name__ == "__main__":
    print(make(Path(sys.argv[1])))
