"""A folder of this machine as a URL, and a real S3 server."""

from collections.abc import Iterator

import pytest

from tests.storage.s3_server import BUCKET, Faults, s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[Faults]:
    pytest.importorskip("s3fs")
    pytest.importorskip("moto")
    with s3_server() as faults:
        yield faults


@pytest.fixture
def bucket(s3: Faults, request: pytest.FixtureRequest) -> Iterator[str]:
    """A place of the test's own on a server that is well when it ends."""
    yield f"s3://{BUCKET}/{request.node.name}"
    s3.delay = s3.refused = 0.0
