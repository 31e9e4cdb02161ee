// WeightPass: applies one rule of a map to all tensors. If several tensors become one, it stands where the first of
// them stood.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ballast/state_dict.hpp>
#include <ballast/weight_map.hpp>

#include "layout/pattern.hpp"
#include "layout/weight_conditions.hpp"

namespace ballast {

class WeightPass {
 public:
  WeightPass(const WeightRule& rule, const StateDict& tensors);  // both must outlive this object

  StateDict run();
  std::uint64_t matched() const noexcept { return groups_.size(); }  // how many groups of tensors the rule changed

 private:
  using Named = std::pair<std::string, Tensor>;
  struct Group {
    NamePattern::Places places;            // without the number
    std::map<std::uint64_t, Named> parts;  // by the position in `from`, or by the number
  };
  struct Slot {
    std::string_view name;
    Tensor tensor;
    const Group* group = nullptr;
  };

  void take(std::string_view name, const Tensor& tensor);
  void make(const Group& group, StateDict& result) const;
  std::vector<Tensor> complete_parts(const Group& group) const;
  void check_alike(const Group& group) const;
  void check_count(std::uint64_t count) const;
  void split(const Group& group, StateDict& result) const;
  void unstack(const Group& group, StateDict& result) const;
  void insert(StateDict& result, std::string_view name, Tensor tensor) const;

  const WeightRule& rule_;
  const StateDict& tensors_;
  WeightConditions conditions_;
  bool has_conditions_;
  std::vector<NamePattern> from_, to_;
  std::string number_;
  std::map<NamePattern::Places, Group> groups_;
  std::vector<Slot> slots_;
};

}  // namespace ballast
