#include "inspect/value_pass.hpp"

#include <string>

#include "core/read_counter.hpp"
#include "core/thread_pool.hpp"
#include "tensor/pieces.hpp"
#include "tensor/read_ahead.hpp"

namespace ballast {
namespace {

std::vector<TensorPart> cut(std::span<const Tensor> tensors) {
  std::vector<TensorPart> parts;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (const ByteRange& range : cut_by_bytes(tensors[i], kPieceBytes)) parts.push_back({i, range.offset, range.size});
  }
  return parts;
}

std::vector<std::uint64_t> sizes_of(std::span<const TensorPart> parts) {
  std::vector<std::uint64_t> sizes;
  for (const TensorPart& part : parts) sizes.push_back(part.size);
  return sizes;
}

}  // namespace

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

ValuePass::ValuePass(std::span<const Tensor> tensors, Team& team)
    : tensors_(tensors), team_(team), parts_(cut(tensors)), deal_(team, sizes_of(parts_)) {}

std::uint64_t ValuePass::first_element(std::size_t part) const {
  const DTypeInfo& type = info(tensor_of(part).dtype());
  return parts_[part].first / type.block_bytes * type.block_elements;
}

void ValuePass::run(unsigned threads, ProgressMeter& meter, const Look& look, const Skip& skip) const {
  const auto mine = deal_.mine();
  const auto is_skipped = [&](std::size_t part) { return skip && skip(part); };
  ReadAhead ahead(mine.size(), [&](std::size_t i, Announcement& reads) {
    const TensorPart& part = parts_[mine[i]];
    if (!is_skipped(mine[i])) reads.add(tensor_of(mine[i]), {part.first, part.size});
  });
  const ReadsOfMember reads(team_);
  ThreadPool(mine.size() < 2 ? 1 : threads).run(mine.size(), [&](std::size_t i, unsigned worker) {
    const std::size_t part = mine[i];
    if (is_skipped(part)) return meter.add(parts_[part].size);
    ahead.begin(i);
    for_each_chunk(
        tensor_of(part), parts_[part].first, parts_[part].size,
        [&](std::span<const std::byte> bytes) { look(part, worker, bytes); }, &meter);
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
  pass.deal().share(std::span(scans));
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
