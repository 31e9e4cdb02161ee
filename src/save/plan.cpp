#include "save/plan.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "formats/npy/layout.hpp"
#include "formats/safetensors/layout.hpp"
#include "save/engine.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEnding = ".safetensors";

// A folder stands for the file that Hugging Face's tools would look for in it.
fs::path file_for(const std::string& path) {
  std::error_code ignored;
  const bool names_folder = !path.empty() && path.back() == '/';
  if (names_folder || fs::is_directory(path, ignored)) return fs::path(path) / "model.safetensors";
  if (fs::path(path).extension() == kEnding) return path;
  throw Error(Errc::unsupported, "cannot tell from its ending in which format " + quote(path) + " should be written")
      .hint("the name of a safetensors file ends in .safetensors");
}

SavePlan::File plan_safetensors(const Entries& entries, const Metadata& metadata, const std::string& path,
                                const Limits& limits) {
  const safetensors::Layout layout = safetensors::lay_out(entries, metadata, limits);
  SavePlan::File file{path, layout.head, {}, layout.size_bytes};
  file.items.reserve(layout.items.size());
  for (const auto& item : layout.items) file.items.push_back({std::string(item.name), *item.tensor, item.offset});
  return file;
}

SavePlan::File plan_index(const std::vector<ShardContents>& shards, const std::string& path) {
  const std::string text = shard_index_json(shards);
  const auto bytes = std::as_bytes(std::span(text));
  return {path, {bytes.begin(), bytes.end()}, {}, bytes.size()};
}

// A view with a stride of 0 repeats bytes: 4 of them can claim to be an exbibyte.
void check_expansion(const SavePlan& plan, const Limits& limits) {
  std::uint64_t expanded = 0, real = 0;
  for (const SavePlan::File& file : plan.files) {
    for (const SavePlan::Item& item : file.items) {
      const std::uint64_t size = item.tensor.nbytes();
      const std::uint64_t stored = item.tensor.storage() ? item.tensor.storage()->size_bytes() : 0;
      if (item.tensor.is_contiguous() || size <= stored) continue;
      expanded += size - stored;
      real += stored;
      if (expanded > limits.max_expansion_bytes && expanded / limits.max_expansion_ratio > real) {
        throw Error(Errc::limit, "tensor " + quote(item.name) + " repeats its " + std::to_string(stored) +
                                     " bytes to make " + std::to_string(size))
            .hint("leave it out with --exclude");
      }
    }
  }
}

void finish(SavePlan& plan, const SaveOptions& options) {
  bool needs_buffers = false;
  for (const SavePlan::File& file : plan.files) {
    for (const SavePlan::Item& item : file.items) {
      plan.data_bytes += item.tensor.nbytes();
      needs_buffers = needs_buffers || !item.tensor.is_contiguous() || !item.tensor.is_mapped();
    }
  }
  check_expansion(plan, options.limits);
  const unsigned threads = options.threads ? options.threads : available_threads();
  plan.memory_bytes = std::min(buffer_bytes_each(options), plan.data_bytes) * threads;
  if (!needs_buffers) plan.memory_bytes = std::min(plan.memory_bytes, plan.data_bytes);
}

}  // namespace

std::uint64_t SavePlan::total_bytes() const noexcept {
  std::uint64_t total = 0;
  for (const File& file : files) total += file.size_bytes;
  return total;
}

SavePlan plan_files(const Entries& entries, const Metadata& metadata, const std::string& path,
                    const SaveOptions& options) {
  const fs::path file = file_for(path);
  const std::vector<Entries> shards = split_into_shards(entries, options.max_shard_bytes);
  SavePlan plan;
  if (shards.size() == 1) {
    plan.files.push_back(plan_safetensors(entries, metadata, file.string(), options.limits));
  } else {
    std::vector<ShardContents> contents;
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const std::string name = shard_name(file.stem().string(), i + 1, shards.size(), kEnding);
      plan.files.push_back(plan_safetensors(shards[i], metadata, (file.parent_path() / name).string(), options.limits));
      contents.push_back({name, shards[i]});
    }
    plan.files.push_back(plan_index(contents, file.string() + ".index.json"));
  }
  finish(plan, options);
  return plan;
}

SavePlan plan_npy(const Tensor& tensor, const std::string& path, const SaveOptions& options) {
  std::vector<std::byte> head = npy::encode_header(tensor);
  const std::uint64_t begin = head.size();
  SavePlan plan;
  plan.files.push_back({path, std::move(head), {{"", tensor, begin}}, begin + tensor.nbytes()});
  finish(plan, options);
  return plan;
}

}  // namespace ballast
