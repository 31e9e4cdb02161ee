"""Objects in S3: the signatures, checked by a server that computes them itself, and where the credentials come from."""

import ctypes.util
import hashlib
import hmac
import pathlib
import sys
import tempfile
import unittest
import urllib.parse

from support import *
from web import Server

if ctypes.util.find_library("curl") is None:
    sys.exit(77)

NOTHING = hashlib.sha256(b"").hexdigest()


def signature(secret, date, region, method, path, query, headers, signed):
    """SigV4, written from its specification: `headers` by lower-case names, `signed` their names in order."""
    canonical = "\n".join([method, path, query, *(f"{name}:{' '.join(headers[name].split())}" for name in signed), "", ";".join(signed), headers["x-amz-content-sha256"]])
    scope = f"{date[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in (date[:8], region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Signature(unittest.TestCase):
    def test_of_the_published_example_is_the_published_one(self):
        headers = {"host": "examplebucket.s3.amazonaws.com", "range": "bytes=0-9", "x-amz-content-sha256": NOTHING, "x-amz-date": "20130524T000000Z"}
        self.assertEqual(
            signature("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "20130524T000000Z", "us-east-1", "GET", "/test.txt", "", headers, sorted(headers)),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")


class S3(unittest.TestCase):
    KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.server.fault = self.check
        self.complaints, self.region, self.token, self.is_public = [], "eu-central-1", None, False
        self.tensors = {f"t{i}": ("F32", [1000], pack("F32", [float(i)] * 1000)) for i in range(40)}
        for name in ("model.safetensors", "a folder/b+c=d é.safetensors"):
            self.server.files["bucket/" + urllib.parse.quote(name)] = safetensors(self.tensors)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)

    def complain(self, handler, why):
        self.complaints.append(why)
        handler.send(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
        return True

    def check(self, handler):
        headers = {name.lower(): value for name, value in handler.headers.items()}
        if self.is_public:
            return self.complain(handler, "signed") if "authorization" in headers else False
        if "authorization" not in headers:
            return self.complain(handler, "unsigned")
        words = dict(word.strip().split("=", 1) for word in headers["authorization"].removeprefix("AWS4-HMAC-SHA256 ").split(","))
        key, date, region, service, _ = words["Credential"].split("/")
        if (key, region, service) != (self.KEY, self.region, "s3") or not headers["x-amz-date"].startswith(date):
            return self.complain(handler, "credential " + words["Credential"])
        signed = words["SignedHeaders"].split(";")
        if not {"host", "x-amz-date", "x-amz-content-sha256"} <= set(signed) or headers["x-amz-content-sha256"] != NOTHING:
            return self.complain(handler, "headers")
        if headers.get("x-amz-security-token") != self.token or (self.token and "x-amz-security-token" not in signed):
            return self.complain(handler, "session token")
        path, _, query = handler.path.partition("?")
        if signature(self.SECRET, headers["x-amz-date"], region, "GET", path, query, headers, signed) != words["Signature"]:
            return self.complain(handler, "signature")
        return False

    def run_command(self, *args, **changes):
        kept = {key: value for key, value in environment().items() if not key.startswith("AWS_")}
        env = kept | {"HOME": str(self.home), "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server.server_address[1]}"} | changes
        done = subprocess.run([COMMAND, *args], capture_output=True, env={key: value for key, value in env.items() if value is not None}, timeout=60)
        return Result(done.returncode, done.stdout, done.stderr.decode())

    def opens(self, target="s3://bucket/model.safetensors", **changes):
        result = self.run_command("hash", target, "--digest", **changes)
        self.assertEqual((result.code, self.complaints), (OK, []), result)

    def credentials(self, **more):
        return {"AWS_ACCESS_KEY_ID": self.KEY, "AWS_SECRET_ACCESS_KEY": self.SECRET, "AWS_REGION": self.region} | more

    def test_requests_are_signed_with_the_credentials_of_the_environment(self):
        self.opens(**self.credentials())
        self.opens("s3://bucket/a folder/b+c=d é.safetensors", **self.credentials())

    def test_a_session_token_is_sent_and_signed(self):
        self.token = "a session/token=="
        self.opens(**self.credentials(AWS_SESSION_TOKEN=self.token))

    def test_credentials_region_and_endpoint_come_from_the_files_of_a_profile(self):
        (self.home / ".aws").mkdir()
        (self.home / ".aws/credentials").write_text(f"[default]\naws_access_key_id = wrong\naws_secret_access_key = wrong\n\n# mine\n[me]\naws_access_key_id={self.KEY}\n aws_secret_access_key = {self.SECRET} \n")
        (self.home / ".aws/config").write_text(f"[default]\nregion = nowhere\n[profile me]\nregion = {self.region}\nendpoint_url = http://127.0.0.1:{self.server.server_address[1]}/\n")
        self.opens(AWS_PROFILE="me", AWS_ENDPOINT_URL=None)

    def test_without_credentials_nothing_is_signed(self):
        self.is_public = True
        self.opens()

    def test_what_is_refused_says_what_to_do_and_shows_no_secret(self):
        result = self.run_command("ls", "s3://bucket/model.safetensors", **self.credentials(AWS_SECRET_ACCESS_KEY="wrong-secret"))
        self.assertEqual(result.code, IO, result)
        self.assertIn("S3 does not allow it", result.err)
        self.assertNotIn("wrong-secret", result.err)
        result = self.run_command("ls", "s3://bucket/model.safetensors")
        self.assertIn("AWS_ACCESS_KEY_ID", result.err)
        self.server.fault = lambda handler: handler.send(301, b"", [("x-amz-bucket-region", "us-west-2")]) or True
        self.assertIn("AWS_REGION=us-west-2", self.run_command("ls", "s3://bucket/model.safetensors", **self.credentials()).err)

    def test_what_names_no_object_is_refused(self):
        for target in ("s3://", "s3://bucket", "s3://bucket/", "s3:///key", "s3://../key", "s3://a b/key"):
            result = self.run_command("ls", target, **self.credentials())
            self.assertEqual(result.code, USAGE, result)
        self.assertEqual(self.server.requests, [])

    def test_an_object_is_fetched_into_a_folder(self):
        result = self.run_command("fetch", "s3://bucket/model.safetensors", "-o", str(self.home / "out"), **self.credentials())
        self.assertEqual((result.code, self.complaints), (OK, []), result)
        self.assertEqual((self.home / "out/model.safetensors").read_bytes(), safetensors(self.tensors))


if __name__ == "__main__":
    unittest.main()
