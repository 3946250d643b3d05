"""All attacks, their number of tries, and the table of results."""

import itertools
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import expgen
from expgen.provenance import commit
from tests.attack import bad_folders, command_lines, hostile_runs, kills, stores, wrong_calls
from tests.attack.sandbox import flaw_in, run_command, run_forked

QUICK = ["evaluate", "status"]  # verbs
Try = tuple[str, Callable[[], str]]  # description, and a function that returns what is wrong with the outcome


@dataclass
class Result:
    """Results of one kind of attack."""

    name: str
    tries: int = 0
    survived: int = 0
    seconds: float = 0.0
    flaws: list[str] = field(default_factory=list)


def good_run(folder: Path) -> Path:
    """Train a small population to attack."""
    settings: dict[str, Any] = {**kills.SETTINGS, "steps": 64, "eval_every": 32, "eval_episodes": 2}
    part = {name: settings[name] for name in ("steps", "rollout_steps", "minibatches", "epochs", "features")}
    explorer = {f"explorer_{name}": value for name, value in part.items()}
    expgen.train(run=folder, algo="expgen", members=2, min_agree=1, quiet=True, **settings, **explorer)
    return folder


def _hostile(scratch: Path, rng: random.Random, is_short: bool) -> Iterator[Try]:
    run = good_run(scratch / "good")
    ways = hostile_runs.named()
    tried = [(name, ways[name], verb) for name in ways for verb in hostile_runs.VERBS]
    tried = [one for one in tried if one[2] != "report" or one[0].endswith((".csv", "config.json"))]
    if is_short:
        tried = [(name, ways[name], rng.choice(QUICK)) for name in rng.sample(sorted(ways), 25)]
    for name, spoil in itertools.islice(hostile_runs.fuzzed(rng), 5 if is_short else 200):
        tried.append((name, spoil, rng.choice(QUICK if is_short else ["evaluate", "play", "status", "train"])))
    for name, spoil, verb in tried:
        what = f"{verb}: {name}"
        yield what, lambda spoil=spoil, verb=verb: hostile_runs.attack(run, scratch / "try", spoil, verb)


def _stores(scratch: Path, rng: random.Random, is_short: bool) -> Iterator[Try]:
    for number, (name, keys) in enumerate(itertools.islice(stores.stores(rng), 12 if is_short else 150)):
        yield name, lambda keys=keys, number=number: stores.attack(keys, _made(scratch / str(number)))


def _command_lines(scratch: Path, rng: random.Random, is_short: bool) -> Iterator[Try]:
    good_run(scratch / "run")
    for words in itertools.islice(command_lines.command_lines(rng), 8 if is_short else 300):
        yield " ".join(words)[:100], lambda words=words: flaw_in(run_command(words, scratch, interrupt_after=30.0))


def _kills(scratch: Path, rng: random.Random, is_short: bool) -> Iterator[Try]:
    killed = kills.KilledRun(scratch)
    ways = [kills.kill_at_any_moment, kills.kill_while_writing, kills.kill_while_starting]
    counts = [2, 3, 1] if is_short else [40, 40, 20]
    moments = [way for way, count in zip(ways, counts, strict=True) for _ in range(count)]
    rng.shuffle(moments)
    for way in moments:
        yield way.__name__.replace("_", " "), lambda way=way: way(killed, rng)
    yield "resumed to its end", killed.finish


def _folders(scratch: Path, rng: random.Random, is_short: bool) -> Iterator[Try]:
    ways = list(bad_folders.WAYS)[:1] if is_short else list(bad_folders.WAYS)
    for number, name in enumerate(ways * (1 if is_short else 6)):
        yield name, lambda name=name, number=number: bad_folders.WAYS[name](_made(scratch / str(number)), rng)


def _wrong_calls(scratch: Path, rng: random.Random, is_short: bool) -> Iterator[Try]:
    expgen.load_agent("minimaze/ppo")

    def attempt(call: wrong_calls.Call) -> str:
        def run() -> int:
            print(wrong_calls.flaw_of(call, scratch))
            return 0

        outcome = run_forked(run, scratch)
        return flaw_in(outcome) or outcome.out.strip().rpartition("\n")[2]

    for call in itertools.islice(wrong_calls.calls(rng), 25 if is_short else 400):
        yield str(call), lambda call=call: attempt(call)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


ATTACKS: dict[str, Callable[[Path, random.Random, bool], Iterator[Try]]] = {
    "hostile run folders": _hostile,
    "hostile stores": _stores,
    "random command lines": _command_lines,
    "kills": _kills,
    "bad folders": _folders,
    "wrong calls": _wrong_calls,
}


def run_all(names: list[str], is_short: bool, seed: int) -> list[Result]:
    """Run every try of the attacks `names`; print each failure at once."""
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core: a fork would lose threads
    results = []
    for name in names:
        result, began = Result(name), time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            os.chmod(scratch, 0o755)
            for what, attempt in ATTACKS[name](Path(scratch), random.Random(f"{seed} {name}"), is_short):
                flaw = attempt()
                result.tries += 1
                result.survived += not flaw
                if flaw:
                    result.flaws.append(f"{what}: {flaw}")
                    print(f"{name}: {result.flaws[-1]}", file=sys.stderr, flush=True)
        result.seconds = time.monotonic() - began
        results.append(result)
    return results


def as_text(results: list[Result]) -> str:
    """Return the table for a terminal."""
    rows = [f"{one.name:24}{one.tries:>8}{one.survived:>10}{one.seconds:>9.0f} s" for one in results]
    return "\n".join([f"{'attack':24}{'tries':>8}{'survived':>10}{'time':>11}", *rows])


def as_markdown(results: list[Result]) -> str:
    """Return the page in docs/."""
    rows = "\n".join(f"| {one.name} | {one.tries} | {one.survived} | {one.seconds:.0f} s |" for one in results)
    flaws = "\n".join(f"- {one.name}: {flaw}" for one in results for flaw in one.flaws)
    return PAGE.format(date=datetime.now(UTC).strftime("%Y-%m-%d"), commit=commit(), rows=rows, flaws=flaws or "None.")


PAGE = """# What survives an attack

`make attack` attacks expgen on this machine (`scripts/attack`, `tests/attack`); the tests run a short form of
it. Last run on {date} at commit {commit}, on one CPU core:

| attack | tries | survived | time |
|---|---|---|---|
{rows}

A try survives if the command ends in time with the right status and at most one line of error that the user can act on
(no traceback, no "failed: SomeError"), uses little memory, writes nothing outside its folder, imports no module of the
attacker and prints no control characters.

- **Hostile run folders**: every way in `tests/attack/hostile_runs.py` (modules, billions of members, networks of
  terabytes, paths out of the folder, pipes, devices, links, deeply nested headers and JSON, NaN weights, impossible
  metadata), opened by `evaluate`, `play`, `status`, `train --resume` and, if it reads the file, `report`; then files
  damaged at random.
- **Hostile stores**: `fetch` from storage with keys and lists of files outside the folder, and with damaged ones.
- **Random command lines**: all verbs except `bench`, and flags with valid, invalid and meaningless values.
- **Kills**: SIGKILL, SIGTERM, SIGINT and SIGHUP at random moments of training and of a command's first three seconds,
  and SIGKILL in the middle of the n-th write. After each, no checkpointed step is lost; each run ends with weights
  bit-equal to those of an undisturbed run.
- **Bad folders**: deleted, full or read-only during training: one line and status 1, and the run resumes when the
  folder is writable again. A report on a full disk leaves no files.
- **Wrong calls**: odd values for every argument of the main public functions; each raises a one-line error or works.

Failures:

{flaws}
"""
