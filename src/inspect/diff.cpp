#include <ballast/diff.hpp>

#include <algorithm>
#include <vector>

#include "core/progress_meter.hpp"
#include "core/thread_pool.hpp"
#include "inspect/chunks.hpp"
#include "kernels/compare.hpp"
#include "tensor/read_ahead.hpp"
#include "tensor/repeated_bytes.hpp"

namespace ballast {
namespace {

bool are_same_bytes(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.offset() == b.offset() && a.is_contiguous() && b.is_contiguous();
}

struct Pair {
  std::string_view name;
  const Tensor *a, *b;
};

// Blocks have bits, but no distance: with a tolerance, the values that they stand for are compared.
Tensor comparable(const Tensor& tensor, double tolerance) {
  return tolerance > 0 && info(tensor.dtype()).kind == DTypeKind::ggml ? tensor.to(DType::f32) : tensor;
}

DiffReport::Change describe(const Pair& pair, DiffReport::What what) {
  return {std::string(pair.name), what, pair.a->dtype(), pair.b->dtype(), pair.a->shape(), pair.b->shape()};
}

// Compares a part of both tensors: reads `a` in place if it can, and `b` through a buffer.
kernels::Difference compare_part(const Pair& pair, const TensorPart& part, double tolerance, ProgressMeter& meter) {
  kernels::Difference difference;
  std::vector<std::byte> buffer;
  std::uint64_t at = part.first;
  pair.b->storage()->prepare({});
  const auto compare = [&](std::span<const std::byte> bytes) {
    buffer.resize(bytes.size());
    pair.b->read(at, buffer);
    at += bytes.size();
    kernels::accumulate(difference, pair.a->dtype(), bytes, buffer, tolerance);
  };
  for_each_chunk(*pair.a, part.first, part.size, compare, &meter);
  return difference;
}

void compare_values(DiffReport& report, const std::vector<Pair>& pairs, const DiffOptions& options) {
  std::vector<Tensor> all_a, all_b;
  std::vector<Pair> comparables;
  all_a.reserve(pairs.size());
  all_b.reserve(pairs.size());
  for (const Pair& pair : pairs) {
    all_a.push_back(comparable(*pair.a, options.tolerance));
    all_b.push_back(comparable(*pair.b, options.tolerance));
    comparables.push_back({pair.name, &all_a.back(), &all_b.back()});
  }
  std::vector<const Tensor*> tensors;
  RepeatedBytes repeated_a(options.limits), repeated_b(options.limits);
  std::uint64_t total = 0;
  for (const Pair& pair : comparables) {
    repeated_a.add(pair.name, *pair.a);
    repeated_b.add(pair.name, *pair.b);
    tensors.push_back(pair.a);
    total += pair.a->nbytes();
  }
  const auto parts = split_tensors(tensors);
  std::vector<kernels::Difference> of_parts(parts.size()), differences(pairs.size());
  ProgressMeter meter(options.progress, "comparing", total);
  ReadAhead ahead(parts.size(), [&](std::size_t i, Announcement& reads) {
    const Pair& pair = comparables[parts[i].number];
    for (const Tensor* tensor : {pair.a, pair.b}) reads.add(*tensor, {parts[i].first, parts[i].size});
  });
  ThreadPool(options.threads).run(parts.size(), [&](std::size_t i, unsigned) {
    ahead.begin(i);
    of_parts[i] = compare_part(comparables[parts[i].number], parts[i], options.tolerance, meter);
  });
  for (std::size_t i = 0; i < parts.size(); ++i) differences[parts[i].number].merge(of_parts[i]);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (differences[i].equal()) {
      ++report.equal_count;
      continue;
    }
    DiffReport::Change change = describe(pairs[i], DiffReport::What::values);
    change.compared = differences[i].count;
    change.different = differences[i].different;
    change.max_abs = differences[i].max_abs;
    change.max_rel = differences[i].max_rel;
    change.nan_mismatch = differences[i].nan_mismatch;
    report.changed.push_back(std::move(change));
  }
}

}  // namespace

DiffReport diff(const Checkpoint& a, const Checkpoint& b, const DiffOptions& options) {
  DiffReport report;
  std::vector<Pair> to_compare;
  for (const auto& [name, tensor] : a) {
    const Tensor* other = b.find(name);
    if (other == nullptr) {
      report.only_in_a.emplace_back(name);
      continue;
    }
    const Pair pair{name, &tensor, other};
    if (tensor.shape() != other->shape()) {
      report.changed.push_back(describe(pair, DiffReport::What::shape));
    } else if (tensor.dtype() != other->dtype()) {
      report.changed.push_back(describe(pair, DiffReport::What::dtype));
    } else if (!options.values || tensor.nbytes() == 0 || are_same_bytes(tensor, *other)) {
      ++report.equal_count;
    } else if (tensor.has_data() != other->has_data()) {
      report.changed.push_back(describe(pair, DiffReport::What::data));
    } else if (!tensor.has_data()) {
      ++report.equal_count;
    } else {
      to_compare.push_back(pair);
    }
  }
  for (const auto& [name, tensor] : b) {
    if (!a.contains(name)) report.only_in_b.emplace_back(name);
  }
  compare_values(report, to_compare, options);
  return report;
}

}  // namespace ballast
