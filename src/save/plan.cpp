#include "save/plan.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "core/remedy.hpp"
#include "core/shard_name.hpp"
#include "core/text.hpp"
#include "save/engine.hpp"
#include "save/shards.hpp"
#include "tensor/ancestors.hpp"
#include "tensor/repeated_bytes.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

SavePlan::File plan_index(std::span<const ShardContents> shards, std::span<const Bundle> bundles,
                          const std::string& path) {
  const std::string text = shard_index_json(shards, bundles);
  const auto bytes = std::as_bytes(std::span(text));
  return {path, {bytes.begin(), bytes.end()}, {}, bytes.size()};
}

void finish(SavePlan& plan, const SaveOptions& options) {
  bool needs_buffers = false;
  std::uint64_t kept_bytes = 0;
  std::set<const Storage*> counted;
  RepeatedBytes repeated(options.limits);
  for (const SavePlan::File& file : plan.files) {
    for (const SavePlan::Item& item : file.items) {
      repeated.add(item.name, item.tensor);
      plan.data_bytes += item.tensor.nbytes();
      kept_bytes += kept_memory_bytes(item.tensor, counted);
      needs_buffers = needs_buffers || !item.tensor.is_contiguous() || !item.tensor.is_mapped();
    }
  }
  const Buffers buffers = buffers_of(plan, options);
  plan.memory_bytes = std::min(buffers.bytes_each, plan.data_bytes) * buffers.threads;
  if (!needs_buffers) plan.memory_bytes = std::min(plan.memory_bytes, plan.data_bytes);
  plan.memory_bytes += kept_bytes;
}

}  // namespace

std::uint64_t SavePlan::total_bytes() const noexcept {
  std::uint64_t total = 0;
  for (const File& file : files) total += file.size_bytes;
  return total;
}

SavePlan plan_files(const Checkpoint& checkpoint, const FileFormat& format, const std::string& path,
                    const SaveOptions& options) {
  const auto layouts = format.layouts(checkpoint, options);
  const std::vector<Bundle> bundles = layouts->bundles();
  const auto shards = split_into_shards(bundles, options.max_shard_bytes);
  if (shards.size() > 1 && format.sharding == Sharding::none) {
    throw Error(Errc::unsupported, std::string(format.written) + " is one file, whatever its size")
        .in(path)
        .hint("leave " + mention(Remedy::max_shard_bytes) + " out, or write a .safetensors file");
  }
  const bool has_index = format.sharding == Sharding::by_index;
  const std::string index = path + std::string(kIndexEnding);

  SavePlan plan;
  std::vector<ShardContents> contents;
  const fs::path file = path;
  ShardName name{(file.parent_path() / file.stem()).string(), 1, shards.size(), file.extension().string()};
  for (std::size_t i = 0; i < shards.size(); ++i, ++name.number) {
    const FilePlace place{shards.size() == 1 ? path : name.text(), i, shards.size()};
    plan.files.push_back(layouts->lay_out(shards[i], place, plan.notes));
    contents.push_back({fs::path(place.path).filename().string(), {}});
    for (const std::size_t value : shards[i]) contents.back().names.push_back(layouts->name(value));
  }
  if (has_index && shards.size() > 1) plan.files.push_back(plan_index(contents, bundles, index));
  if (has_index) plan.rival = shards.size() == 1 ? index : path;
  finish(plan, options);
  return plan;
}

SavePlan plan_tensor(const Tensor& tensor, std::vector<std::byte> head, const std::string& path,
                     const SaveOptions& options, const std::string& name) {
  const std::uint64_t begin = head.size();
  SavePlan plan;
  plan.files.push_back({path, std::move(head), {{name, tensor, begin}}, begin + tensor.nbytes(), 1});
  finish(plan, options);
  return plan;
}

void add_file(SavePlan& plan, SavePlan::File file) {
  const bool has_index = !plan.files.empty() && plan.files.back().path.ends_with(kIndexEnding);
  plan.files.insert(plan.files.end() - (has_index ? 1 : 0), std::move(file));
}

}  // namespace ballast
