"""Parser, types of values and flags of configs."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from expgen.cli.flags import Parser, add_config_flags, folder, list_of, location, parse_options, whole_number
from expgen.errors import InputError
from expgen.settings import setting
from expgen.storage.store import StorageOutage


@dataclass(frozen=True)
class Inner:
    depth: int = setting(1, "levels below")


@dataclass(frozen=True)
class Sample:
    steps: int = setting(100, "how many, 5% less")
    rate: float = setting(0.5, "how fast")
    order: Literal["up", "down"] = setting("up", "which way")
    is_loud: bool = setting(True, "say so")
    name: str = setting("x", "called")
    hidden: str = setting("y", "not a flag")
    inner: Inner = Inner()


@pytest.fixture
def parser() -> Parser:
    parser = Parser("sample")
    add_config_flags(parser, Sample(), "sample", leave_out=("hidden",))
    return parser


def test_flags_that_are_not_given_are_absent(parser: Parser) -> None:
    assert vars(parser.parse_args([])) == {}
    words = ["--steps", "2k", "--rate", "1e-3", "--order", "down", "--no-is-loud", "--name", "z"]
    values = {"steps": 2000, "rate": 0.001, "order": "down", "is_loud": False, "name": "z"}
    assert vars(parser.parse_args(words)) == values


def test_help_has_every_field_with_its_default(parser: Parser) -> None:
    text = " ".join(parser.format_help().split())
    assert "--steps N how many, 5% less (default 100)" in text and "--order {up,down} which way (default up)" in text
    assert "--hidden" not in text and "--depth" not in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--steps", "many"], "^--steps is 'many'; accepted: a whole number$"),
        (["--steps", "1.5"], "^--steps is '1.5'; accepted: a whole number$"),
        (["--rate", "fast"], "^--rate is 'fast'; accepted: a number$"),
        (["--order", "left"], "^--order is 'left'; accepted: up, down$"),
        (["--step", "1"], "unrecognized arguments: --step"),
        (["--hidden", "1"], "unrecognized arguments: --hidden"),
        (["--steps"], "--steps: expected one argument; see expgen sample --help"),
    ],
)
def test_bad_flags_are_input_errors(parser: Parser, words: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parser.parse_args(words)


def test_flag_has_the_type_of_its_default_and_shows_it_in_help() -> None:
    parser = Parser("sample")
    parser.add("name", "who", nargs="?")
    parser.add("--count", "how many", 3)
    parser.add("--seconds", "how long", 10.0)
    parser.add("--order", "which way", "up", choices=("up", "down"))
    parser.add("--loud", "say so", False)
    parser.add("--word", "one of several", [])
    parser.add("--sizes", "how large", (1, 4), type=list_of(whole_number))
    parser.add("--file", "where to")
    text = " ".join(parser.format_help().split())
    for line in ("how many (default 3)", "how long (default 10)", "which way (default up)", "how large (default 1,4)"):
        assert line in text
    assert text.count("(default") == 4
    usual = {"name": None, "count": 3, "seconds": 10.0, "order": "up", "loud": False, "word": [], "sizes": (1, 4)}
    assert vars(parser.parse_args([])) == {**usual, "file": None}
    words = [
        "x",
        "--loud",
        *["--count=2k", "--seconds=1", "--order=down", "--word=a", "--word=b", "--sizes=7", "--file=f"],
    ]
    asked = {"name": "x", "count": 2000, "seconds": 1.0, "order": "down", "loud": True, "word": ["a", "b"]}
    assert vars(parser.parse_args(words)) == {**asked, "sizes": (7,), "file": "f"}
    with pytest.raises(InputError, match="--count is 'few'; accepted: a whole number"):
        parser.parse_args(["--count", "few"])


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *[("25", 25), ("25e6", 25_000_000), ("25M", 25_000_000), ("2.5k", 2500), ("1.5K", 1500), ("1_000", 1000)],
        *[("-3", -3), ("0", 0)],
    ],
)
def test_whole_number_parses_suffixes_and_exponents(text: str, number: int) -> None:
    assert whole_number(text) == number


def test_large_whole_numbers_are_exact() -> None:
    assert whole_number(str(2**63 + 1)) == 2**63 + 1


@pytest.mark.parametrize("text", ["", "x", "1.5", "nan", "inf", "1e400", "k", "--", "1 2"])
def test_whole_number_rejects_other_text(text: str) -> None:
    with pytest.raises(ValueError):
        whole_number(text)
    with pytest.raises(InputError):
        parser = Parser("sample")
        parser.add_argument("number", type=whole_number)
        parser.parse_args(["--", text])


def test_options_are_parsed_as_bools_numbers_or_text() -> None:
    pairs = ["texture=0", "goal-reward=2.5", "hidden=True", "center_agent=false", "mode=hard", "note=a=b", "empty="]
    expected: dict[str, Any] = {"texture": 0, "goal_reward": 2.5, "hidden": True, "center_agent": False}
    assert parse_options(pairs) == {**expected, "mode": "hard", "note": "a=b", "empty": ""}
    assert type(parse_options(["texture=0"])["texture"]) is int


@pytest.mark.parametrize("pair", ["texture", "=3", ""])
def test_option_without_value_is_rejected(pair: str) -> None:
    with pytest.raises(InputError, match=r"--option is .*; accepted: NAME=VALUE"):
        parse_options([pair])


def test_parser_help_exits_with_status_0(parser: Parser) -> None:
    assert isinstance(parser, argparse.ArgumentParser)
    with pytest.raises(SystemExit) as end:
        parser.parse_args(["--help"])
    assert end.value.code == 0


def test_url_is_rejected_as_folder(refused) -> None:
    line = refused("tune", "s3://bucket/run")
    assert line == "expgen: RUN is 's3://bucket/run'; accepted: a file or folder of this machine"
    assert "--out is 'gs://bucket/out'; accepted: a file" in refused("report", "scores.csv", "--out", "gs://bucket/out")


def test_memory_url_is_rejected_as_run(refused) -> None:
    line = refused("train", "--run", "memory://run")
    assert "--run: memory://run is lost with the process; accepted: a folder, or a URL" in line


@pytest.mark.parametrize("text", ["", "a\0b"])
def test_text_that_is_no_path_is_rejected(text: str, refused) -> None:
    assert f"--run is {text!r}; accepted: a folder or URL" in refused("train", "--run", text)
    assert f"RUN_OR_AGENT is {text!r}; accepted: a folder, file or URL" in refused("evaluate", text)
    assert f"--out is {text!r}; accepted: a file or folder of this machine" in refused("report", "x", "--out", text)
    assert folder(".") == location(".") == Path(".")


def test_storage_that_cannot_connect_is_a_failure(monkeypatch: pytest.MonkeyPatch, command) -> None:
    def fail(url: str) -> None:
        raise StorageOutage(f"cannot open {url}")

    monkeypatch.setattr("expgen.cli.flags.Store", fail)
    outcome = command("status", "ftp://host/run")
    assert (outcome.status, outcome.err) == (1, "expgen: RUNS: cannot open ftp://host/run\n")


@pytest.mark.parametrize("kind", [folder, location])
def test_too_long_file_name_is_rejected(kind: Any) -> None:
    longest = "ä" * 127 + "x"  # 255 bytes
    assert kind(f"runs/{longest}").name == longest
    with pytest.raises(InputError, match="ä… is a name of 256 bytes; accepted: at most 255"):
        kind("ä" * 128 + "/maze")
