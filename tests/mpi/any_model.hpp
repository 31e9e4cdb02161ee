// A model that takes whatever a checkpoint has, and a load of it by all ranks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <ballast/ballast.hpp>
#include <ballast/mpi.hpp>

#include "ranks.hpp"

namespace ballast::test {

struct AnyModel {
  std::map<std::string, Tensor> tensors;
  auto fields() { return ballast::fields(field("", tensors)); }
};

inline AnyModel with_names_of(const Checkpoint& checkpoint) {
  AnyModel model;
  for (const auto& [name, tensor] : checkpoint)
    model.tensors.try_emplace(std::string(name), Tensor(DType::f32, {0}, nullptr));
  return model;
}

// The model of this rank, with nothing in it yet.
inline AnyModel model_for(const std::string& target, const std::vector<RankRule>& rules) {
  const Checkpoint checkpoint = open(target);
  return with_names_of(take_slice(checkpoint, plan_ranks(checkpoint, world_size(), rules).rank(world_rank())));
}

}  // namespace ballast::test
