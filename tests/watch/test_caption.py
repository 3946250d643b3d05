"""Video frames: caption and timeline."""

import numpy as np

from expgen.watch.record import Recording
from expgen.watch.write import COLORS, caption, captioned_frames


def test_captions_say_who_acted_and_why(mixed: Recording) -> None:
    lines = [caption(mixed, t) for t in range(len(mixed.steps))]
    total = len(lines)
    for t, (line, step) in enumerate(zip(lines, mixed.steps)):
        assert line.startswith(f"{t + 1}/{total}  ·  {step.reason.who}: {mixed.actions.actions[step.action]}")
        assert (f"{sum(step.reason.agrees)} of 4 agree, 3 needed" in line) == bool(step.reason.votes)
    assert lines[-1].endswith("solved" if mixed.solved else "not solved")


def test_captions_name_the_member_and_explain_ignored_consensus(outvoted: Recording) -> None:
    for t, step in enumerate(outvoted.steps):
        line, why = caption(outvoted, t), step.reason
        assert (f", as member {why.member}" in line) == (why.who == "ensemble")
        assert (f"{sum(why.agrees)} of 4 agree, but have acted on this frame" in line) == why.is_set_aside
        assert ("2 needed" in line) == (bool(why.votes) and not why.is_set_aside)


def test_timeline_has_the_colours_of_the_acting_policies(mixed: Recording) -> None:
    *_, last = captioned_frames(mixed, 512)
    for t, step in enumerate(mixed.steps):
        across = int((t + 0.5) * 512 / len(mixed.steps))
        assert tuple(last[-2, across]) == COLORS[step.reason.who]


def test_video_frames_have_even_sides(mixed: Recording) -> None:
    for width in (256, 321):
        frame = next(captioned_frames(mixed, width))
        assert frame.shape[0] % 2 == frame.shape[1] % 2 == 0 and frame.shape[1] in (width, width + 1)


def test_captions_mark_hedged_steps(hedged: Recording) -> None:
    for t, step in enumerate(hedged.steps):
        assert ("hedged" in caption(hedged, t)) == step.reason.is_hedged


def test_long_caption_shrinks_to_fit(outvoted: Recording) -> None:
    names = tuple(f"{'very ' * 12}long {name}" for name in outvoted.actions.actions)
    for recording in (outvoted, outvoted._replace(actions=outvoted.actions._replace(actions=names))):
        *_, frame = captioned_frames(recording, 320)
        words = frame[322:344]  # below the picture, above the timeline
        lit = np.flatnonzero((words > 150).all(2).any(0))
        assert lit.max() < 315  # the end of the line is within the frame
