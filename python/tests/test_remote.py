"""Checkpoints elsewhere: the Hub by its addresses and names, what is fetched, and Ctrl-C while a server says nothing."""

import os
import pathlib
import signal
import struct
import subprocess
import sys
import textwrap
import time

import pytest

ROOT = pathlib.Path(os.environ.get("BALLAST_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(ROOT / "tests/e2e"))

hub_server = pytest.importorskip("hub_server")
import ballast
import ballast.peft

VALUES = [1.0, 2.0, 3.0, 4.0]


def model(path):
    ballast.save({"w": struct_tensor(VALUES)}, path)
    return path.read_bytes()


def struct_tensor(values):
    from array import array

    return array("f", values)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    server = hub_server.Hub()
    for name in [name for name in os.environ if name.startswith(("HF_", "HUGGING", "TRANSFORMERS"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HF_ENDPOINT", server.endpoint())
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    server.add("org/model", {"model.safetensors": model(tmp_path / "m.safetensors"), "unet/model.fp16.safetensors": model(tmp_path / "n.safetensors")})
    yield server
    server.close()


def test_a_repository_is_opened_like_a_file(hub):
    with ballast.open("hf://org/model") as checkpoint:
        assert checkpoint["w"].tolist() == VALUES
    assert ballast.open("hf://org/model", subfolder="unet", variant="fp16")["w"].tolist() == VALUES


def test_a_web_address_takes_headers(hub):
    hub.cdn.files["m.safetensors"] = next(iter(hub.repositories["org/model"]["main"].values()))
    assert ballast.open(hub.cdn.url("m.safetensors"), headers={"Authorization": "me"})["w"].tolist() == VALUES
    assert hub.cdn.headers_seen[-1]["Authorization"] == "me"
    with pytest.raises(ValueError):
        ballast.open(hub.cdn.url("m.safetensors"), headers={"A": "b\r\nc: d"})


def test_a_token_is_sent_if_it_is_given(hub):
    hub.token = "hf_mine"
    with pytest.raises(FileNotFoundError):
        ballast.open("hf://org/model")
    assert "w" in ballast.open("hf://org/model", token="hf_mine")


def test_what_was_fetched_opens_offline(hub, tmp_path, monkeypatch):
    report = ballast.fetch("hf://org/model")
    assert pathlib.Path(report["folder"], "model.safetensors").exists()
    hub.requests.clear()
    assert ballast.open("hf://org/model", offline=True)["w"].tolist() == VALUES
    with pytest.raises(FileNotFoundError, match="org/other"):
        ballast.open("hf://org/other", offline=True)
    assert hub.requests == []


def test_weights_of_an_adapter_are_loaded_by_the_name_of_a_repository(hub, tmp_path):
    folder = ROOT / "tests/vectors/peft/adalora/adapter"
    hub.add("org/lora", {name: (folder / name).read_bytes() for name in ("adapter_model.safetensors", "adapter_config.json")})
    near, far = ballast.peft.load_peft_weights(folder, device="cpu"), ballast.peft.load_peft_weights("org/lora", device="cpu")
    np = pytest.importorskip("numpy")
    bytes_of = lambda weights: [(name, np.asarray(tensor).tobytes()) for name, tensor in weights.items()]
    assert len(near) > 0 and bytes_of(near) == bytes_of(far)
    ballast.fetch("hf://org/lora")
    assert bytes_of(ballast.peft.load_peft_weights("org/lora", device="cpu", local_files_only=True)) == bytes_of(near)
    assert bytes_of(ballast.peft.load_peft_weights("org/lora", device="cpu", revision="main", cache_dir=tmp_path / "home/hub", local_files_only=True)) == bytes_of(near)


def test_ctrl_c_ends_the_waiting(hub, tmp_path):
    code = textwrap.dedent("""
        import socket, sys, ballast
        server = socket.create_server(("127.0.0.1", 0))
        print("ready", flush=True)
        try:
            getattr(ballast, sys.argv[1])(f"http://127.0.0.1:{server.getsockname()[1]}/m.safetensors")
        except KeyboardInterrupt:
            sys.exit(7)
    """)
    for name in ("open", "ls"):
        with subprocess.Popen([sys.executable, "-c", code, name], stdout=subprocess.PIPE) as child:
            assert child.stdout.readline() == b"ready\n"
            time.sleep(0.5)
            child.send_signal(signal.SIGINT)
            assert child.wait(timeout=10) == 7, name


def test_ctrl_c_ends_the_waiting_of_other_threads(tmp_path):
    code = textwrap.dedent("""
        import json, struct, sys, threading, time
        sys.path.insert(0, sys.argv[2])
        import ballast, web

        def file(name):
            header = json.dumps({name: {"dtype": "U8", "shape": [1 << 20], "data_offsets": [0, 1 << 20]}}).encode()
            return struct.pack("<Q", len(header)) + header + bytes(1 << 20)

        server = web.Server()
        names = [f"model-{i:05}-of-00008.safetensors" for i in range(1, 9)]
        server.files = {name: file(name) for name in names}
        index = {"metadata": {}, "weight_map": {name: name for name in names}}
        server.files["model.safetensors.index.json"] = json.dumps(index).encode()
        silent = lambda handler: "index" not in handler.path and time.sleep(60)
        job = sys.argv[1]
        if job == "open":
            server.fault = silent
        else:
            checkpoint = ballast.open(server.url("model.safetensors.index.json"))
            server.fault = silent
        print("ready", flush=True)
        try:
            if job == "open":
                ballast.open(server.url("model.safetensors.index.json"), threads=4)
            else:
                ballast.save(checkpoint, sys.argv[3])
        except KeyboardInterrupt:
            print(time.time(), flush=True)
            sys.exit(7)
    """)
    for job in ("open", "save"):
        words = [sys.executable, "-c", code, job, str(ROOT / "tests/e2e"), str(tmp_path / "copy.safetensors")]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as child:
            assert child.stdout.readline() == b"ready\n"
            time.sleep(0.7)
            pressed = time.time()
            child.send_signal(signal.SIGINT)
            assert child.wait(timeout=20) == 7, job
            assert float(child.stdout.readline()) - pressed < 2, job  # 0.1 where nobody else is at work
