#include "model_folder.hpp"

#include <bit>
#include <filesystem>
#include <fstream>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/gguf_model.hpp>
#include <ballast/open.hpp>

namespace ballast::bench {
namespace {

using Dims = std::vector<std::uint64_t>;
using Entries = std::vector<std::pair<std::string, Dims>>;

Entries tensors_of(const ModelSizes& sizes) {
  const bool is_llama = sizes.type == "llama";
  const std::uint64_t hidden = sizes.hidden, wide = sizes.intermediate, keys = hidden / sizes.heads * sizes.kv_heads;
  Entries all = {{"model.embed_tokens.weight", {sizes.vocabulary, hidden}}};
  for (std::uint64_t i = 0; i < sizes.blocks; ++i) {
    const auto add = [&](const char* part, Dims dims) {
      all.emplace_back(fmt::format("model.layers.{}.{}", i, part), dims);
    };
    add("self_attn.q_proj.weight", {hidden, hidden});
    add("self_attn.k_proj.weight", {keys, hidden});
    add("self_attn.v_proj.weight", {keys, hidden});
    add("self_attn.o_proj.weight", {hidden, hidden});
    add("mlp.gate_proj.weight", {wide, hidden});
    add("mlp.up_proj.weight", {wide, hidden});
    add("mlp.down_proj.weight", {hidden, wide});
    add("input_layernorm.weight", {hidden});
    add("post_attention_layernorm.weight", {hidden});
    if (is_llama) continue;
    add("self_attn.q_proj.bias", {hidden});
    add("self_attn.k_proj.bias", {keys});
    add("self_attn.v_proj.bias", {keys});
  }
  all.emplace_back("model.norm.weight", Dims{hidden});
  all.emplace_back("lm_head.weight", Dims{sizes.vocabulary, hidden});
  return all;
}

void write_config(const std::string& folder, const ModelSizes& sizes) {
  std::ofstream(folder + "/config.json") << fmt::format(
      R"({{"architectures": ["{}"], "model_type": "{}", "hidden_size": {}, "intermediate_size": {}, "vocab_size": {},
"num_attention_heads": {}, "num_key_value_heads": {}, "num_hidden_layers": {}, "max_position_embeddings": 4096,
"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "torch_dtype": "bfloat16", "tie_word_embeddings": false}})",
      sizes.type == "llama" ? "LlamaForCausalLM" : "Qwen2ForCausalLM", sizes.type, sizes.hidden, sizes.intermediate,
      sizes.vocabulary, sizes.heads, sizes.kv_heads, sizes.blocks);
}

// Four tokens and a merge. The converter fills the vocabulary up.
void write_tokenizer(const std::string& folder) {
  std::ofstream(folder + "/tokenizer.json")
      << R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "!": 3}, "merges": ["a b"]},
"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"}})";
}

// The numbers do not begin anew with a page.
std::vector<std::uint16_t> gaussian_bf16() {
  std::mt19937_64 random(1);
  std::normal_distribution<float> distribution(0, 0.02F);
  std::vector<std::uint16_t> values(1'000'003);
  for (std::uint16_t& value : values)
    value = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(distribution(random)) >> 16);
  return values;
}

void fill(const std::string& path, std::uint64_t bytes) {
  const std::vector<std::uint16_t> values = gaussian_bf16();
  std::ofstream file(path, std::ios::binary | std::ios::app);
  for (std::uint64_t done = 0, size = 0; done < bytes; done += size) {
    size = std::min<std::uint64_t>(values.size() * sizeof values[0], bytes - done);
    file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(size));
  }
}

}  // namespace

std::string write_folder(const std::string& folder, const ModelSizes& sizes, Values values) {
  std::filesystem::create_directories(folder);
  write_config(folder, sizes);
  write_tokenizer(folder);
  std::string header;
  std::uint64_t end = 0;
  for (const auto& [name, dims] : tensors_of(sizes)) {
    const std::uint64_t begin = end;
    end += dims[0] * (dims.size() == 2 ? dims[1] : 1) * 2;
    header += fmt::format(R"({}"{}":{{"dtype":"BF16","shape":[{}],"data_offsets":[{},{}]}})",
                          header.empty() ? "{" : ",", name, fmt::join(dims, ","), begin, end);
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::string path = folder + "/model.safetensors";
  const std::uint64_t length = header.size();
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(&length), 8) << header;
  if (values == Values::gaussian) fill(path, end);
  std::filesystem::resize_file(path, 8 + length + end);
  return path;
}

Checkpoint gguf_model(const std::string& folder) { return to_gguf_model(open(folder), {.pre_tokenizer = "gpt-2"}); }

}  // namespace ballast::bench
