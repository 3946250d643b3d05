"""python -m tests.storage.slow_run RUN UPDATES: a small run that is slow on any machine."""

import sys
import time

import torch

from tests.conftest import SmallRun

if __name__ == "__main__":
    torch.set_num_threads(1)
    run, updates = sys.argv[1], int(sys.argv[2])
    SmallRun().train(
        run, updates, algo="ppo", resume=True, eval_every=updates * SmallRun.update_steps,
        on_row=lambda learner, row: time.sleep(0.1),
    )  # fmt: skip
