#include "load/place.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <utility>

#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "load/file_order.hpp"
#include "tensor/large_reader.hpp"
#include "tensor/on_device.hpp"
#include "tensor/owned_memory.hpp"
#include "tensor/pieces.hpp"
#include "tensor/read_ahead.hpp"
#include "tensor/tensor_numbers.hpp"

namespace ballast {
namespace {

// Threads that wait for a disk do not use a core, and with few requests at a time most disks are idle.
constexpr unsigned kReaders = 8;

constexpr std::uint64_t kRequestBytes = std::uint64_t{1} << 20;

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
    const bool has_large = options_.mode != LoadMode::mapped && make_large(tensors, LargeReading::in_blocks);
    Filling filling{cut_by_bytes(tensors, has_large ? kRequestBytes : kPieceBytes), memory, {}};
    if (filling.pieces.empty()) return;  // else threads would be started for nothing
    filling.left = std::vector<std::atomic<std::size_t>>(tensors.size());
    for (const TensorPiece& piece : filling.pieces) ++filling.left[piece.tensor];
    if (has_large) return carry_out_faster_way(filling, tensors);
    ThreadPool pool(options_.threads);
    carry_out(filling, filling.pieces, {&tensors}, pool);
  }

 private:
  struct Filling {
    std::vector<TensorPiece> pieces;
    std::span<const std::span<std::byte>> memory;
    std::vector<std::atomic<std::size_t>> left;  // how many pieces of each tensor are left
  };
  // The same tensors, as each way reads them. The first is the way in use; the others release their tensors with it.
  using Ways = std::vector<std::vector<Tensor>*>;

  void carry_out(Filling& filling, std::span<const TensorPiece> pieces, const Ways& ways, ThreadPool& pool) {
    const std::vector<Tensor>& tensors = *ways.front();
    const bool streams = total_bytes(filling.pieces) >= kWorthStreaming;
    ReadAhead ahead(pieces.size(),
                    [&](std::size_t i, Announcement& reads) { reads.add(tensors[pieces[i].tensor], pieces[i].bytes); });
    pool.run(pieces.size(), [&](std::size_t i, unsigned) {
      const auto& [number, bytes] = pieces[i];
      ahead.begin(i);
      tensors[number].storage()->prepare({});
      read_piece(tensors[number], bytes.offset, filling.memory[number].subspan(bytes.offset, bytes.size), streams);
      if (options_.consume) {
        tensors[number].release(bytes);
        if (--filling.left[number] == 0) {
          for (std::vector<Tensor>* const way : ways) (*way)[number] = {};
        }
      }
      meter_.add(bytes.size);
    });
  }

  // Whether a cold file is read faster past the page cache or through it depends on the disk, on how far the system
  // reads ahead and on how busy the processors are. So the first megabytes are read past the cache, some more through
  // it, and the rest in the way that was faster. A trial through the cache costs more than its bytes, since the system
  // reads ahead for nothing then (16 MiB here). Fewer bytes than are worth a trial are just read past the cache.
  void carry_out_faster_way(Filling& filling, std::vector<Tensor>& in_blocks) {
    const std::span<const TensorPiece> all = filling.pieces;
    ThreadPool pool(readers(options_.threads));
    if (total_bytes(all) < options_.worth_a_trial) return carry_out(filling, all, {&in_blocks}, pool);

    std::vector<Tensor> through_cache = in_blocks;
    make_large(through_cache, LargeReading::through_cache);
    ThreadPool processors(options_.threads);
    const auto first = pieces_of(all, kTrialBytes);
    const auto second = pieces_of(all.subspan(first.size()), kTrialThroughCacheBytes);
    const auto rest = all.subspan(first.size() + second.size());
    const double speed = timed(first, [&] { carry_out(filling, first, {&in_blocks, &through_cache}, pool); });
    const double other = timed(second, [&] { carry_out(filling, second, {&through_cache, &in_blocks}, processors); });
    if (speed >= other)
      carry_out(filling, rest, {&in_blocks, &through_cache}, pool);
    else
      carry_out(filling, rest, {&through_cache, &in_blocks}, processors);
  }

  // The first number gives every reader something to do; the second is enough for the system to begin to read ahead. It
  // is not larger, because bytes that are read ahead for nothing cost time.
  static constexpr std::uint64_t kTrialBytes = std::uint64_t{8} << 20, kTrialThroughCacheBytes = std::uint64_t{4} << 20;

  template <class Work>
  static double timed(std::span<const TensorPiece> pieces, const Work& work) {  // bytes a second
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return static_cast<double>(total_bytes(pieces)) / elapsed.count();
  }

  // The first pieces that have at least `bytes` bytes together.
  static std::span<const TensorPiece> pieces_of(std::span<const TensorPiece> pieces, std::uint64_t bytes) {
    std::size_t count = 0;
    for (std::uint64_t done = 0; count < pieces.size() && done < bytes; ++count) done += pieces[count].bytes.size;
    return pieces.first(count);
  }

  static std::uint64_t total_bytes(std::span<const TensorPiece> pieces) {
    std::uint64_t total = 0;
    for (const TensorPiece& piece : pieces) total += piece.bytes.size;
    return total;
  }

  // All tensors that go to one device, each once, however many names it has.
  struct Group {
    TensorNumbers numbers;
    std::vector<Tensor> tensors;
    std::vector<std::pair<std::size_t, std::size_t>> members;  // number in the request, and number here

    // False if the tensor is here already, under another name.
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
      const OwnedMemory own(tensor.nbytes());
      memory.push_back(own.bytes());
      copies.emplace_back(tensor.dtype(), tensor.shape(), memory_storage(own.bytes(), own.share()));
    }
    fill(tensors, memory);
    return copies;
  }

  std::vector<Tensor> on_device(std::vector<Tensor> tensors, const Device& device) {
    const bool has_large = make_large(tensors, LargeReading::in_blocks);
    const unsigned threads = has_large ? readers(options_.threads) : options_.threads;
    return uploaded(tensors, device, threads, [this](std::uint64_t bytes) { meter_.add(bytes); });
  }

  // Replaces tensors that are better read in large ranges; returns whether there are any.
  bool make_large(std::vector<Tensor>& tensors, LargeReading reading) {
    bool has_large = false;
    for (Tensor& tensor : tensors) {
      const Storage* const before = tensor.storage().get();
      tensor = large_(tensor, reading);
      has_large = has_large || tensor.storage().get() != before;
    }
    return has_large;
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
