// kohya's sd-scripts, and ComfyUI: "lora_unet_down_blocks_0_attentions_1_proj_in.lora_down.weight", ".lora_up.weight",
// and ".alpha", a number a module. The scaling is alpha / rank, and 1 without an alpha.
//
// A module's path is flattened with "_". The names of the base tell which of those were dots, or, if they are not
// known, the words that models are made of. A path with another word in it stays as it is, so that the way back always
// gives the same name.
#include <ballast/error.hpp>

#include <algorithm>
#include <vector>

#include "core/text.hpp"
#include "peft/files/dialects.hpp"
#include "peft/names.hpp"

namespace ballast::peft {
namespace {

struct Component {
  std::string_view kohya, dotted;
};
// A longer name stands before its beginning. A model with two text encoders numbers them.
constexpr Component kComponents[] = {
    {"lora_unet_", "unet."},
    {"lora_transformer_", "transformer."},
    {"lora_te1_", "text_encoder."},
    {"lora_te2_", "text_encoder_2."},
    {"lora_te3_", "text_encoder_3."},
    {"lora_te_", "text_encoder."},
    {"lora_", ""},
};

// The words of modules' names: those with "_" in them, and those that stand beside them.
// clang-format off
constexpr std::string_view kWords[] = {
    // diffusers
    "down_blocks", "up_blocks", "mid_block", "attentions", "resnets", "transformer_blocks", "single_transformer_blocks",
    "attn", "attn1", "attn2", "to_q", "to_k", "to_v", "to_out", "to_add_out", "add_q_proj", "add_k_proj", "add_v_proj",
    "ff", "ff_context", "net", "proj", "proj_in", "proj_out", "proj_mlp", "conv", "conv1", "conv2", "conv_in",
    "conv_out", "conv_shortcut", "downsamplers", "upsamplers", "time_emb_proj", "time_embedding", "add_embedding",
    "linear", "linear_1", "linear_2", "time_proj", "norm", "norm1", "norm2", "norm_out", "x_embedder",
    "context_embedder", "time_text_embed", "timestep_embedder", "guidance_embedder", "text_embedder",
    // Stable Diffusion and Flux as their authors publish them
    "input_blocks", "middle_block", "output_blocks", "in_layers", "out_layers", "emb_layers", "skip_connection", "op",
    "time_embed", "label_emb", "double_blocks", "single_blocks", "img_attn", "txt_attn", "img_mlp", "txt_mlp",
    "img_mod", "txt_mod", "qkv", "lin", "linear1", "linear2", "modulation", "final_layer", "adaLN_modulation", "img_in",
    "txt_in", "time_in", "vector_in", "guidance_in", "in_layer", "out_layer", "joint_blocks", "context_block",
    "x_block", "blocks", "self_attn", "cross_attn", "q", "k", "v", "o", "ffn",
    // text encoders and language models
    "text_model", "encoder", "decoder", "layers", "layer", "block", "model", "transformer", "h", "q_proj", "k_proj",
    "v_proj", "o_proj", "out_proj", "qkv_proj", "gate_up_proj", "mlp", "fc1", "fc2", "fc_in", "fc_out", "gate_proj",
    "up_proj", "down_proj", "embed_tokens", "lm_head", "SelfAttention", "DenseReluDense", "wi", "wi_0", "wi_1", "wo",
    "attention", "self", "query", "key", "value", "dense", "intermediate", "output", "c_attn", "c_proj", "c_fc",
    "text_projection", "query_key_value", "dense_h_to_4h", "dense_4h_to_h", "language_model", "gate", "up", "down",
};
// clang-format on

bool is_word(std::string_view text) {
  return number_in(text).has_value() || std::ranges::find(kWords, text) != std::end(kWords);
}

// The words of a path with dots between them, each as long as possible; nothing if a part of the path is not a word.
// Each position is tried once.
std::optional<std::string> with_dots(std::string_view flat) {
  const std::size_t size = flat.size();
  std::vector<std::size_t> next(size + 2, 0);  // where the word from here on ends, and the next begins; 0 if none does
  next[size + 1] = size + 1;
  for (std::size_t begin = size; begin-- > 0;) {
    if (begin != 0 && flat[begin - 1] != '_') continue;
    for (std::size_t end = size; end > begin; --end) {
      const bool ends_here = end == size || flat[end] == '_';
      if (!ends_here || next[end + 1] == 0 || !is_word(flat.substr(begin, end - begin))) continue;
      next[begin] = end + 1;
      break;
    }
  }
  if (size == 0 || next[0] == 0) return std::nullopt;
  std::string dotted;
  for (std::size_t at = 0; at < size; at = next[at]) {
    if (at != 0) dotted += '.';
    dotted += flat.substr(at, next[at] - 1 - at);
  }
  return dotted;
}

// The modules of a base by their flat names.
std::map<std::string, std::string> flat_modules(const std::vector<std::string>& base_names) {
  std::map<std::string, std::string> modules;
  for (const std::string& name : base_names) {
    std::string flat(module_of(name));
    std::ranges::replace(flat, '.', '_');
    modules.emplace(std::move(flat), module_of(name));
  }
  return modules;
}

std::string module_name(std::string_view kohya, const std::map<std::string, std::string>& known) {
  const auto component =
      std::ranges::find_if(kComponents, [&](const Component& c) { return kohya.starts_with(c.kohya); });
  if (component == std::end(kComponents)) return std::string(kohya);
  const std::string_view flat = kohya.substr(component->kohya.size());
  if (const auto module = known.find(std::string(flat)); module != known.end()) return module->second;
  return std::string(component->dotted) + with_dots(flat).value_or(std::string(flat));
}

std::string kohya_name(std::string_view module, bool has_two_encoders) {
  const auto component = std::ranges::find_if(kComponents, [&](const Component& c) {
    const bool is_alternative = c.kohya == (has_two_encoders ? "lora_te_" : "lora_te1_");
    return module.starts_with(c.dotted) && !is_alternative;
  });
  std::string flat(module.substr(component->dotted.size()));
  std::ranges::replace(flat, '.', '_');
  return std::string(component->kohya) + flat;
}

}  // namespace

LoraModules read_kohya(const StateDict& tensors, const std::vector<std::string>& base_names) {
  LoraModules by_kohya;
  for (const auto& [name, tensor] : tensors) {
    if (add_tensor(by_kohya, name, tensor)) continue;
    throw Error(Errc::unsupported, "tensor " + quote(name) + " is not a part of a plain LoRA")
        .hint("LoHa, LoKr and other algorithms of LyCORIS are not read");
  }
  const std::map<std::string, std::string> known = flat_modules(base_names);
  LoraModules modules;
  for (auto& [name, module] : by_kohya) {
    const std::string dotted = module_name(name, known);
    if (!modules.emplace(dotted, std::move(module)).second)
      throw Error(Errc::malformed, "two modules come to the name " + quote(dotted));
  }
  return modules;
}

StateDict write_kohya(const LoraModules& modules) {
  const bool has_two_encoders =
      std::ranges::any_of(modules, [](const auto& entry) { return entry.first.starts_with("text_encoder_2."); });
  StateDict tensors;
  for (const auto& [name, module] : modules) {
    const std::string flat = kohya_name(name, has_two_encoders);
    const auto alpha = static_cast<float>(*module.scaling * static_cast<double>(module.a->shape()[0]));
    const bool is_new = tensors.insert(flat + ".lora_down.weight", *module.a);
    if (!is_new) throw Error(Errc::unsupported, "two modules would both be called " + quote(flat));
    tensors.insert(flat + ".lora_up.weight", *module.b);
    tensors.insert(flat + ".alpha", Tensor::from_values<float>(DType::f32, {}, {{alpha}}));
    if (module.bias) {
      throw Error(Errc::unsupported, "the LoRA of module " + quote(name) + " has a bias, which kohya has no place for")
          .hint("merge the adapter into its base");
    }
    if (module.magnitude) tensors.insert(flat + ".dora_scale", module.magnitude->reshape({module.b->shape()[0], 1}));
  }
  return tensors;
}

}  // namespace ballast::peft
