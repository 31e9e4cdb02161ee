#include "inspect/value_pass.hpp"

#include <string>

#include "core/thread_pool.hpp"
#include "tensor/pieces.hpp"
#include "tensor/read_ahead.hpp"

namespace ballast {

Tensor numbers_of(const Tensor& tensor) {
  return info(tensor.dtype()).kind == DTypeKind::ggml && tensor.has_data() ? tensor.to(DType::f32) : tensor;
}

std::optional<Error> why_no_statistics(const Tensor& tensor) {
  const bool is_packed = info(tensor.dtype()).kind == DTypeKind::ggml;
  if (!is_packed && !kernels::has_stats(tensor.dtype())) {
    return Error(Errc::unsupported,
                 "values of " + std::string(name(tensor.dtype())) + " have no order to take statistics of");
  }
  if (!tensor.has_data()) return Error(Errc::unsupported, "a meta tensor has no values");
  return std::nullopt;
}

ValuePass::ValuePass(std::span<const Tensor> tensors) : tensors_(tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (const ByteRange& range : cut_by_bytes(tensors[i], kPieceBytes))
      parts_.push_back({i, range.offset, range.size});
  }
}

std::uint64_t ValuePass::first_element(std::size_t part) const {
  const DTypeInfo& type = info(tensor_of(part).dtype());
  return parts_[part].first / type.block_bytes * type.block_elements;
}

void ValuePass::run(unsigned threads, ProgressMeter& meter, const Look& look, const Skip& skip) const {
  const auto is_skipped = [&](std::size_t i) { return skip && skip(i); };
  ReadAhead ahead(parts_.size(), [&](std::size_t i, Announcement& reads) {
    if (!is_skipped(i)) reads.add(tensor_of(i), {parts_[i].first, parts_[i].size});
  });
  ThreadPool(parts_.size() < 2 ? 1 : threads).run(parts_.size(), [&](std::size_t i, unsigned worker) {
    if (is_skipped(i)) return meter.add(parts_[i].size);
    ahead.begin(i);
    for_each_chunk(
        tensor_of(i), parts_[i].first, parts_[i].size,
        [&](std::span<const std::byte> bytes) { look(i, worker, bytes); }, &meter);
  });
}

std::uint64_t row_columns(const Tensor& tensor) {
  if (tensor.rank() < 2) return 0;
  const std::uint64_t columns = tensor.shape()[tensor.rank() - 1];
  return columns >= kFewestColumns && tensor.numel() > columns ? columns : 0;
}

std::vector<ValueScan> scan_parts(const ValuePass& pass, unsigned threads, RowScan rows, ProgressMeter& meter,
                                  const ValuePass::Look& more) {
  std::vector<ValueScan> scans(pass.parts().size());
  for (std::size_t i = 0; i < scans.size() && rows == RowScan::yes; ++i) {
    if (const std::uint64_t columns = row_columns(pass.tensor_of(i)); columns != 0)
      scans[i].rows = kernels::ConstantRows(columns, pass.first_element(i));
  }
  pass.run(threads, meter, [&](std::size_t part, unsigned worker, std::span<const std::byte> bytes) {
    kernels::accumulate(scans[part].moments, pass.tensor_of(part).dtype(), bytes,
                        rows == RowScan::yes ? &scans[part].rows : nullptr);
    if (more) more(part, worker, bytes);
  });
  return scans;
}

std::vector<ValueScan> merged(const ValuePass& pass, std::span<const ValueScan> of_parts, std::size_t tensors) {
  std::vector<ValueScan> all(tensors);
  for (std::size_t i = 0; i < of_parts.size(); ++i) {
    ValueScan& scan = all[pass.parts()[i].number];
    if (pass.parts()[i].first == 0) {
      scan = of_parts[i];
      continue;
    }
    scan.moments.merge(of_parts[i].moments);
    scan.rows.merge(of_parts[i].rows);
  }
  return all;
}

}  // namespace ballast
