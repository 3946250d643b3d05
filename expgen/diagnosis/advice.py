"""From measurements to words: whether ExpGen helps here, why or why not, and what to change.

Two means differ where their distance is more than their 95 % intervals' half widths, added as independent errors are.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from expgen.diagnosis.measure import NEAR, Measurements, Play
from expgen.evaluation.evaluate import Evaluation
from expgen.exploration.explore import Mean

APART = 0.05  # share of members by which agreement near success must be above that elsewhere
RARELY, NEARLY_ALWAYS = 0.1, 0.9  # shares of the votes
ALL_NEW = 0.9  # share of random actions' steps that show a new frame, from which on novelty tells nothing


class Finding(NamedTuple):
    """One thing that was found, and what to change because of it, if anything."""

    about: str
    what: str
    change: str = ""


def findings(measured: Measurements) -> list[Finding]:
    """The verdict first, then what it rests on."""
    parts = [*_gap(measured), *_agreement(measured), *_coverage(measured), *_explorer_alone(measured)]
    return [_verdict(measured, parts), *parts]


def differ(one: Evaluation | Mean, other: Evaluation | Mean) -> bool:
    """Whether the mean of `one` is above that of `other` by more than chance explains."""
    half = math.hypot(one.ci_high - one.ci_low, other.ci_high - other.ci_low) / 2
    return _value(one) - _value(other) > half


def _verdict(measured: Measurements, parts: list[Finding]) -> Finding:
    about, split = "verdict", measured.judged
    member, agent = measured.of("member", split), measured.of("agent", split)
    learnt, chance = measured.of("member", "train"), measured.of("random", "train")
    if member is None or learnt is None or chance is None:
        return Finding(about, "an explorer alone: there are no members whose generalisation could be judged")
    if not differ(learnt.evaluation, chance.evaluation):
        what = f"too early to say: a member gets {_told(learnt)} on its training levels, random actions {_told(chance)}"
        return Finding(about, what, "train longer (--steps), or look at the reward: nothing was learnt yet")
    if split == "train":
        what = "cannot be judged: no levels are left unseen"
        return Finding(about, what, "train on a part of the levels (--levels COUNT)")
    if not differ(learnt.evaluation, member.evaluation):
        what = f"ExpGen has nothing to gain here: a member alone gets {_told(member)} on unseen levels"
        what += f", as on those it trained on ({_told(learnt)})"
        if agent and differ(member.evaluation, agent.evaluation):
            return Finding(
                about, f"{what}; the agent gets {_told(agent)}, for exploring only costs", "play a member alone"
            )
        return Finding(about, what)
    if agent is None:
        reasons = [part.what for part in parts if part.about == "coverage" and part.change]
        if reasons:
            return Finding(about, f"members overfit, yet ExpGen would hardly help: {reasons[0]}")
        return Finding(about, "members overfit, and ExpGen may help", "train a population: --algo expgen")
    pair = f"{_told(agent)} on unseen levels, a member alone {_told(member)}"
    if differ(agent.evaluation, member.evaluation):
        return Finding(about, f"ExpGen helps here: {pair}")
    reasons = [part.what for part in parts if part.change and part.about in ("agreement", "coverage")]
    because = f", because {'; and '.join(reasons)}" if reasons else "; members and explorer look sound"
    change = "" if reasons else "play more --episodes, or let expgen tune pick the quorum"
    return Finding(about, f"ExpGen does not help here: {pair}{because}", change)


def _gap(measured: Measurements) -> Iterator[Finding]:
    for player in ("member", "agent"):
        train, test = measured.of(player, "train"), measured.of(player, "test")
        if train is None or test is None:
            continue
        who = {"member": "a member alone", "agent": "the agent"}[player]
        lost = train.evaluation.mean_return - test.evaluation.mean_return
        apart = f"{abs(lost):.2f} {'less' if lost > 0 else 'more'}"
        what = f"{who} gets {_told(train)} on training levels and {_told(test)} on unseen ones, {apart}"
        yield Finding("gap", what)


def _agreement(measured: Measurements) -> Iterator[Finding]:
    votes, agent = measured.votes, measured.of("agent", measured.judged)
    if votes is None:
        return
    rate, explored = votes.counts.agreement_rate, votes.counts.explored_share
    votes_say = f"{votes.quorum} of {votes.members} members agreed in {rate:.0%} of the votes"
    if agent is None:  # members that do not vote were asked
        yield Finding("agreement", votes_say)
    elif rate > NEARLY_ALWAYS:
        change = "raise --min-agree, or make members differ more (--member-levels bootstrap, more --members)"
        yield Finding("agreement", f"{votes_say}, so that the explorer hardly ever acts", change)
    elif rate < RARELY:
        yield Finding("agreement", f"{votes_say}, so that members hardly ever act", "lower --min-agree")
    else:
        yield Finding("agreement", f"{votes_say}; {explored:.0%} of the steps were explored")
    if math.isnan(votes.near) or math.isnan(votes.far):
        yield Finding("agreement", "no episode was solved, so that agreement near success is unknown")
        return
    shares = f"{votes.near:.0%} of the members agree in the last {NEAR} steps before success, {votes.far:.0%} elsewhere"
    if votes.near - votes.far < APART:
        change = "train members longer, or on fewer levels each (--member-levels bootstrap), so that they err apart"
        yield Finding(
            "agreement", f"members agree as much where they are wrong as where they are right: {shares}", change
        )
    else:
        yield Finding("agreement", shares)


def _coverage(measured: Measurements) -> Iterator[Finding]:
    explorer, chance = measured.of("explorer", measured.judged), measured.of("random", measured.judged)
    if chance is None or chance.exploration is None:
        return
    steps = sum(row.episode.length for row in chance.exploration.episodes)
    new = sum(row.novelty for row in chance.exploration.episodes) / steps
    if new > ALL_NEW:
        what = f"almost every frame is new whatever one does ({new:.0%} of the steps of random actions)"
        change = "use another view of the game, without what moves by itself, or another reward for the explorer"
        yield Finding("coverage", f"{what}, so that r_I pays for staying alive and not for exploring", change)
    if explorer is None or explorer.exploration is None:
        return
    found, by_chance = explorer.exploration.novelty, chance.exploration.novelty
    what = f"the explorer sees {found.value:.0f} new frames an episode, random actions {by_chance.value:.0f}"
    if share := explorer.exploration.oracle_share:
        what += f", and covers {share.value:.0%} of what an oracle does"
    if differ(found, by_chance):
        yield Finding("coverage", what)
    else:
        flag = "--explorer-" if measured.of("member", measured.judged) else "--"  # of its training
        change = f"train the explorer longer ({flag}steps), or keep its episodes' ends from counting as losses"
        yield Finding("coverage", f"the explorer finds no more than chance does: {what}", f"{change} ({flag}end-value)")


def _explorer_alone(measured: Measurements) -> Iterator[Finding]:
    explorer, agent = (measured.of(player, measured.judged) for player in ("explorer", "agent"))
    if explorer and agent and differ(explorer.evaluation, agent.evaluation):
        what = f"the explorer alone gets {_told(explorer)}, more than the agent with its members"
        yield Finding("explorer", what, "play it alone (--learner explorer), or raise --min-agree")


def _told(play: Play) -> str:
    found = play.evaluation
    return f"{found.mean_return:.2f} ({found.ci_low:.2f} to {found.ci_high:.2f})"


def _value(mean: Evaluation | Mean) -> float:
    return mean.mean_return if isinstance(mean, Evaluation) else mean.value
