#include "checkpoint/agreements/compressed.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/json.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/checked.hpp"
#include "core/deal.hpp"
#include "core/expansion.hpp"
#include "core/json_string.hpp"
#include "core/progress_meter.hpp"
#include "core/read_counter.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "tensor/packed_frames.hpp"
#include "tensor/packed_storage.hpp"

namespace ballast {
namespace {

constexpr std::string_view kCompressedKey = "ballast.compressed";
constexpr std::uint64_t kCompressedVersion = 1;
constexpr std::uint64_t kSmallest = 64 << 10;          // smaller tensors are not worth an entry in the metadata
constexpr std::uint64_t kPartBytes = 8 * kChunkBytes;  // enough work for a thread

// A view that repeats bytes can be of any size: the layout of the file decides whether that is allowed.
bool may_shrink(const Tensor& tensor) {
  if (tensor.nbytes() < kSmallest || !tensor.has_data() || !info(tensor.dtype()).in_safetensors) return false;
  return tensor.is_contiguous() || tensor.nbytes() <= tensor.storage()->size_bytes();
}

// A tensor, under one or several names, and the sizes of its frames.
struct Measured {
  Tensor tensor;
  std::vector<std::string_view> names;
  std::vector<std::uint32_t> frame_bytes;

  std::uint64_t saved_bytes() const { return tensor.nbytes() - packed_bytes(frame_bytes); }
  bool is_worth_it() const { return packed_bytes(frame_bytes) <= tensor.nbytes() - tensor.nbytes() / 32; }
};

// Tensors that are the same elements are compressed once.
std::vector<Measured> candidates(const StateDict& tensors) {
  std::map<std::tuple<const Storage*, std::uint64_t, std::uint64_t, DType>, std::size_t> seen;
  std::vector<Measured> all;
  for (const auto& [name, tensor] : tensors) {
    if (!may_shrink(tensor)) continue;
    std::size_t place = all.size();
    if (tensor.is_contiguous()) {
      place = seen.try_emplace({tensor.storage().get(), tensor.offset(), tensor.nbytes(), tensor.dtype()}, place)
                  .first->second;
    }
    if (place == all.size()) {
      all.push_back({tensor, {}, {}});
      all.back().frame_bytes.resize(static_cast<std::size_t>(chunk_count(tensor.nbytes())));
    }
    all[place].names.push_back(name);
  }
  return all;
}

struct Part {
  Measured* of;
  ByteRange range;
};

// Splits the work by bytes, so that one huge tensor does not leave a core idle. Tensors of one sequential storage are
// read by one thread, in their order; such work cannot be divided, so it begins first.
std::vector<std::vector<Part>> split(std::vector<Measured>& all) {
  std::map<const Storage*, std::vector<Part>> streams;
  std::vector<Part> others;
  for (Measured& measured : all) {
    const Tensor& tensor = measured.tensor;
    if (tensor.storage()->is_sequential()) {
      streams[tensor.storage().get()].push_back({&measured, {0, tensor.nbytes()}});
      continue;
    }
    for (const ByteRange& range : split_by_bytes(tensor.nbytes(), kChunkBytes, kPartBytes))
      others.push_back({&measured, range});
  }
  std::vector<std::vector<Part>> jobs;
  jobs.reserve(streams.size() + others.size());
  for (auto& [storage, parts] : streams) {
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.of->tensor.offset() < b.of->tensor.offset(); });
    jobs.push_back(std::move(parts));
  }
  for (const Part& part : others) jobs.push_back({part});
  return jobs;
}

void measure(const Part& part, ProgressMeter& meter) {
  const Tensor& tensor = part.of->tensor;
  for (std::uint64_t done = 0; done < part.range.size; done += kChunkBytes) {
    const std::uint64_t index = (part.range.offset + done) / kChunkBytes;
    part.of->frame_bytes[static_cast<std::size_t>(index)] = measure_frame(tensor, index);
    meter.add(std::min<std::uint64_t>(kChunkBytes, part.range.size - done));
  }
  tensor.release(part.range);
}

std::span<std::uint32_t> frames_of(const Part& part) {
  return std::span(part.of->frame_bytes).subspan(part.range.offset / kChunkBytes, chunk_count(part.range.size));
}

// Each member of a team compresses its share to see how large it becomes.
void measure_all(std::vector<Measured>& all, const SaveOptions& options) {
  Team& team = team_of(options.team);
  const Progress progress = progress_of(team, options.progress);
  const auto jobs = split(all);
  std::vector<std::uint64_t> sizes;
  for (const std::vector<Part>& job : jobs) {
    sizes.push_back(0);
    for (const Part& part : job) sizes.back() += part.range.size;
  }
  const Deal deal(team, sizes);
  const auto mine = deal.mine();
  std::set<const Storage*> storages;
  for (const std::size_t job : mine) {
    for (const Part& part : jobs[job]) storages.insert(part.of->tensor.storage().get());
  }
  const ReadsOfMember reads(team);
  for (const Storage* storage : storages) storage->prepare(progress);
  ProgressMeter meter(progress, "compressing", std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}));
  ThreadPool(options.threads).run(mine.size(), [&](std::size_t i, unsigned) {
    for (const Part& part : jobs[mine[i]]) measure(part, meter);
  });
  deal.share_spans([&](std::size_t job, auto&& take) {
    for (const Part& part : jobs[job]) take(frames_of(part));
  });
}

std::uint64_t stored_bytes(const StateDict& tensors) {
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor] : tensors)
    bytes = fits(checked_add(bytes, tensor.nbytes()), "the size of the tensors");
  return bytes;
}

