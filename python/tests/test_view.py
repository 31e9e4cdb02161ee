"""ballast.view: the page of what a program has open, as a file or until somebody stops it."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import ballast

SOURCE = pathlib.Path(os.environ.get("BALLAST_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TINY = SOURCE / "examples" / "tiny.safetensors"


def test_writes_a_report_of_a_path_and_of_an_open_checkpoint(tmp_path):
    ballast.view(TINY, html=tmp_path / "path.html")
    with ballast.open(TINY) as checkpoint:
        ballast.view(checkpoint, html=tmp_path / "open.html")
    assert (tmp_path / "path.html").read_bytes() == (tmp_path / "open.html").read_bytes()


def test_writes_a_report_of_tensors_in_memory(tmp_path):
    with ballast.open(TINY) as checkpoint:
        ballast.view({"w": checkpoint["model.norm.weight"]}, html=tmp_path / "memory.html")
    assert b"<!doctype html>" in (tmp_path / "memory.html").read_bytes()


def test_overwrites_only_if_it_is_told_to(tmp_path):
    page = tmp_path / "page.html"
    page.write_text("mine")
    try:
        ballast.view(TINY, html=page)
    except ballast.AlreadyExists:
        pass
    assert page.read_text() == "mine"
    ballast.view(TINY, html=page, force=True)
    assert page.read_text() != "mine"


def test_serves_until_ctrl_c():
    program = f"import ballast\nballast.view({str(TINY)!r}, no_browser=True)"
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(ballast.__file__))}
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, env=environment) as process:
        address = re.search(r"http://\S+", process.stderr.readline()).group()
        try:
            urllib.request.urlopen(address.split("?")[0], timeout=10)
            raise AssertionError("it answered without the token")
        except urllib.error.HTTPError as error:
            assert error.code == 403
            error.close()
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.stderr.read()
    assert process.returncode != 0
