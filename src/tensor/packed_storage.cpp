#include "tensor/packed_storage.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/once.hpp"
#include "core/text.hpp"
#include "tensor/derived_storage.hpp"
#include "tensor/packed_frames.hpp"

namespace ballast {
namespace {

// Which chunk of which storage is held. An address would not identify the storage: the next storage may get the same
// one.
struct ChunkKey {
  std::uint64_t storage = 0, chunk = 0;
  friend bool operator==(const ChunkKey&, const ChunkKey&) = default;
};

std::uint64_t new_storage_number() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

class Buffer {
 public:
  std::span<std::byte> first(std::size_t size) {
    if (!bytes_) bytes_ = std::make_unique_for_overwrite<std::byte[]>(kMostFrameBytes);
    return {bytes_.get(), size};
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
};

// What a thread needs to pack a chunk, and to unpack one.
struct Packing {
  FramePacker packer;
  Buffer planes, elements;
  ChunkKey held;
  std::span<const std::byte> frame;  // of the chunk that is held
};
struct Unpacking {
  FrameUnpacker unpacker;
  Buffer frame, planes, elements;
  ChunkKey held;  // the chunk in `elements`
};

// One T of the calling thread. A compressed tensor may be made from another one, which is read meanwhile, so each depth
// has its own T.
template <class T>
class OfThread {
 public:
  OfThread() {
    if (depth == all.size()) all.push_back(std::make_unique<T>());
    mine_ = all[depth++].get();
  }
  ~OfThread() { --depth; }
  OfThread(const OfThread&) = delete;
  OfThread& operator=(const OfThread&) = delete;
  T* operator->() const noexcept { return mine_; }
  T& operator*() const noexcept { return *mine_; }

 private:
  static thread_local std::vector<std::unique_ptr<T>> all;
  static thread_local std::size_t depth;
  T* mine_;
};
template <class T>
thread_local std::vector<std::unique_ptr<T>> OfThread<T>::all;
template <class T>
thread_local std::size_t OfThread<T>::depth = 0;

struct Chunk {
  std::uint64_t begin;
  std::size_t size;
};
Chunk chunk_of(std::uint64_t index, std::uint64_t bytes) {
  const std::uint64_t begin = index * kChunkBytes;
  return {begin, static_cast<std::size_t>(std::min<std::uint64_t>(kChunkBytes, bytes - begin))};
}

std::span<const std::byte> pack_chunk(Packing& own, const Tensor& tensor, std::uint64_t index) {
  const Chunk chunk = chunk_of(index, tensor.nbytes());
  const Planes form = planes_of(tensor.dtype());
  const auto planes = own.planes.first(chunk.size);
  const auto split = [&](std::span<const std::byte> elements) { form.split(elements, planes); };
  const bool is_split =
      tensor.is_contiguous() && tensor.storage()->visit(tensor.offset() + chunk.begin, chunk.size, std::ref(split));
  if (!is_split) {
    const auto elements = own.elements.first(chunk.size);
    tensor.read(chunk.begin, elements);
    split(elements);
  }
  return own.packer.pack(planes, form.count);
}

class PackedStorage final : public DerivedStorage {
 public:
  PackedStorage(Tensor tensor, std::vector<std::uint32_t> frame_bytes, std::string name)
      : DerivedStorage({std::move(tensor)}, "compress"),
        tensor_(from().front()),
        frame_bytes_(std::move(frame_bytes)),
        name_(std::move(name)) {
    begins_.reserve(frame_bytes_.size() + 1);
    begins_.push_back(0);
    for (const std::uint32_t size : frame_bytes_) begins_.push_back(begins_.back() + size);
  }

