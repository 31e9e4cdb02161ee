#include <ballast/error.hpp>
#include <ballast/json.hpp>
#include <ballast/manifest.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "core/deal.hpp"
#include "core/json_string.hpp"
#include "core/name_hash.hpp"
#include "core/progress_meter.hpp"
#include "core/read_counter.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "inspect/chunks.hpp"
#include "io/section.hpp"
#include "kernels/digest.hpp"
#include "tensor/read_ahead.hpp"
#include "tensor/repeated_bytes.hpp"
#include "tensor/same_sources.hpp"

namespace ballast {
namespace {

constexpr std::string_view kSchema = "ballast.manifest/1";
constexpr std::uint64_t kHashedPartBytes = 256 * kernels::kLeafBytes;

// A tensor whose digest several threads compute.
struct Work {
  const Tensor* tensor;
  std::optional<std::uint64_t>* digest;
  std::vector<std::uint64_t> leaves;
};
struct Part {
  Work* work;
  ByteRange range;
};

std::span<std::uint64_t> leaves_of(const Part& part) {
  return std::span(part.work->leaves)
      .subspan(part.range.offset / kernels::kLeafBytes, kernels::leaf_count(part.range.size));
}

void hash_part(const Part& part, ProgressMeter& meter) {
  std::span<std::uint64_t> leaves = leaves_of(part);
  const auto look = [&](std::span<const std::byte> bytes) {
    const std::uint64_t count = kernels::leaf_count(bytes.size());
    kernels::hash_leaves(bytes, leaves.first(count));
    leaves = leaves.subspan(count);
  };
  for_each_chunk(*part.work->tensor, part.range.offset, part.range.size, look, &meter, kernels::kLeafBytes);
}

std::vector<Part> split(std::vector<Work>& works) {
  std::vector<Part> parts;
  for (Work& work : works) {
    const std::uint64_t size = work.tensor->nbytes();
    if (size == 0) continue;
    const bool is_whole = work.tensor->storage()->is_sequential();
    for (const ByteRange& range : split_by_bytes(size, kernels::kLeafBytes, is_whole ? size : kHashedPartBytes))
      parts.push_back({&work, range});
  }
  return parts;
}

void take_digests(std::vector<Work>& works, const ManifestOptions& options) {
  std::uint64_t total = 0;
  for (Work& work : works) {
    total += work.tensor->nbytes();
    work.leaves.resize(kernels::leaf_count(work.tensor->nbytes()));
    if (work.tensor->nbytes() == 0) kernels::hash_leaves({}, work.leaves);
  }
  const std::vector<Part> parts = split(works);
  std::vector<std::uint64_t> sizes;
  for (const Part& part : parts) sizes.push_back(part.range.size);
  Team& team = team_of(options.team);
  const Deal deal(team, sizes);
  const auto mine = deal.mine();
  ProgressMeter meter(progress_of(team, options.progress), "hashing", total);
  ReadAhead ahead(mine.size(), [&](std::size_t i, Announcement& reads) {
    reads.add(*parts[mine[i]].work->tensor, parts[mine[i]].range);
  });
  const ReadsOfMember reads(team);
  ThreadPool(options.threads).run(mine.size(), [&](std::size_t i, unsigned) {
    ahead.begin(i);
    hash_part(parts[mine[i]], meter);
  });
  deal.share_spans([&](std::size_t part, auto&& take) { take(leaves_of(parts[part])); });
  for (Work& work : works) *work.digest = kernels::join_leaves(work.leaves);
}

std::string to_json(const Manifest& manifest) {
  std::string text = fmt::format("{{\"schema\":\"{}\",\"tensors\":[", kSchema);
  const char* separator = "\n";
  for (const Manifest::Entry& entry : manifest.tensors) {
    text += std::exchange(separator, ",\n");
    text += "{\"name\":";
    append_json_string(text, entry.name);
    text += fmt::format(",\"dtype\":\"{}\",\"shape\":[{}],\"xxh3\":", name(entry.dtype), fmt::join(entry.shape, ","));
    text += entry.digest ? "\"" + kernels::to_hex(*entry.digest) + "\"}" : "null}";
  }
  return text + "\n]}\n";
}

std::uint64_t digest_from_hex(std::string_view hex) {
  std::uint64_t digest = 0;
  const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), digest, 16);
  if (hex.size() != 16 || error != std::errc{} || end != hex.data() + hex.size())
    throw Error(Errc::malformed, quote(hex) + " is no digest of 16 hexadecimal digits");
  return digest;
}

Manifest::Entry entry_from_json(const Json& element, const Limits& limits) {
  const std::string& dtype_name = element.at("dtype").text();
  const auto dtype = dtype_from_name(dtype_name);
  if (!dtype) throw Error(Errc::malformed, quote(dtype_name) + " is no dtype");
  std::vector<std::uint64_t> dims;
  for (const Json& dim : element.at("shape").list()) dims.push_back(dim.count());
  if (dims.size() > limits.max_rank)
    throw Error(Errc::limit, "a tensor of " + std::to_string(dims.size()) + " dimensions")
        .hint(raise_limit("max_rank"));
  Manifest::Entry entry{element.at("name").text(), *dtype, Shape(dims), std::nullopt};
  if (const Json& digest = element.at("xxh3"); !digest.is_null()) entry.digest = digest_from_hex(digest.text());
  return entry;
}

}  // namespace

Manifest make_manifest(const Checkpoint& checkpoint, std::span<const TensorDigest> known,
                       const ManifestOptions& options) {
  NameViewMap<std::uint64_t> digests;
  for (const TensorDigest& digest : known) digests.emplace(digest.name, digest.digest);
  Manifest manifest;
  manifest.tensors.reserve(checkpoint.size());
  std::vector<Work> works;
  RepeatedBytes repeated(options.limits);
  for (const auto& [name, tensor] : checkpoint) {
    manifest.tensors.push_back({std::string(name), tensor.dtype(), tensor.shape(), std::nullopt});
    const auto found = digests.find(name);
    if (found != digests.end()) {
      manifest.tensors.back().digest = found->second;
    } else if (tensor.has_data()) {
      repeated.add(name, tensor);
      works.push_back({&tensor, &manifest.tensors.back().digest, {}});
    }
  }
  together(team_of(options.team), [&] {
    check_same_sources(team_of(options.team), checkpoint);
    take_digests(works, options);
  });
  return manifest;
}

void save_manifest(const Manifest& manifest, const std::string& path, const SaveOptions& options) {
  const std::string text = to_json(manifest);
  const auto bytes = std::as_bytes(std::span(text));
  SavePlan plan;
  plan.files.push_back({path, {bytes.begin(), bytes.end()}, {}, bytes.size()});
  execute(plan, options);
}

Manifest load_manifest(const std::string& path, const Limits& limits) try {
  const auto text = io::read_text_file(path, limits);
  const Json root = Json::parse(text->view());
  if (const Json* schema = root.find("schema"); schema == nullptr || *schema != Json(kSchema)) {
    throw Error(Errc::malformed, fmt::format("is no manifest: it has no schema \"{}\"", kSchema))
        .hint(mention(Remedy::manifest) + " writes one");
  }
  Manifest manifest;
  for (const Json& element : root.at("tensors").list()) manifest.tensors.push_back(entry_from_json(element, limits));
  return manifest;
} catch (Error& error) {
  throw error.in(path);
}

}  // namespace ballast
