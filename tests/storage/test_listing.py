"""The list of a snapshot: read back as it was written, or not at all."""

import json

import pytest

from expgen.errors import InputError
from expgen.storage.listing import LIST_NAME, Kept, Listing, object_name, parse, sitting_of, text_of

URL = "s3://bucket/run"
DIGEST = "0123456789abcdef" + "0" * 48
KEPT = Kept(object_name("checkpoints/a/12.safetensors", DIGEST), DIGEST, 1234.5)
LISTING = Listing(3, 17, "0123456789ab", True, 99.25, {"checkpoints/a/12.safetensors": KEPT})


def test_a_list_is_read_back_and_its_name_tells_its_turn() -> None:
    assert parse(text_of(LISTING), URL) == LISTING
    assert LIST_NAME.fullmatch(LISTING.name) and sitting_of(LISTING.name) == 3
    later = [LISTING._replace(push=18), LISTING._replace(push=100), LISTING._replace(sitting=20, push=0)]
    names = [LISTING.name, *(listing.name for listing in later)]
    assert names == sorted(names)


def test_an_object_s_name_carries_the_name_and_the_content_of_its_file() -> None:
    assert KEPT.object == "files/checkpoints/a/12.0123456789abcdef.safetensors"


def test_a_list_whose_writer_died_is_none_wherever_it_was_cut() -> None:
    text = text_of(LISTING)
    assert all(parse(text[:end], URL) is None for end in range(len(text)))
    outer = json.loads(text)
    assert parse(json.dumps({**outer, "body": outer["body"] + " "}).encode(), URL) is None


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", "a/../../outside", ""])
def test_a_list_cannot_name_files_elsewhere(name: str) -> None:
    for files in ({name: KEPT}, {"sitting.json": KEPT._replace(object=name)}):
        with pytest.raises(InputError, match="none of ours"):
            parse(text_of(LISTING._replace(files=files)), URL)


def test_a_whole_list_of_another_format_is_refused() -> None:
    outer = json.loads(text_of(LISTING))
    with pytest.raises(InputError, match=r"s3://bucket/run/lists holds a list that is none of ours \(expgen-list-9\)"):
        parse(json.dumps({**outer, "format": "expgen-list-9"}).encode(), URL)
