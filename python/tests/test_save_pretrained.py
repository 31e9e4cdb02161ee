"""An adapted model that is saved and loaded again through ballast.peft and ballast.safetensors, as PEFT's own models are.

The model is a stand-in with PEFT's names: PEFT itself is not needed. docs/python-migration.md says what came of PEFT's own tests.
"""

import json
import pathlib

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: ./dev setup oracles")

import ballast  # noqa: E402
from ballast.peft import get_peft_model_state_dict, load_peft_weights, set_peft_model_state_dict  # noqa: E402

LORA = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["lin0"], "bias": "none"}
CONFIGS = {
    "lora": LORA,
    "lora_with_a_head": {**LORA, "modules_to_save": ["head"]},
    "lora_and_its_biases": {**LORA, "bias": "lora_only"},
    "ia3": {"peft_type": "IA3", "target_modules": ["lin0"], "feedforward_modules": []},
    "loha": {"peft_type": "LOHA", "r": 2, "alpha": 4, "target_modules": ["lin0"]},
    "lokr": {"peft_type": "LOKR", "r": 2, "alpha": 4, "target_modules": ["lin0"]},
}
# The parameters of an adapted layer of 6 inputs and 4 outputs, by PEFT's names for them.
SHAPES = {
    "LORA": {"lora_A.{}.weight": (2, 6), "lora_B.{}.weight": (4, 2)},
    "IA3": {"ia3_l.{}": (4, 1)},
    "LOHA": {f"hada_w{i}_{part}.{{}}": shape for i in (1, 2) for part, shape in (("a", (4, 2)), ("b", (2, 6)))},
    "LOKR": {"lokr_w1.{}": (2, 2), "lokr_w2.{}": (2, 3)},
}


class Config:
    def __init__(self, fields):
        self.fields = fields

    def to_dict(self):
        return {**self.fields, "target_modules": set(self.fields["target_modules"])}


def values(*shape):
    return torch.nn.Parameter(torch.randn(*shape))


class Model:
    """A base of two layers with adapters in the first, as PEFT arranges their parameters."""

    def __init__(self, config, adapter="default", seed=0):
        torch.manual_seed(7)
        self.tensors = {
            "base_model.model.lin0.base_layer.weight": values(4, 6),
            "base_model.model.lin0.base_layer.bias": values(4),
            "base_model.model.head.weight": values(3, 4),
        }
        self.peft_config = {}
        if config.get("modules_to_save"):
            self.tensors["base_model.model.head.original_module.weight"] = self.tensors.pop("base_model.model.head.weight")
        torch.manual_seed(seed)
        self.add_adapter(adapter, config)

    def add_adapter(self, name, config):
        self.peft_config[name] = Config(config)
        for pattern, shape in SHAPES[config["peft_type"]].items():
            self.tensors["base_model.model.lin0." + pattern.format(name)] = values(*shape)
        for module in config.get("modules_to_save") or ():
            self.tensors[f"base_model.model.{module}.modules_to_save.{name}.weight"] = values(3, 4)

    def state_dict(self):
        return {name: tensor.detach() for name, tensor in self.tensors.items()}

    def load_state_dict(self, tensors, strict=True, assign=False):
        assert not strict
        for name, tensor in tensors.items():
            if name not in self.tensors:
                continue
            if assign:
                self.tensors[name] = torch.nn.Parameter(tensor)
            else:
                self.tensors[name].data.copy_(tensor)

    def save_pretrained(self, folder, selected_adapters=None, safe_serialization=True):
        for name in selected_adapters or list(self.peft_config):
            target = folder if name == "default" else folder / name
            target.mkdir(parents=True, exist_ok=True)
            tensors = get_peft_model_state_dict(self, adapter_name=name)
            if safe_serialization:
                with ballast.patch():
                    from safetensors.torch import save_file
                save_file(tensors, target / "adapter_model.safetensors", metadata={"format": "pt"})
            else:
                torch.save(tensors, target / "adapter_model.bin")
            fields = {**self.peft_config[name].fields, "inference_mode": True}
            (target / "adapter_config.json").write_text(json.dumps(fields))

    @classmethod
    def from_pretrained(cls, folder, name="default", **options):
        model = cls(json.loads((folder / "adapter_config.json").read_text()), name, seed=99)
        model.load_adapter(folder, name, is_new=False, **options)
        return model

    def load_adapter(self, folder, name, is_new=True, **options):
        if is_new:
            self.add_adapter(name, json.loads((folder / "adapter_config.json").read_text()))
        result = set_peft_model_state_dict(self, load_peft_weights(folder, device="cpu"), name, **options)
        assert not [key for key in result.missing_keys if name in key] and not result.unexpected_keys


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("is_safe", [True, False], ids=["safetensors", "bin"])
def test_a_model_that_was_saved_is_the_same_when_it_is_loaded(tmp_path, config, is_safe):
    model = Model(config)
    if config.get("bias") == "lora_only":
        with torch.no_grad():
            model.tensors["base_model.model.lin0.base_layer.bias"] += 1  # trained, and so a part of the adapter
    model.save_pretrained(tmp_path, safe_serialization=is_safe)
    assert_same(model.state_dict(), Model.from_pretrained(tmp_path).state_dict())
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"adapter_config.json", "adapter_model.safetensors" if is_safe else "adapter_model.bin"}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_several_adapters_are_saved_each_in_its_folder_or_only_those_that_were_selected(tmp_path, config):
    model = Model(config)
    model.add_adapter("new_adapter", config)
    model.save_pretrained(tmp_path / "all")
    loaded = Model.from_pretrained(tmp_path / "all")
    loaded.load_adapter(tmp_path / "all" / "new_adapter", "new_adapter")
    assert_same(model.state_dict(), loaded.state_dict())
    model.save_pretrained(tmp_path / "one", selected_adapters=["default"])
    assert not (tmp_path / "one" / "new_adapter").exists()


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_an_adapter_whose_name_is_a_part_of_others_is_saved_alone(tmp_path, config):
    from ballast.safetensors.torch import load_file

    model = Model(config)
    expected = get_peft_model_state_dict(model)
    for name in ("default2", "other_default", "foodefault_bar", "efaul"):
        model.add_adapter(name, config)
    model.save_pretrained(tmp_path, selected_adapters=["default"])
    assert_same(expected, load_file(tmp_path / "adapter_model.safetensors"))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_an_adapter_is_put_in_the_place_of_parameters_without_memory(tmp_path, config):
    model = Model(config)
    model.save_pretrained(tmp_path)
    empty = Model(config)
    names = {name for name in empty.tensors if ".default" in name}
    for name in names:
        empty.tensors[name] = torch.nn.Parameter(torch.empty(empty.tensors[name].shape, device="meta"))
    set_peft_model_state_dict(empty, load_peft_weights(tmp_path, device="cpu"), low_cpu_mem_usage=True)
    assert not any(empty.tensors[name].is_meta for name in names)
    assert_same(model.state_dict(), empty.state_dict())


def test_a_file_that_was_saved_is_byte_for_byte_what_the_package_writes(tmp_path):
    """Names by their dtype and then in order, padded to 8 bytes: docs/formats/safetensors.md."""
    model = Model(LORA)
    model.save_pretrained(tmp_path)
    data = pathlib.Path(tmp_path / "adapter_model.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert length % 8 == 0 and header.pop("__metadata__") == {"format": "pt"}
    assert list(header) == sorted(header)