  std::uint64_t size_bytes() const override { return begins_.back() + seek_table_bytes(frame_bytes_.size()); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const OfThread<Packing> own;
    while (!out.empty() && offset < begins_.back()) {
      const std::size_t index = frame_at(offset);
      const auto rest = frame(*own, index).subspan(static_cast<std::size_t>(offset - begins_[index]));
      const std::size_t size = std::min(rest.size(), out.size());
      std::memcpy(out.data(), rest.data(), size);
      offset += size;
      out = out.subspan(size);
    }
    if (out.empty()) return;
    const auto table = seek_table(frame_bytes_, tensor_.nbytes());
    std::memcpy(out.data(), table.data() + (offset - begins_.back()), out.size());
  }

  // Releases the chunks whose frames end in the range: the chunk before them may still be needed for the rest of its
  // frame.
  void release(std::uint64_t offset, std::uint64_t size) const override {
    const std::uint64_t end = std::min(offset + size, begins_.back());
    if (offset >= end) return;
    const std::uint64_t from = frame_at(offset) * kChunkBytes;
    const std::uint64_t to = end == begins_.back() ? tensor_.nbytes() : frame_at(end) * kChunkBytes;
    tensor_.release({from, to - from});
  }

 private:
  std::size_t frame_at(std::uint64_t offset) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(begins_, offset) - begins_.begin()) - 1;
  }

  std::span<const std::byte> frame(Packing& own, std::size_t index) const {
    const ChunkKey key{number_, index};
    if (own.held == key) return own.frame;
    own.held = {};
    const auto frame = pack_chunk(own, tensor_, index);
    if (frame.size() != frame_bytes_[index]) throw changed();
    own.frame = frame;
    own.held = key;
    return frame;
  }

  Error changed() const {
    tensor_.storage()->check_unchanged();  // throws a better error if it has noticed the change
    return {Errc::changed, fmt::format("tensor {} changed while it was being compressed", quote(name_))};
  }

  std::uint64_t number_ = new_storage_number();
  const Tensor& tensor_;
  std::vector<std::uint32_t> frame_bytes_;
  std::vector<std::uint64_t> begins_;  // offsets of the frames, and of the table
  std::string name_;
};

class UnpackedStorage final : public DerivedStorage {
 public:
  UnpackedStorage(Tensor packed, DType dtype, std::uint64_t bytes, std::string name)
      : DerivedStorage({std::move(packed)}, "decompress"),
        packed_(from().front()),
        form_(planes_of(dtype)),
        bytes_(bytes),
        name_(std::move(name)) {
    const std::uint64_t table = seek_table_bytes(chunk_count(bytes_));
    if (packed_.nbytes() < table)
      throw complaint(fmt::format("{} bytes, too few for a seek table of {}", packed_.nbytes(), table), 0);
  }

  const Tensor& packed() const noexcept { return packed_; }
  std::uint64_t size_bytes() const override { return bytes_; }
  std::uint64_t granule() const override { return kChunkBytes; }
  void prepare(const Progress& progress) const override {
    DerivedStorage::prepare(progress);
    begins();
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const OfThread<Unpacking> own;
    while (!out.empty()) {
      const Chunk chunk = chunk_of(offset / kChunkBytes, bytes_);
      const std::size_t skip = static_cast<std::size_t>(offset - chunk.begin);
      const std::size_t size = std::min(chunk.size - skip, out.size());
      if (size == chunk.size)
        unpack(*own, offset / kChunkBytes, out.first(size));
      else
        std::memcpy(out.data(), held(*own, offset / kChunkBytes).data() + skip, size);
      offset += size;
      out = out.subspan(size);
    }
  }

  void release(std::uint64_t offset, std::uint64_t size) const override { packed_.release(frames_of({offset, size})); }

  // Before the table has been read, nobody knows where a frame lies.
  void prefetch(std::span<const ByteRange> ranges) const override {
    if (!read_once_.is_done()) return;
    std::vector<ByteRange> wanted;
    for (const ByteRange& range : ranges) wanted.push_back(frames_of(range));
    packed_.prefetch(wanted);
  }

