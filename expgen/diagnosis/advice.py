"""From measurements to words: whether ExpGen helps here, why or why not, and what to change.

Two means differ where their distance is more than their 95 % intervals' half widths, added as independent errors are.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from expgen.diagnosis.measure import NEAR, Measurements, Play, Player
from expgen.evaluation.evaluate import Evaluation
from expgen.exploration.explore import Mean

APART = 0.05  # share of members by which agreement near success must be above that elsewhere
RARELY, NEARLY_ALWAYS = 0.1, 0.9  # shares of the votes
ALL_NEW = 0.9  # share of random actions' steps that show a new frame, from which on novelty tells nothing


Told = tuple[str, ...]  # what was found, and what to change


class Finding(NamedTuple):
    """One thing that was found, and what to change because of it, if anything."""

    about: str
    what: str
    change: str = ""


def findings(measured: Measurements) -> list[Finding]:
    """The verdict first, then what it rests on."""
    rules = {"gap": _gap, "agreement": _agreement, "coverage": _coverage, "explorer": _explorer_alone}
    parts = [Finding(about, *told) for about, rule in rules.items() for told in rule(measured)]
    return [Finding("verdict", *_verdict(measured, parts)), *parts]


def differ(one: Evaluation | Mean, other: Evaluation | Mean) -> bool:
    """Whether the mean of `one` is above that of `other` by more than chance explains."""
    half = math.hypot(one.ci_high - one.ci_low, other.ci_high - other.ci_low) / 2
    return _value(one) - _value(other) > half


def _verdict(measured: Measurements, parts: list[Finding]) -> Told:
    split = measured.judged
    member, agent = measured.of("member", split), measured.of("agent", split)
    learnt, chance = measured.of("member", "train"), measured.of("random", "train")
    if member is None or learnt is None or chance is None:
        return ("an explorer alone: there are no members whose generalisation could be judged",)
    if not differ(learnt.evaluation, chance.evaluation):
        what = f"too early to say: a member gets {_told(learnt)} on its training levels, random actions {_told(chance)}"
        return what, "train longer (--steps), or look at the reward: nothing was learnt yet"
    if split == "train":
        return "cannot be judged: no levels are left unseen", "train on a part of the levels (--levels COUNT)"
    if not differ(learnt.evaluation, member.evaluation):
        what = f"ExpGen has nothing to gain here: a member alone gets {_told(member)} on unseen levels"
        what += f", as on those it trained on ({_told(learnt)})"
        if agent and differ(member.evaluation, agent.evaluation):
            return f"{what}; the agent gets {_told(agent)}, for exploring only costs", "play a member alone"
        return (what,)
    if agent is None:
        for part in parts:
            if part.about == "coverage" and part.change:
                return (f"members overfit, yet ExpGen would hardly help: {part.what}",)
        return "members overfit, and ExpGen may help", "train a population: --algo expgen"
    pair = f"{_told(agent)} on unseen levels, a member alone {_told(member)}"
    if differ(agent.evaluation, member.evaluation):
        return (f"ExpGen helps here: {pair}",)
    reasons = [part.what for part in parts if part.change and part.about in ("agreement", "coverage")]
    if reasons:
        return (f"ExpGen does not help here: {pair}, because {'; and '.join(reasons)}",)
    what = f"ExpGen does not help here: {pair}; members and explorer look sound"
    return what, "play more --episodes, or let expgen tune pick the quorum"


def _gap(measured: Measurements) -> Iterator[Told]:
    who: dict[Player, str] = {"member": "a member alone", "agent": "the agent"}
    for player, words in who.items():
        train, test = measured.of(player, "train"), measured.of(player, "test")
        if train and test:
            lost = train.evaluation.mean_return - test.evaluation.mean_return
            apart = f"{abs(lost):.2f} {'less' if lost > 0 else 'more'}"
            yield (f"{words} gets {_told(train)} on training levels and {_told(test)} on unseen ones, {apart}",)


def _agreement(measured: Measurements) -> Iterator[Told]:
    votes = measured.votes
    if votes is None:
        return
    rate, explored = votes.counts.agreement_rate, votes.counts.explored_share
    votes_say = f"{votes.quorum} of {votes.members} members agreed in {rate:.0%} of the votes"
    if measured.of("agent", measured.judged) is None:  # members that do not vote were asked
        yield (votes_say,)
    elif rate > NEARLY_ALWAYS:
        change = "raise --min-agree, or make members differ more (--member-levels bootstrap, more --members)"
        yield f"{votes_say}, so that the explorer hardly ever acts", change
    elif rate < RARELY:
        yield f"{votes_say}, so that members hardly ever act", "lower --min-agree"
    else:
        yield (f"{votes_say}; {explored:.0%} of the steps were explored",)
    shares = f"{votes.near:.0%} of the members agree in the last {NEAR} steps before success, {votes.far:.0%} elsewhere"
    if math.isnan(votes.near) or math.isnan(votes.far):
        yield ("no episode was solved, so that agreement near success is unknown",)
    elif votes.near - votes.far < APART:
        change = "train members longer, or on fewer levels each (--member-levels bootstrap), so that they err apart"
        yield f"members agree as much where they are wrong as where they are right: {shares}", change
    else:
        yield (shares,)


def _coverage(measured: Measurements) -> Iterator[Told]:
    explorer, chance = measured.of("explorer", measured.judged), measured.of("random", measured.judged)
    if chance is None or chance.exploration is None:
        return
    steps = sum(row.episode.length for row in chance.exploration.episodes)
    new = sum(row.novelty for row in chance.exploration.episodes) / steps
    if new > ALL_NEW:
        what = f"almost every frame is new whatever one does ({new:.0%} of the steps of random actions)"
        change = "use another view of the game, without what moves by itself, or another reward for the explorer"
        yield f"{what}, so that r_I pays for staying alive and not for exploring", change
    if explorer is None or explorer.exploration is None:
        return
    found, by_chance = explorer.exploration.novelty, chance.exploration.novelty
    what = f"the explorer sees {found.value:.0f} new frames an episode, random actions {by_chance.value:.0f}"
    if share := explorer.exploration.oracle_share:
        what += f", and covers {share.value:.0%} of what an oracle does"
    if differ(found, by_chance):
        yield (what,)
    else:
        flag = "--explorer-" if measured.of("member", measured.judged) else "--"  # of its training
        change = f"train the explorer longer ({flag}steps), or keep its episodes' ends from counting as losses"
        yield f"the explorer finds no more than chance does: {what}", f"{change} ({flag}end-value)"


def _explorer_alone(measured: Measurements) -> Iterator[Told]:
    explorer, agent = (measured.of(player, measured.judged) for player in ("explorer", "agent"))
    if explorer and agent and differ(explorer.evaluation, agent.evaluation):
        what = f"the explorer alone gets {_told(explorer)}, more than the agent with its members"
        yield what, "play it alone (--learner explorer), or raise --min-agree"


def _told(play: Play) -> str:
    found = play.evaluation
    return f"{found.mean_return:.2f} ({found.ci_low:.2f} to {found.ci_high:.2f})"


def _value(mean: Evaluation | Mean) -> float:
    return mean.mean_return if isinstance(mean, Evaluation) else mean.value
