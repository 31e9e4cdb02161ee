#include "tensor/cast_storage.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "core/checked.hpp"
#include "core/overflow_counter.hpp"
#include "kernels/cast.hpp"

namespace ballast {
namespace {

class CastStorage final : public Storage {
 public:
  CastStorage(Tensor source, DType to)
      : source_(std::move(source)),
        to_(to),
        group_(std::lcm<std::uint64_t>(info(source_.dtype()).block_elements, info(to).block_elements)),
        in_group_(*bytes_of(source_.dtype(), group_)),
        out_group_(*bytes_of(to, group_)),
        size_(fits(bytes_of(to, source_.numel()), "the size of a cast tensor")) {}

  std::uint64_t size_bytes() const override { return size_; }
  bool is_sequential() const override { return source_.storage()->is_sequential(); }
  bool has_data() const override { return source_.has_data(); }
  Derivation derivation() const override { return {"cast to " + std::string(name(to_)), {&source_}}; }
  void check_unchanged() const override { source_.storage()->check_unchanged(); }
  void prepare(const Progress& progress) const override { source_.storage()->prepare(progress); }

  // What is worth reading of the source, in groups of the result.
  std::uint64_t granule() const override {
    if (!source_.is_contiguous()) return out_group_;
    const std::uint64_t groups = (source_.storage()->granule() + in_group_ - 1) / in_group_;
    return std::max<std::uint64_t>(groups, 1) * out_group_;
  }

  void release(std::uint64_t offset, std::uint64_t size) const override {
    if (!source_.is_contiguous()) return;
    source_.storage()->release(source_.offset() + offset / out_group_ * in_group_, size / out_group_ * in_group_);
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    // A range may begin or end inside a group: those two are cast aside.
    if (const std::uint64_t skip = offset % out_group_; skip != 0 && !out.empty()) {
      const auto part = out.first(std::min<std::uint64_t>(out_group_ - skip, out.size()));
      read_edge(offset / out_group_, skip, part);  // whoever reads the beginning of a group counts its overflows
      offset += part.size();
      out = out.subspan(part.size());
    }
    const std::uint64_t whole = out.size() / out_group_;
    Overflows overflows = read_groups(offset / out_group_, whole, out.data());
    const auto rest = out.subspan(whole * out_group_);
    if (!rest.empty()) overflows.add(read_edge(offset / out_group_ + whole, 0, rest));
    count_overflows(overflows);
  }

 private:
  static constexpr std::uint64_t kStepBytes = 64 << 10;  // of the source: in the second-level cache with its result

  Overflows read_edge(std::uint64_t group, std::uint64_t skip, std::span<std::byte> part) const {
    std::vector<std::byte> whole(out_group_), in(in_group_);
    source_.read(group * in_group_, in);
    const Overflows overflows = kernels::cast(source_.dtype(), to_, in, whole);
    std::memcpy(part.data(), whole.data() + skip, part.size());
    return overflows;
  }

  Overflows read_groups(std::uint64_t group, std::uint64_t count, std::byte* out) const {
    Overflows overflows;
    if (count == 0) return overflows;
    if (source_.is_contiguous()) {
      const std::uint64_t size = count * in_group_;
      const bool in_place = source_.storage()->visit(source_.offset() + group * in_group_, size, [&](auto bytes) {
        overflows = kernels::cast(source_.dtype(), to_, bytes, {out, count * out_group_});
      });
      if (in_place) return overflows;
    }
    const std::uint64_t step_bytes = std::max(kStepBytes, source_.storage()->granule());
    const std::uint64_t step = std::max<std::uint64_t>(step_bytes / in_group_, 1);
    std::vector<std::byte> buffer(std::min(step, count) * in_group_);
    for (std::uint64_t done = 0; done < count; done += step) {
      const std::uint64_t n = std::min(step, count - done);
      const std::span<std::byte> in = std::span(buffer).first(n * in_group_);
      source_.read((group + done) * in_group_, in);
      overflows.add(kernels::cast(source_.dtype(), to_, in, {out + done * out_group_, n * out_group_}));
    }
    return overflows;
  }

  Tensor source_;
  DType to_;
  std::uint64_t group_;  // elements that begin and end on bytes on both sides
  std::uint64_t in_group_, out_group_, size_;
};

}  // namespace

StoragePtr cast_storage(Tensor source, DType to) { return std::make_shared<CastStorage>(std::move(source), to); }

}  // namespace ballast