 private:
  ByteRange frames_of(ByteRange range) const {
    const auto& begins = this->begins();
    const std::size_t first = static_cast<std::size_t>(range.offset / kChunkBytes);
    const std::size_t end =
        std::min(static_cast<std::size_t>(chunk_count(range.offset + range.size)), begins.size() - 1);
    return {begins[first], begins[end] - begins[first]};
  }

  // Unpacks a chunk of which only a part is wanted.
  std::span<const std::byte> held(Unpacking& own, std::uint64_t index) const {
    const auto elements = own.elements.first(chunk_of(index, bytes_).size);
    const ChunkKey key{number_, index};
    if (own.held == key) return elements;
    own.held = {};
    unpack(own, index, elements);
    own.held = key;
    return elements;
  }

  // The frame is copied first: zstd reads some bytes twice, and a mapped file may change in between.
  void unpack(Unpacking& own, std::uint64_t index, std::span<std::byte> elements) const {
    const std::uint64_t begin = begins()[static_cast<std::size_t>(index)];
    const std::uint64_t end = begins()[static_cast<std::size_t>(index) + 1];
    const auto frame = own.frame.first(static_cast<std::size_t>(end - begin));
    packed_.read(begin, frame);
    const auto planes = form_.count == 1 ? elements : own.planes.first(elements.size());
    try {
      own.unpacker.unpack(frame, planes);
    } catch (const Error& error) {
      throw complaint(error.message(), begin);
    }
    if (form_.count != 1) form_.join(planes, elements);
  }

  const std::vector<std::uint64_t>& begins() const {
    read_once_.run([this] { begins_ = read_table(); });
    return begins_;
  }

  std::vector<std::uint64_t> read_table() const {
    std::vector<std::byte> table(static_cast<std::size_t>(seek_table_bytes(chunk_count(bytes_))));
    const std::uint64_t offset = packed_.nbytes() - table.size();
    packed_.read(offset, table);
    try {
      return parse_seek_table(table, offset, bytes_);
    } catch (const Error& error) {
      throw complaint(error.message(), error.offset().value_or(offset));
    }
  }

  Error complaint(const std::string& what, std::uint64_t offset) const {
    Error error(Errc::malformed, fmt::format("tensor {} has {}", quote(name_), what));
    const auto place = packed_.storage() ? packed_.storage()->location() : std::nullopt;
    if (place) error.in(place->file).at_byte(place->offset + packed_.offset() + offset);
    return error;
  }

  std::uint64_t number_ = new_storage_number();
  const Tensor& packed_;
  Planes form_;
  std::uint64_t bytes_;
  std::string name_;
  mutable Once read_once_;
  mutable std::vector<std::uint64_t> begins_;  // offsets of the frames, and of the table
};

}  // namespace

std::uint32_t measure_frame(const Tensor& tensor, std::uint64_t chunk) {
  const OfThread<Packing> own;
  own->held = {};
  return static_cast<std::uint32_t>(pack_chunk(*own, tensor, chunk).size());
}

std::uint64_t packed_bytes(const std::vector<std::uint32_t>& frame_bytes) {
  std::uint64_t bytes = seek_table_bytes(frame_bytes.size());
  for (const std::uint32_t size : frame_bytes) bytes += size;
  return bytes;
}

StoragePtr packed_storage(Tensor tensor, std::vector<std::uint32_t> frame_bytes, std::string name) {
  return std::make_shared<PackedStorage>(std::move(tensor), std::move(frame_bytes), std::move(name));
}

StoragePtr unpacked_storage(Tensor packed, DType dtype, std::uint64_t bytes, std::string name) {
  return std::make_shared<UnpackedStorage>(std::move(packed), dtype, bytes, std::move(name));
}

std::uint64_t stored_bytes(const Tensor& tensor) {
  const auto* unpacked = dynamic_cast<const UnpackedStorage*>(tensor.storage().get());
  return unpacked == nullptr ? tensor.nbytes() : unpacked->packed().nbytes();
}

}  // namespace ballast
