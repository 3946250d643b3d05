"""A fake Hugging Face Hub with repositories in memory and the API that push and load use."""

import base64
import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "c" * 40


class Hub:
    """Files by repository and name, and the address of the server."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.url = ""


@contextlib.contextmanager
def hub_server() -> Iterator[Hub]:
    """Run the server inside the `with` block."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words: object) -> None: ...

        def answer(self, status: int, content: bytes = b"{}", **headers: str) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), "X-Repo-Commit": COMMIT, **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def json(self, data: object) -> None:
            self.answer(200, json.dumps(data).encode(), Content_Type="application/json")

        def missing(self, code: str) -> None:
            self.answer(404, b'{"error": "not found"}', X_Error_Code=code)

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path, _, _ = self.path.partition("?")
            parts = path.strip("/").split("/")
            if parts[:2] == ["api", "models"]:
                repo = "/".join(parts[2:4])
                if repo not in hub.files:
                    return self.missing("RepoNotFound")
                siblings = [{"rfilename": name, "size": len(data)} for name, data in hub.files[repo].items()]
                return self.json({"id": repo, "sha": COMMIT, "siblings": siblings, "private": False, "tags": []})
            if "resolve" in parts:
                repo, name = "/".join(parts[:2]), "/".join(parts[4:])
                content = hub.files.get(repo, {}).get(name)
                if content is None:
                    return self.missing("EntryNotFound")
                return self.answer(200, content, ETag=f'"{hashlib.sha256(content).hexdigest()}"')
            return self.json({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = self.path.partition("?")[0].strip("/").split("/")
            repo = "/".join(parts[2:4])
            if parts[-1] == "create":
                asked = json.loads(body)
                repo = f"{asked.get('organization') or 'user'}/{asked['name'].rpartition('/')[2]}"
                hub.files.setdefault(repo, {})
                hub.private[repo] = asked.get("private") is True or asked.get("visibility") == "private"
                return self.json({"url": f"{hub.url}/{repo}", "name": repo, "id": repo})
            if "preupload" in parts:
                files = json.loads(body)["files"]
                return self.json(
                    {"files": [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in files]}
                )
            if "commit" in parts:
                for line in filter(None, body.splitlines()):
                    change = json.loads(line)
                    if change["key"] == "file":
                        value = change["value"]
                        hub.files[repo][value["path"]] = base64.b64decode(value["content"])
                return self.json(
                    {"commitUrl": f"{hub.url}/{repo}/commit/{COMMIT}", "commitOid": COMMIT, "success": True}
                )
            return self.json({})

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
