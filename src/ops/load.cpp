#include <ballast/error.hpp>
#include <ballast/load.hpp>

#include <string>
#include <utility>

#include "checkpoint/dangerous.hpp"
#include "core/progress_meter.hpp"
#include "core/thread_pool.hpp"
#include "ops/file_order.hpp"
#include "tensor/tensor_numbers.hpp"

namespace ballast {
namespace {

Tensor without_data(const Tensor& tensor) {
  return Tensor(tensor.dtype(), tensor.shape(), meta_storage(tensor.nbytes()));
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
