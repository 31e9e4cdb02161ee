// Edit: what one adapter does to one weight, a few rows at a time.
//
// A rule makes an edit from shapes alone. prepare() reads the adapter's matrices, once; then apply() may be called from
// several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ballast/tensor.hpp>

#include "peft/matrix.hpp"

namespace ballast::peft {

// Some rows of the weight, as floats.
struct Panel {
  std::uint64_t first;
  std::uint64_t count;
  std::uint64_t columns;
  std::span<float> values;

  std::span<float> row(std::uint64_t i) const { return values.subspan(i * columns, columns); }
};

// `count` rows of the weight from `first` on, as the edits before this one leave them.
using ReadRows = std::function<void(std::uint64_t first, std::uint64_t count, std::span<float> out)>;

class Edit {
 public:
  Edit(Extent extent, std::string step, std::vector<Tensor> parts)
      : extent_(extent), step_(std::move(step)), parts_(std::move(parts)) {}
  virtual ~Edit() = default;

  const Extent& extent() const { return extent_; }
  const std::string& step() const { return step_; }  // for people: "LoRA of rank 16, times 2"
  const std::vector<Tensor>& parts() const { return parts_; }

  virtual std::uint64_t memory_bytes() const;                // kept after prepare(); all parts as floats, if not said
  virtual std::uint64_t rows_together() const { return 1; }  // a panel has a multiple of so many rows
  virtual void prepare(const ReadRows& rows) = 0;

  // Changes the panel in place. `scratch` is as large as the panel, for the edit's own use.
  virtual void apply(const Panel& panel, std::span<float> scratch) const = 0;

 private:
  Extent extent_;
  std::string step_;
  std::vector<Tensor> parts_;
};
using EditPtr = std::unique_ptr<Edit>;

// An edit that adds something that does not depend on the weight.
struct Addition {
  double factor = 1;               // by which the adapter counts; negative if it is taken out again
  std::vector<DType> roundings{};  // of the change, before it is added
  bool is_exact = false;           // each operation is done by itself, in PEFT's order
};

class AdditiveEdit : public Edit {
 public:
  AdditiveEdit(Extent extent, std::string step, std::vector<Tensor> parts, Addition addition)
      : Edit(extent, std::move(step), std::move(parts)), addition_(std::move(addition)) {}

  void apply(const Panel& panel, std::span<float> scratch) const override;

 protected:
  // The change of the panel's rows; `out` is as large as its values.
  virtual void fill(const Panel& panel, std::span<float> out) const = 0;
  const Addition& addition() const { return addition_; }

 private:
  Addition addition_;
};

// An edit that goes `factor` of the way from the weight before it to the weight after it.
EditPtr weighted(EditPtr edit, double factor);

}  // namespace ballast::peft
