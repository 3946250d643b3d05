"""`--precision`: bfloat16 on the CPU, from the flag to a resumed run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from expgen import train
from expgen.cli.main import main
from expgen.errors import InputError
from expgen.fast.accelerate import accelerate
from expgen.networks.impala import ImpalaEncoder, Precision
from expgen.runs.make_config import make_config
from expgen.runs.plan import build_learner, plans_of
from expgen.training.checkpoint import latest_checkpoint
from expgen.training.resources import Resources

CPU = torch.device("cpu")
TINY = {"preset": "smoke", "encoder": "impala", "eval_every": 0}


@pytest.mark.parametrize(("precision", "expected"), [("auto", False), ("float32", False), ("bfloat16", True)])
def test_precision_reaches_the_encoders_of_policy_and_value_network(precision: Precision, expected: bool):
    config = make_config("minimaze", "idaac", precision=precision, **TINY)
    learner = build_learner(config, plans_of(config)[0], Resources(CPU, 1, 1, 1))
    networks = (learner.algorithm.policy, learner.algorithm.value_network)
    encoders = [part for network in networks for part in network.modules() if isinstance(part, ImpalaEncoder)]  # type: ignore[union-attr]
    assert [encoder.is_bfloat16 for encoder in encoders] == [expected, expected]


@pytest.mark.parametrize(
    ("words", "learner"), [([], "member0"), (["--algo", "expgen", "--encoder", "impala"], "explorer")]
)
def test_bfloat16_is_refused_where_nothing_would_use_it(
    words: list[str], learner: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    flags = ["--preset", "smoke", "--precision", "bfloat16", "--run", str(tmp_path / "run")]
    assert main(["train", *words, *flags]) == 2
    message = f"--precision is bfloat16 but the encoder of {learner} is not impala or impoola; accepted: auto, float32"
    assert capsys.readouterr().err.endswith(f"{message}\n")


def test_float32_is_refused_on_a_gpu():
    config = make_config("minimaze", "ppo", **TINY)
    learner = build_learner(config, plans_of(config)[0], Resources(CPU, 1, 1, 1))
    rollout: Any = SimpleNamespace(device=torch.device("cuda"))
    with pytest.raises(InputError, match="--precision is float32 but the device is a GPU; accepted: auto, bfloat16"):
        accelerate(learner.algorithm, rollout, "float32")


def test_run_in_bfloat16_resumes_with_the_same_weights(tmp_path: Path):
    def weights(name: str, *steps: int) -> bytes:
        folder = tmp_path / name
        for index, count in enumerate(steps):
            train("minimaze", "ppo", run=folder, steps=count, precision="bfloat16", resume=index > 0, **TINY)
        checkpoint = latest_checkpoint(folder / "checkpoints" / "member0")
        return b"".join(value.numpy().tobytes() for _, value in sorted(checkpoint.tensors.items()))

    rollout = make_config("minimaze", "ppo", **TINY)
    size = rollout.envs * rollout.rollout_steps
    assert weights("whole", 2 * size) == weights("resumed", size, 2 * size)
