#include "save/plan.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "formats/gguf/layout.hpp"
#include "save/engine.hpp"
#include "save/layouts.hpp"
#include "save/shards.hpp"
#include "tensor/repeated_bytes.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

struct OutputFormat {
  std::string_view ending;
  Format format;
  std::unique_ptr<Layouts> (*layouts)(const Checkpoint&, const SaveOptions&);
};

constexpr OutputFormat kFormats[] = {
    {".safetensors", Format::safetensors, safetensors_layouts},
    {".pt", Format::torch_zip, torch_layouts},
    {".pth", Format::torch_zip, torch_layouts},
    {".bin", Format::torch_zip, torch_layouts},
    {".ckpt", Format::torch_zip, torch_layouts},
    {".gguf", Format::gguf, nullptr},  // its parts know each other without an index
};

// A folder stands for the file that Hugging Face's tools would look for in it.
fs::path file_for(const std::string& path) {
  std::error_code ignored;
  const bool names_folder = !path.empty() && path.back() == '/';
  return names_folder || fs::is_directory(path, ignored) ? fs::path(path) / "model.safetensors" : fs::path(path);
}

const OutputFormat& output_format(const fs::path& file) {
  for (const OutputFormat& format : kFormats) {
    if (file.extension() == format.ending) return format;
  }
  throw Error(Errc::unsupported,
              "cannot tell from its ending in which format " + quote(file.string()) + " should be written")
      .hint(
          "the name of a safetensors file ends in .safetensors, that of a torch file in .pt, .pth, .bin or .ckpt, that "
          "of "
          "a GGUF file in .gguf");
}

SavePlan::File plan_index(std::span<const ShardContents> shards, std::span<const Bundle> bundles,
                          const std::string& path) {
  const std::string text = shard_index_json(shards, bundles);
  const auto bytes = std::as_bytes(std::span(text));
  return {path, {bytes.begin(), bytes.end()}, {}, bytes.size()};
}

void finish(SavePlan& plan, const SaveOptions& options) {
  bool needs_buffers = false;
  RepeatedBytes repeated(options.limits);
  for (const SavePlan::File& file : plan.files) {
    for (const SavePlan::Item& item : file.items) {
      repeated.add(item.name, item.tensor);
      plan.data_bytes += item.tensor.nbytes();
      needs_buffers = needs_buffers || !item.tensor.is_contiguous() || !item.tensor.is_mapped();
    }
  }
  const unsigned threads = options.threads ? options.threads : available_threads();
  plan.memory_bytes = std::min(buffer_bytes_each(options), plan.data_bytes) * threads;
  if (!needs_buffers) plan.memory_bytes = std::min(plan.memory_bytes, plan.data_bytes);
}

SavePlan plan_gguf(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  std::vector<const StateDict::Entry*> entries;
  for (const auto& entry : checkpoint) entries.push_back(&entry);
  const std::uint64_t most = options.max_shard_bytes == 0 ? UINT64_MAX : options.max_shard_bytes;
  SavePlan plan;
  for (gguf::Part& part :
       gguf::lay_out_parts(entries, checkpoint.fields, path, most, checkpoint.unknown_ggml, options.limits)) {
    SavePlan::File file{part.path, std::move(part.layout.head), {}, part.layout.size_bytes, part.layout.items.size()};
    for (const auto& item : part.layout.items)
      file.items.push_back({std::string(item.name), *item.tensor, item.offset});
    plan.files.push_back(std::move(file));
  }
  finish(plan, options);
  return plan;
}

}  // namespace

std::uint64_t SavePlan::total_bytes() const noexcept {
  std::uint64_t total = 0;
  for (const File& file : files) total += file.size_bytes;
  return total;
}

Format format_for(const std::string& path) { return output_format(file_for(path)).format; }

SavePlan plan_files(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  const fs::path file = file_for(path);
  if (output_format(file).format == Format::gguf) return plan_gguf(checkpoint, file.string(), options);
  const auto layouts = output_format(file).layouts(checkpoint, options);
  const std::vector<Bundle> bundles = layouts->bundles();
  const auto shards = split_into_shards(bundles, options.max_shard_bytes);

  const std::string index = file.string() + ".index.json";

  SavePlan plan;
  if (shards.size() == 1) {
    plan.files.push_back(layouts->lay_out(shards.front(), file.string(), plan.notes));
    plan.rival = index;
  } else {
    std::vector<ShardContents> contents;
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const std::string name = shard_name(file.stem().string(), i + 1, shards.size(), file.extension().string());
      plan.files.push_back(layouts->lay_out(shards[i], (file.parent_path() / name).string(), plan.notes));
      contents.push_back({name, {}});
      for (const std::size_t value : shards[i]) contents.back().names.push_back(layouts->name(value));
    }
    plan.files.push_back(plan_index(contents, bundles, index));
    plan.rival = file.string();
  }
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

}  // namespace ballast
