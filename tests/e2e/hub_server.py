"""A small stand-in for the Hugging Face Hub: listings by pages, small files from the Hub itself, large ones by a redirect to another host, with the headers that its clients rely on."""

import fnmatch
import hashlib
import json
import urllib.parse

from web import Handler, Server

LARGE = ("*.safetensors", "*.bin", "*.gguf")


def git_id(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def is_large(path):
    return any(fnmatch.fnmatch(path, pattern) for pattern in LARGE)


class Hub(Server):
    """repositories: {"org/name": {"main": {path: bytes}}}. The large files of all lie on `cdn`, another port."""

    def __init__(self):
        super().__init__()
        self.RequestHandlerClass = HubHandler
        self.cdn = Server()
        self.repositories, self.page_size, self.token, self.gated, self.renamed = {}, 1000, None, set(), {}
        self.tokens_seen = []

    def add(self, repository, files, revision="main"):
        self.repositories.setdefault(repository, {})[revision] = files
        for path, data in files.items():
            if is_large(path):
                self.cdn.files["objects/" + hashlib.sha256(data).hexdigest()] = data

    @staticmethod
    def commit_of(files):
        return hashlib.sha1(repr(sorted((path, git_id(data)) for path, data in files.items())).encode()).hexdigest()

    def find(self, repository, revision):
        revisions = self.repositories[repository]
        for name, files in revisions.items():
            if revision in (name, self.commit_of(files)):
                return files
        return None

    def endpoint(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def close(self):
        for server in (self, self.cdn):
            server.shutdown()
            server.server_close()


class HubHandler(Handler):
    def answer(self, **_):
        url = urllib.parse.urlsplit(self.path)
        parts = url.path.lstrip("/").split("/")
        self.server.tokens_seen.append(self.headers.get("Authorization"))
        if parts[0] == "api" and parts[1] == "models" and parts[4] == "tree":
            return self.answer_tree("/".join(parts[2:4]), urllib.parse.unquote(parts[5]), urllib.parse.parse_qs(url.query))
        if len(parts) > 4 and parts[2] == "resolve":
            return self.answer_file("/".join(parts[:2]), urllib.parse.unquote(parts[3]), urllib.parse.unquote("/".join(parts[4:])))
        self.send(404, b"what?")

    def refuse(self, status, code, message="no"):
        self.send(status, message.encode(), [("X-Error-Code", code), ("X-Error-Message", message), ("X-Request-Id", "Root=1-abc")])

    def repository(self, name):
        if self.server.token and self.headers.get("Authorization") != f"Bearer {self.server.token}":
            return self.refuse(401, "RepoNotFound")
        if name not in self.server.repositories:
            return self.refuse(404 if self.headers.get("Authorization") else 401, "RepoNotFound")
        return self.server.repositories[name]

    def answer_tree(self, name, revision, query):
        if name in self.server.renamed:
            return self.send(307, b"", [("Location", self.path.replace(name, self.server.renamed[name]))])
        if self.repository(name) is None:
            return
        files = self.server.find(name, revision)
        if files is None:
            return self.refuse(404, "RevisionNotFound", "Invalid rev id: " + revision)
        entries = []
        for path, data in sorted(files.items()):
            entry = {"type": "file", "path": path, "size": len(data), "oid": git_id(data)}
            if is_large(path):
                entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
            entries.append(entry)
        first = int(query.get("cursor", ["0"])[0])
        headers = [("X-Repo-Commit", self.server.commit_of(files))]
        if first + self.server.page_size < len(entries):
            headers.append(("Link", f'<{self.server.endpoint()}/api/models/{name}/tree/{revision}?recursive=true&cursor={first + self.server.page_size}>; rel="next"'))
        self.send(200, json.dumps(entries[first:first + self.server.page_size]).encode(), headers)

    def answer_file(self, name, revision, path):
        if self.repository(name) is None:
            return
        if name in self.server.gated:
            return self.refuse(403, "GatedRepo")
        files = self.server.find(name, revision)
        if files is None or path not in files:
            return self.refuse(404, "EntryNotFound")
        data = files[path]
        commit = ("X-Repo-Commit", self.server.commit_of(files))
        if is_large(path):
            digest = hashlib.sha256(data).hexdigest()
            return self.send(302, b"", [commit, ("X-Linked-Etag", f'"{digest}"'), ("X-Linked-Size", str(len(data))),
                                        ("Location", self.server.cdn.url(f"objects/{digest}?signature=secret"))])
        self.server.files[self.path.lstrip("/")] = data
        super().answer(etag=f'"{git_id(data)}"', headers=[commit])
