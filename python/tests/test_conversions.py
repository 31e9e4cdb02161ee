"""What transformers does to published weights: ballast.open(…, conversions=) and convert(map="transformers")."""

import json

import numpy as np
import pytest

import ballast


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    tensors = {}
    for expert in range(2):
        for at, word in enumerate(("gate_proj", "up_proj", "down_proj")):
            shape = (2, 3) if word == "down_proj" else (3, 2)
            values = np.arange(6, dtype="f4") + 100 * expert + 10 * at
            tensors[f"model.layers.0.mlp.experts.{expert}.{word}.weight"] = values.reshape(shape)
    ballast.save(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen3_moe", "num_experts": 2}))
    return folder


def test_tensors_are_those_that_transformers_has(model):
    published = ballast.open(model)
    with ballast.open(model, conversions="auto") as opened:
        assert sorted(opened) == ["model.layers.0.mlp.experts.down_proj", "model.layers.0.mlp.experts.gate_up_proj"]
        fused = opened["model.layers.0.mlp.experts.gate_up_proj"].numpy()
    assert fused.shape == (2, 6, 2)
    for expert in range(2):
        parts = [published[f"model.layers.0.mlp.experts.{expert}.{word}.weight"].numpy() for word in ("gate_proj", "up_proj")]
        assert (fused[expert] == np.concatenate(parts)).all()


def test_a_type_can_be_named_where_nothing_says_it(model):
    (model / "config.json").unlink()
    assert len(ballast.open(model, conversions="auto")) == 6
    assert len(ballast.open(model / "model.safetensors", conversions="deepseek_v3")) == 2
    assert len(ballast.open((model / "model.safetensors").read_bytes(), conversions="qwen2_moe")) == 2
    with pytest.raises(ballast.InvalidArgument) as caught:
        ballast.open(model, conversions="llama")
    assert '"llama"' in str(caught.value) and "deepseek_v3" in caught.value.hint


def test_the_config_says_how_many_experts_there_are(model):
    (model / "config.json").write_text(json.dumps({"model_type": "qwen3_moe", "num_experts": 3}))
    with pytest.raises(ballast.Mismatch, match="experts.2.gate_proj.weight"):
        ballast.open(model, conversions="auto")


def test_convert_writes_them_and_takes_them_back(model, tmp_path):
    ballast.convert(model, f"{tmp_path}/fused/", map="transformers")
    assert len(ballast.open(tmp_path / "fused")) == 2
    ballast.convert(tmp_path / "fused", f"{tmp_path}/back/", map_back="transformers")
    assert ballast.diff(model, tmp_path / "back")["equal"]
