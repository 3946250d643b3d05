"""Methods: labels, order and parsing of settings."""

import pytest

from expgen.evaluation.scores import count_of, read_settings
from expgen.report.methods import Method, number_of


@pytest.mark.parametrize(
    ("method", "label"),
    [
        (Method("expgen"), "ExpGen-PPO"),
        (Method("expgen", (("fallback", "random"),)), "Ensemble + random"),
        (Method("expgen", (("fallback", "random"), ("min_agree", "3"))), "Ensemble + random (min agree 3)"),
        (Method("maxent", (("end_value", "1"), ("once", "True"))), "maxEnt (end value 1, once)"),
        (Method("mine"), "mine"),
    ],
)
def test_method_labels_are_the_papers_with_settings_in_brackets(method: Method, label: str) -> None:
    assert method.label == label


def test_methods_sort_in_paper_order_and_variants_by_value() -> None:
    levels = [Method("ppo", (("levels", value),)) for value in ("500", "1000", "50")]
    methods = [Method("mine"), Method("expgen"), *levels, Method("ppo"), Method("random")]
    assert [method.label for method in sorted(methods, key=lambda method: method.rank)] == [
        "random actions", "PPO", "PPO (levels 50)", "PPO (levels 500)", "PPO (levels 1000)", "ExpGen-PPO", "mine",
    ]  # fmt: skip


def test_settings_are_parsed_as_numbers() -> None:
    assert read_settings("leader=3 word min_agree=2=1") == {"leader": "3", "min_agree": "2=1"}
    assert [number_of(text) for text in ("0.5", "50M", "4k", "abc", "")] == [0.5, 50e6, 4e3, 0, 0]
    assert [count_of(text) for text in ("12", "-1", "1.5", "", "9" * 10)] == [12, 0, 0, 0, 0]
    assert Method("ppo").is_default and not Method("ppo", (("a", "1"),)).is_default
