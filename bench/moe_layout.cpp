#include "moe_layout.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace ballast::bench {
namespace {

using Dims = std::vector<std::uint64_t>;

struct Entry {
  std::string name;
  std::string_view dtype;
  Dims shape;
  std::uint64_t bytes;
};

constexpr std::uint64_t kHidden = 7168, kExpert = 2048, kDense = 18432, kQueryRank = 1536, kKeyRank = 512, kHeads = 128,
                        kNope = 128, kRope = 64, kValue = 128, kVocabulary = 129280, kExperts = 256, kBlock = 128;
constexpr unsigned kLayers = 61, kDenseLayers = 3;  // and one more layer, which predicts a second token

class Layout {
 public:
  std::vector<Entry> run() {
    plain("model.embed_tokens.weight", {kVocabulary, kHidden});
    for (unsigned layer = 0; layer <= kLayers; ++layer) add_layer(layer);
    plain("model.norm.weight", {kHidden});
    plain("lm_head.weight", {kVocabulary, kHidden});
    return std::move(entries_);
  }

 private:
  void add(std::string name, std::string_view dtype, Dims shape, std::uint64_t element) {
    for (const std::uint64_t dim : shape) element *= dim;
    entries_.push_back({std::move(name), dtype, std::move(shape), element});
  }
  void plain(std::string name, Dims shape) { add(std::move(name), "BF16", std::move(shape), 2); }

  // FP8, and a factor for each block of 128 x 128.
  void matrix(const std::string& name, std::uint64_t rows, std::uint64_t columns) {
    add(name + ".weight", "F8_E4M3", {rows, columns}, 1);
    add(name + ".weight_scale_inv", "F32", {(rows + kBlock - 1) / kBlock, (columns + kBlock - 1) / kBlock}, 4);
  }

  void mlp(const std::string& name, std::uint64_t width) {
    matrix(name + ".gate_proj", width, kHidden);
    matrix(name + ".up_proj", width, kHidden);
    matrix(name + ".down_proj", kHidden, width);
  }

  void add_layer(unsigned number) {
    const std::string layer = fmt::format("model.layers.{}.", number), attention = layer + "self_attn.";
    if (number == kLayers) {
      plain(layer + "embed_tokens.weight", {kVocabulary, kHidden});
      plain(layer + "enorm.weight", {kHidden});
      plain(layer + "hnorm.weight", {kHidden});
      plain(layer + "eh_proj.weight", {kHidden, 2 * kHidden});
    }
    plain(layer + "input_layernorm.weight", {kHidden});
    matrix(attention + "q_a_proj", kQueryRank, kHidden);
    plain(attention + "q_a_layernorm.weight", {kQueryRank});
    matrix(attention + "q_b_proj", kHeads * (kNope + kRope), kQueryRank);
    matrix(attention + "kv_a_proj_with_mqa", kKeyRank + kRope, kHidden);
    plain(attention + "kv_a_layernorm.weight", {kKeyRank});
    matrix(attention + "kv_b_proj", kHeads * (kNope + kValue), kKeyRank);
    matrix(attention + "o_proj", kHidden, kHeads * kValue);
    plain(layer + "post_attention_layernorm.weight", {kHidden});
    if (number < kDenseLayers) return mlp(layer + "mlp", kDense);
    plain(layer + "mlp.gate.weight", {kExperts, kHidden});
    add(layer + "mlp.gate.e_score_correction_bias", "F32", {kExperts}, 4);
    for (unsigned expert = 0; expert < kExperts; ++expert) mlp(fmt::format("{}mlp.experts.{}", layer, expert), kExpert);
    mlp(layer + "mlp.shared_experts", kExpert);
    if (number != kLayers) return;
    plain(layer + "shared_head.norm.weight", {kHidden});
    plain(layer + "shared_head.head.weight", {kVocabulary, kHidden});
  }

  std::vector<Entry> entries_;
};

// A header in the order of the library that wrote the real files: wide types first, and names in order.
void write_shard(const std::string& path, std::vector<Entry> entries) {
  const auto width = [](const Entry& entry) { return entry.dtype == "F32" ? 0 : entry.dtype == "BF16" ? 1 : 2; };
  std::ranges::sort(entries, {}, [&](const Entry& entry) { return std::tuple(width(entry), entry.name); });
  std::string header = "{";
  std::uint64_t end = 0;
  for (const Entry& entry : entries) {
    header += fmt::format("{}\"{}\":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", end == 0 ? "" : ",",
                          entry.name, entry.dtype, fmt::join(entry.shape, ","), end, end + entry.bytes);
    end += entry.bytes;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = header.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), 8).write(header.data(), static_cast<std::streamsize>(length));
  file.close();
  std::filesystem::resize_file(path, 8 + length + end);
}

std::string shard_name(unsigned number) {
  return fmt::format("model-{:05}-of-{:06}.safetensors", number + 1, kMoeShards);
}

}  // namespace

void write_moe_model(const std::string& folder) {
  const std::vector<Entry> entries = Layout().run();
  if (entries.size() != kMoeTensors) throw std::logic_error("the model has other tensors");
  std::uint64_t total = 0, done = 0;
  for (const Entry& entry : entries) total += entry.bytes;
  std::vector<std::vector<Entry>> shards(kMoeShards);
  std::string index;
  for (const Entry& entry : entries) {
    const auto number = static_cast<unsigned>(std::min<std::uint64_t>(done * kMoeShards / total, kMoeShards - 1));
    shards[number].push_back(entry);
    index += fmt::format("{}\"{}\":\"{}\"", index.empty() ? "" : ",", entry.name, shard_name(number));
    done += entry.bytes;
  }
  for (unsigned number = 0; number < kMoeShards; ++number)
    write_shard(folder + "/" + shard_name(number), std::move(shards[number]));
  std::ofstream(folder + "/model.safetensors.index.json")
      << fmt::format("{{\"metadata\":{{\"total_size\":{}}},\"weight_map\":{{{}}}}}", total, index);
}

std::vector<RankRule> moe_rules() {
  // Two heads of 192 rows are three blocks of factors.
  return {{"*.mlp.experts.{n}.*", RankSplit::expert},
          {"*.self_attn.q_b_proj.weight", RankSplit::rows, 384},
          {"*.self_attn.q_b_proj.weight_scale_inv", RankSplit::rows, 3},
          {"*.self_attn.kv_b_proj.weight", RankSplit::rows, 512},
          {"*.self_attn.kv_b_proj.weight_scale_inv", RankSplit::rows, 4},
          {"*.self_attn.o_proj.weight", RankSplit::columns, 256},
          {"*.self_attn.o_proj.weight_scale_inv", RankSplit::columns, 2},
          {"*.shared_experts.*", RankSplit::replicated},
          {"*.mlp.gate_proj.weight", RankSplit::rows, 128},
          {"*.mlp.gate_proj.weight_scale_inv", RankSplit::rows},
          {"*.mlp.up_proj.weight", RankSplit::rows, 128},
          {"*.mlp.up_proj.weight_scale_inv", RankSplit::rows},
          {"*.mlp.down_proj.weight", RankSplit::columns, 128},
          {"*.mlp.down_proj.weight_scale_inv", RankSplit::columns},
          {"*embed_tokens.weight", RankSplit::rows},
          {"*head.weight", RankSplit::rows}};
}

}  // namespace ballast::bench
