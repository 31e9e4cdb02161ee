#include <ballast/error.hpp>
#include <ballast/load.hpp>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "checkpoint/dangerous.hpp"
#include "core/progress_meter.hpp"
#include "core/thread_pool.hpp"
#include "ops/once_per_tensor.hpp"

namespace ballast {
namespace {

Tensor without_data(const Tensor& tensor) {
  return Tensor(tensor.dtype(), tensor.shape(), meta_storage(tensor.nbytes()));
}

// Numbers of the tensors, by where they lie: a disk reads on faster than it jumps.
std::vector<std::size_t> in_file_order(const std::vector<Tensor>& tensors) {
  std::vector<std::tuple<std::string, std::uint64_t, std::size_t>> places;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto place = tensors[i].storage() ? tensors[i].storage()->location() : std::nullopt;
    places.emplace_back(place ? place->file : "", (place ? place->offset : 0) + tensors[i].offset(), i);
  }
  std::sort(places.begin(), places.end());
  std::vector<std::size_t> order;
  for (const auto& place : places) order.push_back(std::get<2>(place));
  return order;
}

}  // namespace

StateDict load(const std::string& target, const LoadOptions& options) {
  OpenOptions open_options;
  open_options.limits = options.limits;
  open_options.safety = options.safety;
  open_options.root = options.root;
  open_options.threads = options.threads;
  Checkpoint checkpoint = open(target, open_options);
  if (!options.allow_dangerous) refuse_dangerous(checkpoint);
  if (options.device.kind() != Device::Kind::meta) return std::move(checkpoint.tensors);
  StateDict shapes;
  shapes.reserve(checkpoint.size());
  for (const auto& [name, tensor] : checkpoint) shapes.insert(name, without_data(tensor));
  return shapes;
}

StateDict realize(const StateDict& state, const RealizeOptions& options) {
  TensorNumbers numbers;
  std::vector<std::size_t> number_of;
  std::vector<Tensor> tensors;  // each once, however many names it has
  std::uint64_t total = 0;
  for (const auto& [name, tensor] : state) {
    number_of.push_back(numbers(tensor));
    if (number_of.back() != tensors.size()) continue;
    tensors.push_back(tensor);
    total += tensor.nbytes();
  }

  const std::vector<std::size_t> order = in_file_order(tensors);
  ProgressMeter meter(options.progress, "loading", total);
  ThreadPool(options.threads).run(order.size(), [&](std::size_t i, unsigned) {
    Tensor& tensor = tensors[order[i]];
    if (tensor.has_data() && tensor.nbytes() != 0) tensor = tensor.realize(1);
    meter.add(tensor.nbytes());
  });

  StateDict result;
  result.reserve(state.size());
  for (std::size_t i = 0; i < state.size(); ++i) result.insert(state[i].name, tensors[number_of[i]]);
  return result;
}

}  // namespace ballast
