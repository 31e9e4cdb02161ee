"""What `ballast view` serves and writes, for its tests."""

import base64
import http.client
import re
import signal
import subprocess
import zlib

from support import COMMAND, environment

HOSTILE = '</script><script>alert("name")</script>\u202e<img src=x onerror=alert(1)>'


def documents_of(page):
    """{name: bytes}: the documents that a report has."""
    blocks = re.findall(r'<script type="text/plain" id="document-([a-z0-9-]+)">([A-Za-z0-9+/=]*)</script>', page)
    return {name: zlib.decompress(base64.b64decode(text)) for name, text in blocks}


class Server:
    """`ballast view TARGETS --no-browser`, and what it said."""

    def __init__(self, *words):
        self.process = subprocess.Popen([COMMAND, "view", *map(str, words), "--no-browser"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), text=True)
        self.said = ""
        for line in self.process.stderr:
            self.said += line
            found = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]+)", line)
            if found:
                self.port, self.token = int(found.group(1)), found.group(2)
                break
        else:
            raise AssertionError(self.said)
        self.cookie = self.enter()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.code = self.process.wait(20)
        self.process.stderr.close()
        self.process.stdout.close()

    def ask(self, path, method="GET", **headers):
        """(status, headers, body); a header of None is left out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.putrequest(method, path, skip_host=True)
        usual = {"Host": f"127.0.0.1:{self.port}"} | {key.replace("_", "-"): value for key, value in headers.items()}
        for key, value in usual.items():
            if value is not None:
                connection.putheader(key, value)
        connection.endheaders()
        answer = connection.getresponse()
        try:
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def enter(self):
        status, headers, _ = self.ask("/?token=" + self.token)
        assert (status, headers["Location"]) == (303, "/"), (status, headers)
        return headers["Set-Cookie"]

    def get(self, path, status=200):
        code, _, body = self.ask(path, Cookie=self.cookie.split(";")[0])
        assert code == status, (path, code, body)
        return body

    def document(self, path):
        body = self.get(path)
        while body.startswith(b'{"done"'):
            body = body.split(b"\n", 1)[1]
        return body
