#include "tensor/concat_storage.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "core/remedy.hpp"
#include "tensor/derived_storage.hpp"

namespace ballast {
namespace {

// The bytes repeat in rounds, one round for each index before the axis; a round has a run of bytes from every part.
class ConcatStorage final : public DerivedStorage {
 public:
  ConcatStorage(std::vector<Tensor> parts, std::vector<std::uint64_t> runs, std::uint64_t rounds, std::string step)
      : DerivedStorage(std::move(parts), std::move(step)), runs_(std::move(runs)), rounds_(rounds) {
    for (const std::uint64_t run : runs_) round_bytes_ += run;
  }

  std::uint64_t size_bytes() const override { return round_bytes_ * rounds_; }
  // If each part is one whole run, the pages of one part can be released while the others are read.
  void release(std::uint64_t offset, std::uint64_t size) const override {
    for_each_run(offset, size, [](const Tensor& part, ByteRange run) { part.release(run); });
  }
  void prefetch(std::span<const ByteRange> ranges) const override {
    for (const ByteRange& range : ranges)
      for_each_run(range.offset, range.size,
                   [](const Tensor& part, ByteRange run) { part.prefetch(std::span(&run, 1)); });
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    for_each_run(offset, out.size(), [&](const Tensor& part, ByteRange run) {
      part.read(run.offset, out.first(run.size));
      out = out.subspan(run.size);
    });
  }

 private:
  // Calls look(part, range of the part) for every run in a range, in order.
  template <class Look>
  void for_each_run(std::uint64_t offset, std::uint64_t size, const Look& look) const {
    std::uint64_t round = offset / round_bytes_, skip = offset % round_bytes_;
    for (std::size_t i = 0; size != 0; i = i + 1 == from().size() ? 0 : i + 1) {
      if (skip < runs_[i]) {
        const std::uint64_t count = std::min(runs_[i] - skip, size);
        look(from()[i], ByteRange{round * runs_[i] + skip, count});
        size -= count;
      }
      skip -= std::min(skip, runs_[i]);
      if (i + 1 == from().size()) ++round;
    }
  }

  std::vector<std::uint64_t> runs_;  // bytes of each part in a round
  std::uint64_t rounds_, round_bytes_ = 0;
};

void check_alike(const Tensor& first, const Tensor& other, std::size_t axis) {
  bool is_alike = first.dtype() == other.dtype() && first.rank() == other.rank();
  for (std::size_t i = 0; is_alike && i < first.rank(); ++i)
    is_alike = i == axis || first.shape()[i] == other.shape()[i];
  if (is_alike) return;
  const auto shown = [](const Tensor& t) { return std::string(name(t.dtype())) + " " + to_string(t.shape()); };
  throw Error(Errc::mismatch, shown(first) + " and " + shown(other) + " cannot be put together along dimension " +
                                  std::to_string(axis));
}

// A part must not end inside a block, or inside a byte that several elements share.
void check_ends_whole(DType dtype, std::uint64_t elements, std::size_t part_count) {
  if (part_count == 1 || elements % info(dtype).block_elements == 0) return;
  throw Error(Errc::unsupported, "a part of " + std::string(name(dtype)) + " ends inside a block of " +
                                     std::to_string(info(dtype).block_elements) + " elements")
      .hint(decode_it_first());
}

}  // namespace

Tensor concatenated(std::vector<Tensor> parts, std::size_t axis) {
  const Tensor& first = parts.front();
  if (axis >= first.rank()) {
    throw Error(Errc::mismatch, "there is no dimension " + std::to_string(axis) + " in " + to_string(first.shape()));
  }
  const DType dtype = first.dtype();
  std::vector<std::uint64_t> dims(first.shape().begin(), first.shape().end());
  dims[axis] = 0;
  for (const Tensor& part : parts) {
    check_alike(first, part, axis);
    const auto sum = checked_add(dims[axis], part.shape()[axis]);
    if (!sum) throw Error(Errc::limit, "the dimension would be too large");
    dims[axis] = *sum;
  }
  if (std::ranges::all_of(parts, [](const Tensor& part) { return part.numel() == 0; }))
    return Tensor(dtype, Shape(dims), nullptr);

  std::uint64_t rounds = 1;
  for (std::size_t i = 0; i < axis; ++i) rounds *= dims[i];  // fits: a part with elements has at least so many
  std::vector<std::uint64_t> runs;
  for (const Tensor& part : parts) {
    check_ends_whole(dtype, part.numel() / rounds, parts.size());
    runs.push_back(part.nbytes() / rounds);
  }
  const std::string step = "concatenate " + std::to_string(parts.size()) + " along " + std::to_string(axis);
  return Tensor(dtype, Shape(dims), std::make_shared<ConcatStorage>(std::move(parts), std::move(runs), rounds, step));
}

}  // namespace ballast
