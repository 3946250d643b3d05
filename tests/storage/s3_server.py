"""A local S3 server (moto's) that can be slow, reject requests or not respond."""

import contextlib
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

BUCKET = "expgen"
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}

UNAVAILABLE, FORBIDDEN = ("503 Service Unavailable", "ServiceUnavailable"), ("403 Forbidden", "AccessDenied")


class Faults:
    """Current faults of the server, and its requests so far."""

    def __init__(self) -> None:
        self.delay = 0.0  # seconds before every answer
        self.refused = 0.0  # share of requests answered with `refusal`
        self.refusal = UNAVAILABLE
        self.requests = self.refusals = 0
        self.random = random.Random(0)

    def wrap(self, app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
        def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            self.requests += 1
            time.sleep(self.delay)
            if self.random.random() < self.refused:
                self.refusals += 1
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                status, code = self.refusal
                start_response(status, [("Content-Type", "application/xml")])
                return [f"<Error><Code>{code}</Code><Message>not now</Message></Error>".encode()]
            return app(environ, start_response)

        return serve


@contextlib.contextmanager
def s3_server() -> Iterator[Faults]:
    """Run the server inside the `with` block; its address is in the environment."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *words: object, **more: object) -> None: ...

    faults = Faults()
    app = faults.wrap(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings = {**ENVIRONMENT, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}"}
    before = {name: os.environ.get(name) for name in settings}
    os.environ |= settings
    try:
        import fsspec

        fsspec.filesystem("s3", skip_instance_cache=True).mkdir(BUCKET)
        yield faults
    finally:
        server.shutdown()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
