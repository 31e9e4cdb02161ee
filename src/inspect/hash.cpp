#include <ballast/hash.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "core/deal.hpp"
#include "core/progress_meter.hpp"
#include "core/read_counter.hpp"
#include "core/thread_pool.hpp"
#include "inspect/chunks.hpp"
#include "kernels/digest.hpp"
#include "tensor/read_ahead.hpp"
#include "tensor/repeated_bytes.hpp"
#include "tensor/same_sources.hpp"

namespace ballast {
namespace {

kernels::Sha256::Digest hash_tensor(const Tensor& tensor, ProgressMeter& meter) {
  kernels::Sha256 sha;
  for_each_chunk(
      tensor, 0, tensor.nbytes(), [&](std::span<const std::byte> bytes) { sha.update(bytes); }, &meter);
  return sha.finish();
}

// name NUL dtype NUL shape NUL hex LF
std::string digest_line(const StateDict::Entry& entry, const std::optional<std::string>& hex) {
  std::string line(entry.name);
  line += '\0';
  line += name(entry.tensor.dtype());
  line += '\0';
  for (std::size_t i = 0; i < entry.tensor.rank(); ++i) {
    if (i != 0) line += ',';
    line += std::to_string(entry.tensor.shape()[i]);
  }
  line += '\0';
  line += hex.value_or("");
  line += '\n';
  return line;
}

std::string whole_digest(const StateDict& tensors, const std::vector<HashReport::Tensor>& hashes) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return tensors[a].name < tensors[b].name; });
  kernels::Sha256 sha;
  for (const std::size_t i : order) {
    const std::string line = digest_line(tensors[i], hashes[i].sha256);
    sha.update(std::as_bytes(std::span(line)));
  }
  return sha.hex();
}

// Tensors of the same bytes are read once. For each entry, the number of the first entry with the same bytes, which may
// be the entry itself.
std::vector<std::size_t> first_twins(const StateDict& tensors) {
  std::map<std::tuple<const Storage*, std::uint64_t, std::uint64_t>, std::size_t> seen;
  std::vector<std::size_t> twins(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i].tensor;
    twins[i] = i;
    if (!tensor.is_contiguous()) continue;
    twins[i] = seen.try_emplace({tensor.storage().get(), tensor.offset(), tensor.nbytes()}, i).first->second;
  }
  return twins;
}

StateDict decode_blocks(const StateDict& tensors) {
  StateDict decoded;
  decoded.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors)
    decoded.insert(name, info(tensor.dtype()).kind == DTypeKind::ggml ? tensor.to(DType::f32) : tensor);
  return decoded;
}

// The digests of these tensors, each by the member of the team that it was dealt to.
std::vector<kernels::Sha256::Digest> hash_tensors(const StateDict& tensors, std::span<const std::size_t> numbers,
                                                  const HashOptions& options) {
  Team& team = team_of(options.team);
  std::vector<std::uint64_t> sizes;
  for (const std::size_t number : numbers) sizes.push_back(tensors[number].tensor.nbytes());
  const Deal deal(team, sizes);
  const auto mine = deal.mine();
  ProgressMeter meter(progress_of(team, options.progress), "hashing",
                      std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}));
  ReadAhead ahead(mine.size(), [&](std::size_t i, Announcement& reads) {
    reads.add(tensors[numbers[mine[i]]].tensor, {0, sizes[mine[i]]});
  });
  std::vector<kernels::Sha256::Digest> digests(numbers.size());
  const ReadsOfMember reads(team);
  ThreadPool(options.threads).run(mine.size(), [&](std::size_t i, unsigned) {
    ahead.begin(i);
    digests[mine[i]] = hash_tensor(tensors[numbers[mine[i]]].tensor, meter);
  });
  deal.share(std::span(digests));
  return digests;
}

HashReport hash_all(const Checkpoint& checkpoint, const HashOptions& options) {
  const StateDict tensors = options.decoded ? decode_blocks(checkpoint.tensors) : checkpoint.tensors;
  const std::vector<std::size_t> twins = first_twins(tensors);
  std::vector<std::size_t> work;
  RepeatedBytes repeated(options.limits);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (twins[i] != i || !tensors[i].tensor.has_data()) continue;
    repeated.add(tensors[i].name, tensors[i].tensor);
    work.push_back(i);
  }
  // A digest cannot be split: the longest tensors begin first, so that none is left to run alone at the end.
  std::stable_sort(work.begin(), work.end(), [&](std::size_t a, std::size_t b) {
    return tensors[a].tensor.nbytes() > tensors[b].tensor.nbytes();
  });

  HashReport report;
  for (const auto& [name, tensor] : tensors) report.tensors.push_back({std::string(name), std::nullopt});
  const auto digests = hash_tensors(tensors, work, options);
  for (std::size_t i = 0; i < work.size(); ++i) report.tensors[work[i]].sha256 = kernels::to_hex(digests[i]);
  for (std::size_t i = 0; i < tensors.size(); ++i) report.tensors[i].sha256 = report.tensors[twins[i]].sha256;
  report.digest = whole_digest(tensors, report.tensors);
  return report;
}

}  // namespace

HashReport hash(const Checkpoint& checkpoint, const HashOptions& options) {
  HashReport report;
  together(team_of(options.team), [&] {
    check_same_sources(team_of(options.team), checkpoint);
    report = hash_all(checkpoint, options);
  });
  return report;
}

}  // namespace ballast
