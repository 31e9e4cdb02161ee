"""A small web server for tests: files by path, with ranges, and faults that a test brings."""

import http.server
import re
import threading


class Server(http.server.ThreadingHTTPServer):
    """Serves bytes by path. A fault is a function of the handler, which returns True if it has answered."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.requests, self.headers_seen, self.fault, self.lock = {}, [], [], None, threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()  # how long it may take to end

    def url(self, path):
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"

    def handle_error(self, request, client_address):
        pass  # a client that hangs up is what some of the tests are about


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        with self.server.lock:
            self.server.requests.append((self.path, self.headers.get("Range")))
            self.server.headers_seen.append(dict(self.headers))
            self.number = len(self.server.requests)
        if self.server.fault is not None and self.server.fault(self):
            return
        self.answer()

    def answer(self, etag='"1"', headers=(), change=lambda body: body):
        body = self.server.files.get(self.path.split("?")[0].lstrip("/"))
        if body is None:
            return self.send(404, b"<html>not here</html>")
        first, last = self.wanted(len(body))
        if first >= len(body):
            return self.send(416, b"", [("Content-Range", f"bytes */{len(body)}")])
        part = body[first:last + 1]
        self.send(206, change(part), [("ETag", etag), ("Content-Range", f"bytes {first}-{last}/{len(body)}"), *headers])

    def wanted(self, size):
        first, last = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers["Range"]).groups()
        if first == "":
            return max(0, size - int(last)), size - 1
        return int(first), min(int(last), size - 1)

    def send(self, status, body, headers=()):
        self.send_response(status)
        names = {name.lower() for name, _ in headers}
        for name, value in headers:
            self.send_header(name, value)
        if "content-length" not in names:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
