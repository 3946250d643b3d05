"""A folder on a real S3 server."""

from collections.abc import Iterator

import pytest

from tests.storage.s3_server import BUCKET, UNAVAILABLE, Faults


@pytest.fixture
def bucket(s3: Faults, request: pytest.FixtureRequest) -> Iterator[str]:
    """A URL for one test; the server's faults are reset afterwards."""
    yield f"s3://{BUCKET}/{request.node.name}"
    s3.delay, s3.refused, s3.refusal = 0.0, 0.0, UNAVAILABLE
