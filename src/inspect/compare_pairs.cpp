#include "inspect/compare_pairs.hpp"

#include <functional>

#include "core/progress_meter.hpp"
#include "core/thread_pool.hpp"
#include "inspect/chunks.hpp"
#include "kernels/cast.hpp"
#include "tensor/read_ahead.hpp"
#include "tensor/repeated_bytes.hpp"

namespace ballast {
namespace {

using Look = std::function<void(std::span<const std::byte>)>;

bool is_packed(DType dtype) { return info(dtype).kind == DTypeKind::ggml; }

bool has_values(DType dtype) { return is_packed(dtype) || kernels::can_cast(dtype, DType::f64); }

// Whether F32 holds every value of the dtype.
bool fits_f32(DType dtype) {
  const DTypeInfo& type = info(dtype);
  return is_packed(dtype) || dtype == DType::f32 || type.block_bytes * 8U <= type.block_elements * 16U;
}

// Bytes [first, first + size) of a tensor, in place if they are mapped, else through the buffer.
void look_at(const Tensor& tensor, std::uint64_t first, std::uint64_t size, std::vector<std::byte>& buffer,
             const Look& look) {
  if (tensor.is_contiguous()) {
    if (tensor.storage()->visit(tensor.offset() + first, size, look)) return;
  }
  buffer.resize(size);
  tensor.read(first, buffer);
  look(buffer);
}

kernels::Difference compare_part(const TensorPair& pair, const TensorPart& part, const kernels::Closeness& close,
                                 ProgressMeter& meter) {
  kernels::Difference difference;
  std::vector<std::byte> buffer;
  std::span<const std::byte> left;
  std::uint64_t at = part.first;
  PageReturn pages_of_b(pair.b, at);
  pair.b.storage()->prepare({});
  const Look compare = [&](std::span<const std::byte> right) {
    kernels::accumulate(difference, pair.a.dtype(), left, right, close);
  };
  const Look look = [&](std::span<const std::byte> bytes) {
    left = bytes;
    look_at(pair.b, at, bytes.size(), buffer, compare);
    at += bytes.size();
    pages_of_b.looked_at(at);
  };
  for_each_chunk(pair.a, part.first, part.size, look, &meter);
  pages_of_b.finish(at);
  return difference;
}

}  // namespace

TensorPair as_numbers(const TensorPair& pair) {
  const DType a = pair.a.dtype(), b = pair.b.dtype();
  if (!has_values(a) || !has_values(b)) return pair;
  const DType common = fits_f32(a) && fits_f32(b) ? DType::f32 : DType::f64;
  return {pair.name, pair.a.to(common), pair.b.to(common)};
}

std::vector<kernels::Difference> compare_pairs(std::span<const TensorPair> pairs, const kernels::Closeness& close,
                                               const DiffOptions& options) {
  std::vector<const Tensor*> tensors;
  RepeatedBytes repeated_a(options.limits), repeated_b(options.limits);
  std::uint64_t total = 0;
  for (const TensorPair& pair : pairs) {
    repeated_a.add(pair.name, pair.a);
    repeated_b.add(pair.name, pair.b);
    tensors.push_back(&pair.a);
    total += pair.a.nbytes();
  }
  const auto parts = split_tensors(tensors);
  std::vector<kernels::Difference> of_parts(parts.size()), differences(pairs.size());
  ProgressMeter meter(options.progress, "comparing", total);
  ReadAhead ahead(parts.size(), [&](std::size_t i, Announcement& reads) {
    const TensorPair& pair = pairs[parts[i].number];
    for (const Tensor* tensor : {&pair.a, &pair.b}) reads.add(*tensor, {parts[i].first, parts[i].size});
  });
  ThreadPool(options.threads).run(parts.size(), [&](std::size_t i, unsigned) {
    ahead.begin(i);
    of_parts[i] = compare_part(pairs[parts[i].number], parts[i], close, meter);
  });
  for (std::size_t i = 0; i < parts.size(); ++i) differences[parts[i].number].merge(of_parts[i]);
  return differences;
}

}  // namespace ballast
