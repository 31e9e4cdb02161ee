// ValuePass: passes over the values of some tensors, in parts that the members of a team and their threads take.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <ballast/error.hpp>
#include <ballast/team.hpp>
#include <ballast/tensor.hpp>

#include "core/deal.hpp"
#include "core/progress_meter.hpp"
#include "inspect/chunks.hpp"
#include "kernels/constant_rows.hpp"
#include "kernels/stats.hpp"

namespace ballast {

// The tensor with values that are numbers: those of ggml's blocks are decoded when they are read.
Tensor numbers_of(const Tensor& tensor);

// Why a tensor has no statistics: its values have no order, or there are none.
std::optional<Error> why_no_statistics(const Tensor& tensor);

class ValuePass {
 public:
  // Tensors that have statistics, as numbers_of() gives them. They must outlive this object.
  explicit ValuePass(std::span<const Tensor> tensors, Team& team = Team::alone());

  std::span<const TensorPart> parts() const noexcept { return parts_; }
  const Tensor& tensor_of(std::size_t part) const { return tensors_[parts_[part].number]; }
  std::uint64_t first_element(std::size_t part) const;
  Team& team() const noexcept { return team_; }
  const Deal& deal() const noexcept { return deal_; }  // of the parts

  // For the parts of this member, calls look(part, worker, bytes) for every chunk of every part; the chunks of a part
  // come in order and from one thread. See Storage::visit for what `look` may do. Parts for which `skip` is true are
  // not read.
  using Look = std::function<void(std::size_t part, unsigned worker, std::span<const std::byte>)>;
  using Skip = std::function<bool(std::size_t part)>;
  void run(unsigned threads, ProgressMeter& meter, const Look& look, const Skip& skip = {}) const;

 private:
  std::span<const Tensor> tensors_;
  Team& team_;
  std::vector<TensorPart> parts_;
  Deal deal_;
};

// What one pass finds out about a tensor.
struct ValueScan {
  kernels::Moments moments;
  kernels::ConstantRows rows;
};

enum class RowScan : bool { no, yes };  // whether rows of matrices are looked at

// The columns of a matrix that has rows worth looking at; 0 if the tensor has none. Several rows of at least
// kFewestColumns values are.
inline constexpr std::uint64_t kFewestColumns = 8;
std::uint64_t row_columns(const Tensor& tensor);

// One pass over all of `pass`; a scan for each part, whoever looked at it, which merged() puts together for each
// tensor. `more` looks at the same chunks, but those of other members.
std::vector<ValueScan> scan_parts(const ValuePass& pass, unsigned threads, RowScan rows, ProgressMeter& meter,
                                  const ValuePass::Look& more = {});
std::vector<ValueScan> merged(const ValuePass& pass, std::span<const ValueScan> of_parts, std::size_t tensors);

}  // namespace ballast
