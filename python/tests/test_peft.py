"""PEFT's functions on dictionaries, against files that PEFT wrote."""

import json
import os
import pathlib

import numpy as np
import pytest

import ballast
from ballast.peft import get_peft_model_state_dict, load_peft_weights, set_peft_model_state_dict

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "vectors" / "peft"


def values(tensor):
    return np.asarray(tensor.to("F32").numpy() if isinstance(tensor, ballast.Tensor) else tensor.float().numpy())


@pytest.fixture(autouse=True)
def without_torch(monkeypatch):
    """On dictionaries torch is not needed."""
    import ballast.peft

    monkeypatch.setattr(ballast.peft, "_torch", lambda: None)


def lora(rank=2):
    names = [f"layers.{i}.q_proj" for i in range(2)]
    state = {f"base_model.model.{name}.base_layer.weight": np.ones((4, 4), "f4") for name in names}
    for i, name in enumerate(names):
        state[f"base_model.model.{name}.lora_A.default.weight"] = np.full((rank, 4), i, "f4")
        state[f"base_model.model.{name}.lora_B.default.weight"] = np.full((4, rank), i + 10, "f4")
    return state, {"peft_type": "LORA", "r": rank, "lora_alpha": 4, "target_modules": ["q_proj"]}


def test_get_gives_the_very_tensors_without_the_adapters_name():
    state, config = lora()
    got = get_peft_model_state_dict(state, config)
    assert sorted(got) == sorted(name.replace(".default", "") for name in state if "lora_" in name)
    for name, tensor in got.items():
        assert tensor is state[name.replace(".weight", ".default.weight")]


def test_set_puts_them_back_and_says_what_did_not_fit():
    state, config = lora()
    adapter = {name: tensor + 1 for name, tensor in get_peft_model_state_dict(state, config).items()}
    first = sorted(adapter)[0]
    extra = {**adapter, "base_model.model.other.lora_A.weight": np.ones((2, 4), "f4")}
    del extra[first]
    result = set_peft_model_state_dict(state, extra, config=config)
    missing, unexpected = result
    assert [name.replace(".default", "") for name in missing if "lora_" in name] == [first]
    assert len(unexpected) == 1 and "other" in unexpected[0]
    changed = sorted(adapter)[1]
    assert result.state[changed.replace(".weight", ".default.weight")] is extra[changed]


def test_a_shape_that_does_not_fit_is_an_error_or_is_left_out():
    state, config = lora()
    adapter = get_peft_model_state_dict(lora(rank=3)[0], config)
    with pytest.raises(ballast.Mismatch):
        set_peft_model_state_dict(state, adapter, config=config)
    result = set_peft_model_state_dict(state, adapter, config=config, ignore_mismatched_sizes=True)
    assert len(result.mismatched_keys) == 4


def test_a_model_with_a_peft_config_is_taken_as_peft_takes_it():
    state, config = lora()

    class Config:
        def to_dict(self):
            return {**config, "target_modules": {"q_proj"}}

    class Model:
        peft_config = {"default": Config()}

        def state_dict(self):
            return state

        def load_state_dict(self, tensors, strict):
            assert not strict
            state.update(tensors)

    got = get_peft_model_state_dict(Model())
    assert len(got) == 4
    result = set_peft_model_state_dict(Model(), {name: tensor + 1 for name, tensor in got.items()})
    assert not result.unexpected_keys
    assert state["base_model.model.layers.0.q_proj.lora_A.default.weight"][0, 0] == 1


def test_the_type_of_the_adapter_must_be_known():
    state, _ = lora()
    with pytest.raises(TypeError, match="config"):
        set_peft_model_state_dict(state, {})
    with pytest.raises(TypeError, match="configuration"):
        get_peft_model_state_dict(state)
    with pytest.raises(ValueError):
        get_peft_model_state_dict(state, {"peft_type": "NOTHING"})


def test_an_adapter_of_a_folder_is_loaded_and_renamed(tmp_path):
    state, config = lora()
    ballast.save(get_peft_model_state_dict(state, config), tmp_path / "adapter_model.safetensors")
    (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    got = load_peft_weights(tmp_path)
    assert sorted(got) == sorted(get_peft_model_state_dict(state, config))
    renamed = load_peft_weights(tmp_path, key_mapping={"^layers": "blocks"})
    assert all(name.startswith("base_model.model.blocks.") for name in renamed)
    with pytest.raises(FileNotFoundError):
        load_peft_weights(tmp_path / "nothing")


CASES = sorted(case.name for case in VECTORS.iterdir() if (case / "adapter").is_dir()) if VECTORS.is_dir() else []


@pytest.mark.parametrize("case", CASES)
def test_what_peft_saved_is_what_get_gives(case):
    folder = VECTORS / case
    meta = json.loads((folder / "meta.json").read_text())
    name = meta.get("adapter_name", "default")
    model = folder / "adapted_state_dict.safetensors"
    adapter = folder / "adapter" / name if (folder / "adapter" / name).is_dir() else folder / "adapter"
    if not model.exists() or meta.get("save_pretrained_options") or meta.get("reload_check") != "identical state dict":
        pytest.skip("saved with options that this function has not")
    want = load_peft_weights(adapter)
    got = get_peft_model_state_dict(ballast.open(model), adapter, name)
    assert sorted(got) == sorted(want)
    for key in want:
        assert np.allclose(values(got[key]), values(want[key]), rtol=1e-5, atol=1e-6), key
