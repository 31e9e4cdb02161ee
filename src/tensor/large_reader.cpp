#include "tensor/large_reader.hpp"

#include <sys/stat.h>

#include <ballast/provenance.hpp>

#include <functional>
#include <utility>

#include "io/open_file.hpp"
#include "io/page_cache.hpp"

namespace ballast {

struct LargeReader::Shared {
  explicit Shared(unsigned threads) : reads(threads) {}

  io::LargeReads reads;
  std::map<int, File> files;  // by the descriptor that the tensors have; grows only before anything is read
};

namespace {

// A plain storage that is read in one of two other ways, or as it is if these fail.
class LargeReadStorage final : public Storage {
 public:
  using Read = std::function<bool(std::uint64_t offset, std::span<std::byte> out)>;

  LargeReadStorage(StoragePtr plain, Read read) : plain_(std::move(plain)), read_(std::move(read)) {}

  std::uint64_t size_bytes() const override { return plain_->size_bytes(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!read_(offset, out)) plain_->read(offset, out);
  }
  std::optional<Location> location() const override { return plain_->location(); }
  void check_unchanged() const override { plain_->check_unchanged(); }

 private:
  StoragePtr plain_;
  Read read_;
};

}  // namespace

LargeReader::LargeReader(unsigned threads) : shared_(std::make_shared<Shared>(threads)) {}

const LargeReader::File& LargeReader::file(int descriptor) {
  const auto [place, is_new] = shared_->files.try_emplace(descriptor);
  File& file = place->second;
  if (!is_new) return file;
  struct stat found = {};
  file.descriptor = io::reopened(descriptor);
  file.through_cache = io::reopened(descriptor);  // a descriptor of its own, with its own read-ahead
  if (!file.descriptor || !file.through_cache || fstat(descriptor, &found) != 0) return file;
  const bool is_cold = io::is_cold(file.descriptor.get(), 0, static_cast<std::uint64_t>(found.st_size));
  file.is_better_read = is_cold || io::is_on_network(descriptor);
  if (is_cold) io::bypass_page_cache(file.descriptor.get());
  return file;
}

bool LargeReader::is_better_read(const Tensor& tensor) {
  const Provenance origin = provenance(tensor);
  return !origin.from.empty() && descriptor_of(origin.from.front()) >= 0 &&
         file(descriptor_of(origin.from.front())).is_better_read;
}

const LargeReader::File* LargeReader::file_of_plain(const Tensor& tensor) {
  if (tensor.nbytes() == 0) return nullptr;
  const auto location = tensor.storage()->location();
  if (!location || descriptor_of(*location) < 0) return nullptr;
  const File& found = file(descriptor_of(*location));
  return found.is_better_read ? &found : nullptr;
}

Tensor LargeReader::operator()(const Tensor& tensor, LargeReading reading) {
  const File* const source = file_of_plain(tensor);
  if (source == nullptr) return tensor;
  const std::uint64_t start = tensor.storage()->location()->offset;
  const auto in_blocks = [shared = shared_, file = source->descriptor.get(), start](std::uint64_t offset,
                                                                                    std::span<std::byte> out) {
    return shared->reads.read_at(file, start + offset, out);
  };
  const auto through_cache = [shared = shared_, file = source->through_cache.get(), start](std::uint64_t offset,
                                                                                           std::span<std::byte> out) {
    std::size_t done = 0;
    return io::read_all_at(file, start + offset, out, done) == 0 && done == out.size();
  };
  auto storage = reading == LargeReading::in_blocks
                     ? std::make_shared<LargeReadStorage>(tensor.storage(), in_blocks)
                     : std::make_shared<LargeReadStorage>(tensor.storage(), through_cache);
  return Tensor(tensor.dtype(), tensor.shape(), tensor.strides(), std::move(storage), tensor.offset());
}

}  // namespace ballast
