"""A real server: nginx with ranges, TLS with a certificate of our own, HTTP/2."""

import ctypes.util
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from support import *

if ctypes.util.find_library("curl") is None or shutil.which("nginx", path="/usr/sbin:/usr/bin") is None or shutil.which("openssl") is None:
    sys.exit(77)

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin")
TENSORS = {f"t{i}": ("F32", [1000], pack("F32", [float(i)] * 1000)) for i in range(400)}

CONFIG = """
daemon off; master_process off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log {folder}/access.log combined; sendfile on;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{ listen 127.0.0.1:{plain}; root {folder}/data; location /slow/ {{ alias {folder}/data/; limit_rate 6m; }} }}
  server {{
    listen 127.0.0.1:{tls} ssl http2; root {folder}/data; ssl_certificate {folder}/server.pem; ssl_certificate_key {folder}/server.key;
    location /down/ {{ return 302 http://127.0.0.1:{plain}/model.safetensors; }}
    location /packed/ {{ alias {folder}/data/; gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any; }}
  }}
}}
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Nginx(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        (cls.folder / "data").mkdir()
        (cls.folder / "data/model.safetensors").write_bytes(safetensors(TENSORS))
        big = {f"b{i}": ("F32", [1000000], bytes([0, i, i, 60]) * 1000000) for i in range(30)}
        (cls.folder / "data/big.safetensors").write_bytes(safetensors(big))
        cls.make_certificates()
        cls.plain, cls.tls = free_port(), free_port()
        (cls.folder / "nginx.conf").write_text(CONFIG.format(folder=cls.folder, plain=cls.plain, tls=cls.tls))
        cls.nginx = subprocess.Popen([NGINX, "-c", cls.folder / "nginx.conf", "-p", cls.folder], stderr=subprocess.DEVNULL)
        cls.addClassCleanup(cls.stop)
        for _ in range(200):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", cls.tls)) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError((cls.folder / "error.log").read_text())

    @classmethod
    def stop(cls):
        cls.nginx.send_signal(signal.SIGTERM)
        cls.nginx.wait()

    @classmethod
    def make_certificates(cls):
        def openssl(*args):
            subprocess.run(["openssl", *args], check=True, cwd=cls.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=A test")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
        (cls.folder / "names").write_text("subjectAltName=DNS:localhost\n")
        openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "server.pem", "-days", "2", "-extfile", "names")

    def run_command(self, *args, **changes):
        kept = {key: value for key, value in environment().items() if key not in ("CURL_CA_BUNDLE", "SSL_CERT_FILE")}
        done = subprocess.run([COMMAND, *map(str, args)], capture_output=True, env=kept | changes, timeout=120)
        return Result(done.returncode, done.stdout, done.stderr.decode())

    def opens(self, *args, **changes):
        result = self.run_command(*args, **changes)
        self.assertEqual(result.code, OK, result)

    def secure(self, path="model.safetensors", host="localhost"):
        return f"https://{host}:{self.tls}/{path}"

    def test_a_certificate_is_believed_if_the_user_says_so_in_any_way(self):
        certificates = self.folder / "ca.pem"
        self.opens("hash", self.secure(), "--digest", "--ca-file", certificates)
        self.opens("ls", self.secure(), SSL_CERT_FILE=str(certificates))
        self.opens("ls", self.secure(), CURL_CA_BUNDLE=str(certificates))

    def test_a_certificate_of_a_stranger_or_for_another_host_is_refused(self):
        for result in (self.run_command("ls", self.secure()), self.run_command("ls", self.secure(host="127.0.0.1"), "--ca-file", self.folder / "ca.pem")):
            self.assertEqual(result.code, IO, result)
            self.assertIn("SSL", result.err)

    def test_https_does_not_lead_to_http(self):
        result = self.run_command("ls", self.secure("down/model.safetensors"), "--ca-file", self.folder / "ca.pem")
        self.assertEqual(result.code, UNSAFE, result)
        self.assertIn("from https to http", result.err)

    def test_http2_is_used_if_it_is_offered(self):
        self.opens("ls", self.secure("packed/model.safetensors"), "--ca-file", self.folder / "ca.pem")
        self.assertRegex((self.folder / "access.log").read_text(), r'"GET /packed/model.safetensors HTTP/2.0" 206')

    def test_what_is_converted_is_what_a_local_conversion_gives(self):
        local = self.folder / "data/model.safetensors"
        (self.folder / "here").mkdir()
        (self.folder / "there").mkdir()
        for name, options in (("copy.safetensors", []), ("cast.safetensors", ["--dtype", "BF16"]), ("other.pt", []), ("other.gguf", ["--dtype", "Q8_0"])):
            near, far = self.folder / "here" / name, self.folder / "there" / name
            self.opens("convert", local, near, *options)
            self.opens("convert", self.secure(), far, *options, "--ca-file", self.folder / "ca.pem")
            self.assertEqual(near.read_bytes(), far.read_bytes(), name)

    def test_what_is_fetched_is_the_file(self):
        self.opens("fetch", self.secure(), "-o", self.folder / "out", "--ca-file", self.folder / "ca.pem")
        self.assertEqual((self.folder / "out/model.safetensors").read_bytes(), safetensors(TENSORS))
        self.assertEqual([path.name for path in (self.folder / "out").iterdir()], ["model.safetensors"])

    def is_well_begun(self, out):
        """Whether an eighth of the work is done, by the record behind what is written."""
        flags = [path.read_bytes()[-500:].split(b"\n")[-1] for path in out.parent.glob(f".{out.name}.ballast-*")]
        return any(b"1" in each and 8 * each.count(b"1") >= len(each) for each in flags)

    def interrupted_and_continued(self, out, how, *options):
        """Interrupts a conversion when some of it is written, and returns the bytes that the same command then asks for."""
        words = [COMMAND, "convert", f"http://127.0.0.1:{self.plain}/slow/big.safetensors", str(out), "--memory", "2MiB", "--threads", "1", *options]
        first = subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while not self.is_well_begun(out) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertIsNone(first.poll(), "the conversion was over before it could be interrupted")
        first.send_signal(how)
        _, err = first.communicate(timeout=60)
        self.assertFalse(out.exists())
        (self.folder / "access.log").write_text("")
        self.nginx.send_signal(signal.SIGUSR1)  # opens its log anew
        time.sleep(0.2)
        second = subprocess.run(words, env=environment(), capture_output=True, timeout=120)
        self.assertEqual(second.returncode, OK, second.stderr)
        self.assertEqual([path.name for path in out.parent.glob(f".{out.name}*")], [])
        sizes = re.findall(r'"GET /slow/\S+ HTTP/1.1" 206 (\d+)', (self.folder / "access.log").read_text())
        return sum(map(int, sizes)), err.decode()

    def test_an_interrupted_conversion_goes_on_where_it_was(self):
        big = self.folder / "data/big.safetensors"
        for how in (signal.SIGINT, signal.SIGKILL):
            for name, options in (("copy.safetensors", []), ("cast.safetensors", ["--dtype", "BF16"]), ("zip.pt", [])):
                with self.subTest(how=how, name=name):
                    out = self.folder / f"{how}" / name
                    out.parent.mkdir(exist_ok=True)
                    asked_for, err = self.interrupted_and_continued(out, how, *options)
                    self.assertGreater(asked_for, 0)
                    self.assertLess(asked_for, big.stat().st_size * 0.95)
                    if how == signal.SIGINT:
                        self.assertIn("goes on from there", err)
                    near = self.folder / "near" / name
                    near.parent.mkdir(exist_ok=True)
                    self.opens("convert", big, near, *options, "--force")
                    self.assertEqual(near.read_bytes(), out.read_bytes())


if __name__ == "__main__":
    unittest.main()
