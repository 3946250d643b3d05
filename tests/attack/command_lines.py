"""Attack: random command lines of real verbs and flags with valid, invalid and meaningless values."""

import random
from collections.abc import Iterator

from expgen.cli.main import VERBS

VALUES = [
    "0", "1", "-1", "2", "7", "1e3", "1.5", "nan", "inf", "-inf", "1e400", "99999999999999999999", "", " ", "x",
    "--", "-", "all", "0:5", "5,6", "5,5", "0:0", "٣", "\x1b[31m", "a\nb", "run", "nowhere", "run/config.json",
    "run/scores.csv", "/dev/null", ".", "..", "minimaze", "maze", "procgen:nothing", "gymnasium:CartPole-v1",
    "gymnasium:os:X", "envpool:X", "ppo", "maxent", "expgen", "leep", "cpu", "cuda", "cuda:99", "auto", "true",
    "smoke", "paper", "train", "test", "member0", "explorer", "random", "s3://nowhere/run", "memory://x",
    "file:///nowhere", "out.html", "out.gif", "out.txt", "table-1", "test_25m", "local", "ray", "majority",
    "leader", "direction", "minimaze/expgen", "minimaze/ppo", "=1+1", "<b>", "%s", "{}", "x" * 5000,
]  # fmt: skip
FLAGS = [
    "--algo", "--env", "--option", "--preset", "--run", "--resume", "--take-over", "--device", "--processes",
    "--hang-seconds", "--levels", "--test-levels", "--seed", "--members", "--steps", "--envs", "--rollout-steps",
    "--minibatches", "--epochs", "--gamma", "--clip", "--features", "--memory", "--eval-every", "--eval-episodes",
    "--checkpoint-seconds", "--average", "--split", "--episodes", "--scores", "--learner", "--min-agree", "--alpha",
    "--vote", "--once", "--fallback", "--agreement", "--weights", "--level", "--out", "--fps", "--title",
    "--constants", "--resamples", "--scale", "--list", "--quorums", "--alphas", "--nodes", "--gpus", "--cpus",
    "--hours", "--json", "--seconds", "--learners", "--import", "--help", "--debugg", "--no-such-flag",
    "--explorer-steps", "--explorer-envs", "--jobs",
]  # fmt: skip
SMALL = ["--preset", "smoke", "--device", "cpu", "--steps", "4096"]  # training ends soon


def command_lines(rng: random.Random) -> Iterator[list[str]]:
    """Yield command lines without end, none with a Ray cluster, which would take too long."""
    verbs = [verb for verb in VERBS if verb != "bench"]
    while True:
        verb = rng.choice([*verbs, "train", "evaluate", "fly", ""])
        words = [verb]
        for _ in range(rng.randrange(6)):
            kind = rng.random()
            if kind < 0.6:
                words += [rng.choice(FLAGS), rng.choice(VALUES)]
            elif kind < 0.8:
                words.append(rng.choice(VALUES))
            else:
                words.append(rng.choice(FLAGS))
        if verb in ("train", "reproduce"):
            words += SMALL if verb == "train" else ["--scale", "smoke", "--device", "cpu"]
        if "ray" not in words:
            yield words
