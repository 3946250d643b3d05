"""Rules that turn measurements into findings: whether ExpGen helps, why or why not, and what to change.

One mean is above another if it exceeds it by more than √(h₁² + h₂²), with h the half widths of their 95 % intervals.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from expgen.diagnosis.measure import NEAR, Measurements, Play, Player
from expgen.evaluation.evaluate import Evaluation
from expgen.exploration.explore import Mean

MIN_DIFFERENCE = 0.05  # by which the share of agreeing members must be higher near success than elsewhere
RARELY, NEARLY_ALWAYS = 0.1, 0.9  # shares of the votes
ALL_NEW = 0.9  # share of new frames under random actions above which novelty carries no information


class Finding(NamedTuple):
    """One finding, and the change that it suggests, if any."""

    about: str
    what: str
    change: str = ""


def findings(measured: Measurements) -> list[Finding]:
    """Return the verdict, followed by the findings that it is based on."""
    parts = [*_gap(measured), *_agreement(measured), *_coverage(measured), *_explorer(measured)]
    what, change = _verdict(measured, parts)
    return [Finding("verdict", what, change), *parts]


def is_above(one: Evaluation | Mean, other: Evaluation | Mean) -> bool:
    """Whether the mean of `one` is significantly above that of `other`."""
    half = math.hypot(one.ci_high - one.ci_low, other.ci_high - other.ci_low) / 2
    return _value(one) - _value(other) > half


def _verdict(measured: Measurements, parts: list[Finding]) -> tuple[str, str]:
    """Return the verdict and the change that it suggests."""
    split = measured.main_split
    member, agent = measured.play("member", split), measured.play("agent", split)
    trained, chance = measured.play("member", "train"), measured.play("random", "train")
    if member is None or trained is None or chance is None:
        return "explorer only: there are no members whose generalisation could be measured", ""
    if not is_above(trained.evaluation, chance.evaluation):
        what = f"too early: a member gets {_score(trained)} on its training levels, random actions {_score(chance)}"
        return what, "train longer (--steps) or check the reward: nothing has been learned yet"
    if split == "train":
        return "no verdict: there are no unseen levels", "train on a part of the levels (--levels COUNT)"
    if not is_above(trained.evaluation, member.evaluation):
        what = f"ExpGen has nothing to gain here: a member alone gets {_score(member)} on unseen levels"
        what += f" and {_score(trained)} on its training levels"
        if agent and is_above(member.evaluation, agent.evaluation):
            return f"{what}; exploration lowers the agent's score to {_score(agent)}", "play a member alone"
        return what, ""
    if agent is None:
        for part in parts:
            if part.about == "coverage" and part.change:
                return f"members overfit, but ExpGen is unlikely to help: {part.what}", ""
        return "members overfit, so ExpGen may help", "train a population: --algo expgen"
    scores = f"{_score(agent)} on unseen levels, a member alone {_score(member)}"
    if is_above(agent.evaluation, member.evaluation):
        return f"ExpGen helps here: {scores}", ""
    reasons = [part.what for part in parts if part.change and part.about in ("agreement", "coverage")]
    if reasons:
        return f"ExpGen does not help here: {scores}, because {'; and '.join(reasons)}", ""
    what = f"ExpGen does not help here: {scores}; agreement and coverage show no problem"
    return what, "play more --episodes, or select the quorum with expgen tune"


def _gap(measured: Measurements) -> Iterator[Finding]:
    names: dict[Player, str] = {"member": "a member alone", "agent": "the agent"}
    for player, name in names.items():
        train, test = measured.play(player, "train"), measured.play(player, "test")
        if train and test:
            gap = train.evaluation.mean_return - test.evaluation.mean_return
            difference = f"{abs(gap):.2f} {'less' if gap > 0 else 'more'}"
            what = f"{name} gets {_score(train)} on training levels and {_score(test)} on unseen ones, {difference}"
            yield Finding("gap", what)


def _agreement(measured: Measurements) -> Iterator[Finding]:
    votes = measured.votes
    if votes is None:
        return
    rate, explored = votes.counts.agreement_rate, votes.counts.explored_share
    what, change = f"{votes.quorum} of {votes.members} members agreed in {rate:.0%} of the votes", ""
    if measured.play("agent", measured.main_split):  # otherwise the votes decide nothing
        if rate > NEARLY_ALWAYS:
            what += ", so the explorer hardly ever acts"
            change = "raise --min-agree, or make members differ more (--member-levels bootstrap, more --members)"
        elif rate < RARELY:
            what += ", so members hardly ever act"
            change = "lower --min-agree"
        else:
            what += f"; {explored:.0%} of the steps were explored"
    yield Finding("agreement", what, change)
    if math.isnan(votes.near) or math.isnan(votes.far):
        yield Finding("agreement", "no episode was solved, so agreement near success is unknown")
        return
    what = f"{votes.near:.0%} of the members agree in the last {NEAR} steps before success, {votes.far:.0%} elsewhere"
    if votes.near - votes.far < MIN_DIFFERENCE:
        change = "train members longer, or on different levels (--member-levels bootstrap), so that their errors differ"
        yield Finding("agreement", f"agreement does not indicate correct actions: {what}", change)
    else:
        yield Finding("agreement", what)


def _coverage(measured: Measurements) -> Iterator[Finding]:
    explorer, chance = (measured.play(player, measured.main_split) for player in ("explorer", "random"))
    if chance is None or chance.exploration is None:
        return
    steps = sum(row.episode.length for row in chance.exploration.episodes)
    new = sum(row.novelty for row in chance.exploration.episodes) / steps
    if new > ALL_NEW:
        what = f"almost every frame is new, even under random actions ({new:.0%} of their steps)"
        change = "use another view of the game, without autonomous motion, or another reward for the explorer"
        yield Finding("coverage", f"{what}, so r_I rewards survival instead of exploration", change)
    if explorer is None or explorer.exploration is None:
        return
    found, by_chance = explorer.exploration.novelty, chance.exploration.novelty
    what = f"the explorer sees {found.value:.0f} new frames per episode, random actions {by_chance.value:.0f}"
    if share := explorer.exploration.oracle_share:
        what += f", and covers {share.value:.0%} of what an oracle does"
    if is_above(found, by_chance):
        yield Finding("coverage", what)
    else:
        prefix = "--explorer-" if measured.play("member", measured.main_split) else "--"  # of training flags
        change = f"train the explorer longer ({prefix}steps)"
        if not measured.end_value:
            change += f", or give episode ends a value ({prefix}end-value)"
        yield Finding("coverage", f"the explorer finds no more than random actions: {what}", change)


def _explorer(measured: Measurements) -> Iterator[Finding]:
    explorer, agent = (measured.play(player, measured.main_split) for player in ("explorer", "agent"))
    if explorer and agent and is_above(explorer.evaluation, agent.evaluation):
        what = f"the explorer alone gets {_score(explorer)}, more than the agent with its members"
        yield Finding("explorer", what, "play it alone (--learner explorer), or raise --min-agree")


def _score(play: Play) -> str:
    evaluation = play.evaluation
    return f"{evaluation.mean_return:.2f} ({evaluation.ci_low:.2f} to {evaluation.ci_high:.2f})"


def _value(mean: Evaluation | Mean) -> float:
    return mean.mean_return if isinstance(mean, Evaluation) else mean.value