// The file must open with the same limits. So if tensors shrink to nearly nothing (zeros of an optimizer), some of them
// are stored plain.
void keep_within(const Limits& limits, const StateDict& tensors, std::vector<Measured>& chosen) {
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const Measured& a, const Measured& b) { return a.saved_bytes() < b.saved_bytes(); });
  std::uint64_t stored = stored_bytes(tensors), added = 0;
  for (const Measured& measured : chosen) added += measured.saved_bytes() * measured.names.size();
  stored -= added;
  while (!chosen.empty() && expands_too_much(limits, added, stored)) {
    const std::uint64_t saved = chosen.back().saved_bytes() * chosen.back().names.size();
    stored += saved;
    added -= saved;
    chosen.pop_back();
  }
}

struct Entry {
  std::string name;
  DType dtype;
  Shape shape;
};

std::string to_json(const std::map<std::string_view, Tensor>& tensors) {
  std::string entries;
  for (const auto& [name, tensor] : tensors) {
    append_json_string(entries += entries.empty() ? "" : ",", name);
    entries += fmt::format(":{{\"dtype\":\"{}\",\"shape\":[{}]}}", ballast::name(tensor.dtype()),
                           fmt::join(tensor.shape(), ","));
  }
  return fmt::format("{{\"version\":{},\"tensors\":{{{}}}}}", kCompressedVersion, entries);
}

// Throws Error for anything that is not as to_json writes it.
std::vector<Entry> from_json(const std::string& text, const Limits& limits) {
  const Json root = Json::parse(text);
  if (root.at("version").count() != kCompressedVersion) throw Error(Errc::unsupported, "another version");
  std::vector<Entry> entries;
  for (const auto& [name, what] : root.at("tensors").members()) {
    const auto dtype = dtype_from_name(what.at("dtype").text());
    std::vector<std::uint64_t> dims;
    for (const Json& dim : what.at("shape").list()) dims.push_back(dim.count());
    if (!dtype || !info(*dtype).in_safetensors || dims.size() > limits.max_rank)
      throw Error(Errc::malformed, "no tensor");
    entries.push_back({name, *dtype, Shape(dims)});
  }
  return entries;
}

// Nothing if the bytes cannot be what the entry says.
std::optional<Tensor> unpacked(const Tensor& packed, const Entry& entry) {
  if (packed.dtype() != DType::u8 || packed.rank() != 1 || !packed.is_contiguous()) return std::nullopt;
  const auto count = entry.shape.numel();
  if (!count) return std::nullopt;
  const auto bytes = bytes_of(entry.dtype, *count);
  if (!bytes || packed.nbytes() < seek_table_bytes(chunk_count(*bytes))) return std::nullopt;
  return Tensor(entry.dtype, entry.shape, unpacked_storage(packed, entry.dtype, *bytes, entry.name));
}

}  // namespace

Checkpoint fold_compressed(Checkpoint checkpoint, const SaveOptions& options) {
  std::vector<Measured> all = candidates(checkpoint.tensors);
  together(team_of(options.team), [&] { measure_all(all, options); });
  std::erase_if(all, [](const Measured& measured) { return !measured.is_worth_it(); });
  keep_within(options.limits, checkpoint.tensors, all);
  if (all.empty()) return checkpoint;

  StateDict tensors = checkpoint.tensors;
  std::map<std::string_view, Tensor> folded;
  for (Measured& measured : all) {
    const std::uint64_t bytes = packed_bytes(measured.frame_bytes);
    const StoragePtr storage =
        packed_storage(measured.tensor, std::move(measured.frame_bytes), std::string(measured.names.front()));
    for (const std::string_view name : measured.names) {
      folded.emplace(name, checkpoint.at(name));
      tensors.replace(name, Tensor(DType::u8, Shape{bytes}, storage));
    }
  }
  checkpoint.metadata[std::string(kCompressedKey)] = to_json(folded);
  checkpoint.tensors = std::move(tensors);
  return checkpoint;
}

Checkpoint unfold_compressed(Checkpoint checkpoint, const Limits& limits) {
  const auto agreement = checkpoint.metadata.find(kCompressedKey);
  if (agreement == checkpoint.metadata.end()) return checkpoint;
  const auto give_up = [&] {
    checkpoint.notes.push_back({checkpoint.target, "the metadata \"ballast.compressed\" does not fit the tensors"});
    return checkpoint;
  };
  std::vector<Entry> entries;
  try {
    entries = from_json(agreement->second, limits);
  } catch (const Error&) {
    return give_up();
  }
  StateDict tensors = checkpoint.tensors;
  std::uint64_t added = 0;
  for (const Entry& entry : entries) {
    const Tensor* packed = checkpoint.find(entry.name);
    if (packed == nullptr) continue;
    auto tensor = unpacked(*packed, entry);
    if (!tensor) return give_up();
    if (tensor->nbytes() > packed->nbytes())
      added = fits(checked_add(added, tensor->nbytes() - packed->nbytes()), "the size of the compressed tensors");
    tensors.replace(entry.name, std::move(*tensor));
  }
  const std::uint64_t stored = stored_bytes(checkpoint.tensors);
  if (expands_too_much(limits, added, stored)) {
    throw Error(Errc::limit,
                fmt::format("{} of tensors would decompress to {} more", format_bytes(stored), format_bytes(added)))
        .in(checkpoint.target)
        .hint(raise_limit("max_expansion_bytes"));
  }
  checkpoint.tensors = std::move(tensors);
  checkpoint.metadata.erase(agreement);
  return checkpoint;
}

}  // namespace ballast
