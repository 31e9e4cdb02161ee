#include "needs.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace ballast::mpi {
namespace {

// Stands for the bytes of a tensor, and knows whether somebody looked at them.
class Probe final : public Storage {
 public:
  explicit Probe(std::uint64_t size) : size_(size) {}

  std::uint64_t size_bytes() const override { return size_; }
  void read(std::uint64_t, std::span<std::byte> out) const override {
    was_read_ = true;
    std::ranges::fill(out, std::byte{0});
  }
  bool was_read() const noexcept { return was_read_; }

 private:
  std::uint64_t size_;
  mutable std::atomic<bool> was_read_ = false;
};

bool is_to_be_read(const Tensor& tensor) { return tensor.nbytes() != 0 && tensor.storage() && tensor.has_data(); }

class Finder {
 public:
  Finder(const std::vector<BoundTensor>& model, const Checkpoint& whole, const Checkpoint& sliced,
         const LoadStateDictOptions& options)
      : model_(model), options_(options) {
    std::vector<Tensor> tensors;
    for (const auto& [name, tensor] : sliced) {
      probes_.push_back(is_to_be_read(tensor) ? std::make_shared<const Probe>(tensor.nbytes()) : nullptr);
      if (probes_.back()) numbers_.emplace(probes_.back().get(), probes_.size() - 1);
      tensors.push_back(probes_.back() ? with_storage(tensor, probes_.back()) : tensor);
    }
    probed_ = with_tensors(whole, sliced, std::move(tensors));
    needs_.tensors.assign(probes_.size(), Need::none);
  }

  FieldNeeds run() {
    const LoadReport report = check();
    for (const auto& mismatch : report.mismatched) left_out_.insert(mismatch.name);
    const std::vector<Tensor> taken = take();
    for (std::size_t field = 0; field < taken.size(); ++field) follow(field, taken[field]);
    for (std::size_t i = 0; i < probes_.size(); ++i) {
      if (probes_[i] && probes_[i]->was_read()) need(i, Need::copy);
    }
    return std::move(needs_);
  }

 private:
  // Everything that can be wrong is found on the meta device, where nothing is read and nothing is kept.
  LoadReport check() const {
    std::vector<BoundTensor> model = model_;
    for (BoundTensor& tensor : model) {
      if (tensor.assign) tensor.assign = [](Tensor) {};
    }
    LoadStateDictOptions options = quiet();
    options.device = Device::Kind::meta;
    options.map_location.clear();
    return load_bound(std::move(model), probed_, options);
  }

  // What each field would be; an empty tensor if it gets none.
  std::vector<Tensor> take() const {
    std::vector<Tensor> taken(model_.size());
    std::vector<BoundTensor> model = model_;
    for (std::size_t i = 0; i < model.size(); ++i) {
      model[i].prepare = {};
      model[i].assign = [&taken, i](Tensor tensor) { taken[i] = std::move(tensor); };
      if (left_out_.contains(model[i].name)) model[i].is_persistent = false;
    }
    LoadStateDictOptions options = quiet();
    options.strict = false;
    options.assign = true;
    options.device = on_host(options.device);
    for (DeviceRule& rule : options.map_location) rule.device = on_host(rule.device);
    load_bound(std::move(model), probed_, options);
    return taken;
  }

  LoadStateDictOptions quiet() const {
    LoadStateDictOptions options = options_;
    options.slice.reset();
    options.mode = LoadMode::mapped;
    options.consume = false;
    options.progress = {};
    return options;
  }

  static Device on_host(const Device& device) {
    return device.kind() == Device::Kind::meta ? device : Device(Device::Kind::cpu);
  }

  bool is_all_on_host() const {
    const auto is_host = [](const Device& device) {
      return device.kind() == Device::Kind::cpu || device.kind() == Device::Kind::meta;
    };
    return is_host(options_.device) &&
           std::ranges::all_of(options_.map_location, is_host, [](const DeviceRule& rule) { return rule.device; });
  }

  // The tensors that a field is made of.
  void follow(std::size_t field, const Tensor& taken) {
    const bool is_view = model_[field].assign && options_.assign && is_all_on_host();
    std::vector<const Tensor*> waiting{&taken};
    std::set<const Storage*> seen;
    while (!waiting.empty()) {
      const Tensor* const each = waiting.back();
      waiting.pop_back();
      if (!each->storage() || !seen.insert(each->storage().get()).second) continue;
      const auto found = numbers_.find(each->storage().get());
      if (found != numbers_.end()) {
        need(found->second, is_view ? Need::view : Need::copy);
        if (each == &taken) take_directly(field, found->second, taken);
        continue;
      }
      const Storage::Derivation made = each->storage()->derivation();
      waiting.insert(waiting.end(), made.from.begin(), made.from.end());
    }
  }

  // Not if two names have to be compared: then the model must not change before both are there.
  void take_directly(std::size_t field, std::size_t tensor, const Tensor& taken) {
    const bool is_whole =
        taken.is_contiguous() && taken.offset() == 0 && taken.nbytes() == probes_[tensor]->size_bytes();
    const bool has_memory = !model_[field].assign && model_[field].prepare;
    if (is_whole && has_memory && is_all_on_host() && options_.tied.empty()) needs_.direct.push_back({field, tensor});
  }

  void need(std::size_t tensor, Need need) { needs_.tensors[tensor] = std::max(needs_.tensors[tensor], need); }

  const std::vector<BoundTensor>& model_;
  const LoadStateDictOptions& options_;
  std::vector<std::shared_ptr<const Probe>> probes_;
  std::map<const Storage*, std::size_t> numbers_;
  Checkpoint probed_;
  std::set<std::string, std::less<>> left_out_;  // fields
  FieldNeeds needs_;
};

}  // namespace

FieldNeeds find_needs(const std::vector<BoundTensor>& model, const Checkpoint& whole, const Checkpoint& sliced,
                      const LoadStateDictOptions& options) {
  return Finder(model, whole, sliced, options).run();
}

Tensor with_storage(const Tensor& tensor, StoragePtr storage) {
  return {tensor.dtype(), tensor.shape(), std::move(storage)};
}

Checkpoint with_tensors(const Checkpoint& whole, const Checkpoint& sliced, std::vector<Tensor> tensors) {
  Checkpoint changed = sliced;
  StateDict others;
  others.reserve(sliced.size());
  for (std::size_t i = 0; i < sliced.size(); ++i) others.insert(sliced.tensors[i].name, std::move(tensors[i]));
  changed.tensors = std::move(others);
  if (!changed.quantization) return changed;

  std::map<std::pair<const Storage*, std::uint64_t>, std::string_view> names;
  for (const auto& [name, tensor] : whole) names.emplace(std::pair(tensor.storage().get(), tensor.offset()), name);
  StateDict parts;
  for (const auto& [name, part] : changed.quantization->parts) {
    const auto found = names.find({part.storage().get(), part.offset()});
    const Tensor* const other = found == names.end() ? nullptr : changed.find(found->second);
    parts.insert(name, other != nullptr ? *other : part);
  }
  changed.quantization->parts = std::move(parts);
  return changed;
}

}  // namespace ballast::mpi
