from collections.abc import Mapping
from os import PathLike
from typing import Any, NamedTuple

class SetResult(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]
    mismatched_keys: list[str]
    state: dict[str, Any] | None

def load_peft_weights(
    model_id: str | PathLike[str],
    device: Any = None,
    key_mapping: Mapping[str, str] | None = None,
    *,
    subfolder: str | None = None,
    **hf_hub_download_kwargs: Any,
) -> dict[str, Any]: ...
def get_peft_model_state_dict(
    model: Any,
    state_dict: Any = None,
    adapter_name: str = "default",
    unwrap_compiled: bool = False,
    save_embedding_layers: bool | str = "auto",
    *,
    config: Any = None,
) -> dict[str, Any]: ...
def set_peft_model_state_dict(
    model: Any,
    peft_model_state_dict: Mapping[str, Any],
    adapter_name: str = "default",
    ignore_mismatched_sizes: bool = False,
    low_cpu_mem_usage: bool = False,
    *,
    config: Any = None,
) -> SetResult: ...
