#include "ops/place.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "ops/file_order.hpp"
#include "tensor/large_reader.hpp"
#include "tensor/on_device.hpp"
#include "tensor/owned_memory.hpp"
#include "tensor/pieces.hpp"
#include "tensor/tensor_numbers.hpp"

namespace ballast {
namespace {

// Threads that wait for a disk do not take a core, and a few requests at a time leave most disks idle.
constexpr unsigned kReaders = 8;

unsigned readers(unsigned threads) { return threads != 0 ? threads : std::max(available_threads(), kReaders); }

class Placing {
 public:
  Placing(const PlaceOptions& options, ProgressMeter& meter)
      : options_(options), meter_(meter), large_(readers(options.threads)) {}

  std::vector<Tensor> run(std::span<const Tensor> tensors, std::span<const Device> devices) {
    std::vector<Tensor> placed(tensors.begin(), tensors.end());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (devices[i].kind() == Device::Kind::meta)
        placed[i] = tensors[i].to(devices[i]);
      else if (stays(tensors[i], devices[i]) || !groups_[devices[i]].add(i, tensors[i]))
        meter_.add(tensors[i].nbytes());
    }
    for (auto& [device, group] : groups_) {
      bring(device, group.tensors);
      for (const auto& [i, number] : group.members) placed[i] = group.tensors[number];
    }
    return placed;
  }

  void fill(std::vector<Tensor> tensors, std::span<const std::span<std::byte>> memory) {
    const unsigned threads = options_.mode == LoadMode::mapped ? options_.threads : made_large(tensors);
    const std::vector<TensorPiece> pieces = cut_by_bytes(tensors, kPieceBytes);
    if (pieces.empty()) return;                                  // or threads would be started for nothing
    std::vector<std::atomic<std::size_t>> left(tensors.size());  // pieces of each
    for (const TensorPiece& piece : pieces) ++left[piece.tensor];
    ThreadPool(threads).run(pieces.size(), [&](std::size_t i, unsigned) {
      const auto& [number, bytes] = pieces[i];
      tensors[number].storage()->prepare({});
      tensors[number].read(bytes.offset, memory[number].subspan(bytes.offset, bytes.size));
      if (options_.consume) {
        release(tensors[number], bytes);
        if (--left[number] == 0) tensors[number] = {};
      }
      meter_.add(bytes.size);
    });
  }

 private:
  static void release(const Tensor& tensor, const ByteRange& bytes) {
    if (tensor.is_contiguous()) tensor.storage()->release(tensor.offset() + bytes.offset, bytes.size);
  }

  // All that goes to one device, each tensor once however many names it has.
  struct Group {
    TensorNumbers numbers;
    std::vector<Tensor> tensors;
    std::vector<std::pair<std::size_t, std::size_t>> members;  // what was asked for, and its number here

    // False where it is here already, by another name.
    bool add(std::size_t i, const Tensor& tensor) {
      const std::size_t number = numbers(tensor);
      members.emplace_back(i, number);
      if (number != tensors.size()) return false;
      tensors.push_back(tensor);
      return true;
    }
  };

  bool stays(const Tensor& tensor, const Device& device) {
    if (!tensor.has_data()) return true;
    const bool is_there = place_of(tensor).device == device;
    if (device.kind() != Device::Kind::cpu) return is_there && tensor.is_contiguous();
    if (tensor.nbytes() == 0) return true;
    if (!is_there || options_.copies || options_.mode == LoadMode::read) return false;
    return options_.mode == LoadMode::mapped || !large_.is_better_read(tensor);
  }

  void bring(const Device& device, std::vector<Tensor>& tensors) {
    const std::vector<std::size_t> order = in_file_order(tensors);
    std::vector<Tensor> sorted;
    for (const std::size_t number : order) sorted.push_back(tensors[number]);
    sorted = device.kind() == Device::Kind::cpu ? in_memory(sorted) : on_device(std::move(sorted), device);
    for (std::size_t i = 0; i < order.size(); ++i) tensors[order[i]] = std::move(sorted[i]);
  }

  std::vector<Tensor> in_memory(const std::vector<Tensor>& tensors) {
    std::vector<Tensor> copies;
    std::vector<std::span<std::byte>> memory;
    for (const Tensor& tensor : tensors) {
      const OwnedMemory own(tensor.nbytes(), options_.mode == LoadMode::mapped ? 0 : large_.phase(tensor));
      memory.push_back(own.bytes());
      copies.emplace_back(tensor.dtype(), tensor.shape(), memory_storage(own.bytes(), own.share()));
    }
    fill(tensors, memory);
    return copies;
  }

  std::vector<Tensor> on_device(std::vector<Tensor> tensors, const Device& device) {
    const unsigned threads = made_large(tensors);
    return uploaded(tensors, device, threads, [this](std::uint64_t bytes) { meter_.add(bytes); });
  }

  // Has those read in large pieces for which that is better; returns by how many threads all are to be read.
  unsigned made_large(std::vector<Tensor>& tensors) {
    unsigned threads = options_.threads;
    for (Tensor& tensor : tensors) {
      const Storage* const before = tensor.storage().get();
      tensor = large_(tensor);
      if (tensor.storage().get() != before) threads = readers(options_.threads);
    }
    return threads;
  }

  const PlaceOptions& options_;
  ProgressMeter& meter_;
  LargeReader large_;
  std::map<Device, Group> groups_;
};

}  // namespace

Device device_for(std::string_view name, std::span<const DeviceRule> rules, const Device& otherwise) {
  const auto rule = std::ranges::find_if(rules, [&](const DeviceRule& each) { return glob_match(each.pattern, name); });
  return rule == rules.end() ? otherwise : rule->device;
}

std::vector<Tensor> place(std::span<const Tensor> tensors, std::span<const Device> devices, const PlaceOptions& options,
                          ProgressMeter& meter) {
  return Placing(options, meter).run(tensors, devices);
}

void read_into(std::vector<Tensor> tensors, std::span<const std::span<std::byte>> memory, const PlaceOptions& options,
               ProgressMeter& meter) {
  std::vector<Tensor> sorted;
  std::vector<std::span<std::byte>> places;
  for (const std::size_t number : in_file_order(tensors)) {
    sorted.push_back(std::move(tensors[number]));
    places.push_back(memory[number]);
  }
  Placing(options, meter).fill(std::move(sorted), places);
}

}  // namespace ballast
