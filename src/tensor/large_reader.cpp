#include "tensor/large_reader.hpp"

#include <sys/stat.h>

#include <ballast/provenance.hpp>

#include <utility>

#include "io/page_cache.hpp"

namespace ballast {

struct LargeReader::Shared {
  explicit Shared(unsigned threads) : reads(threads) {}

  io::LargeReads reads;
  std::map<int, File> files;  // by the descriptor that the tensors have; grows only before anything is read
};

namespace {

// A plain storage that is read in large pieces, and as it is where that does not work out.
class LargeReadStorage final : public Storage {
 public:
  LargeReadStorage(StoragePtr plain, std::shared_ptr<io::LargeReads> reads, int descriptor, std::uint64_t offset)
      : plain_(std::move(plain)), reads_(std::move(reads)), descriptor_(descriptor), offset_(offset) {}

  std::uint64_t size_bytes() const override { return plain_->size_bytes(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!reads_->read_at(descriptor_, offset_ + offset, out)) plain_->read(offset, out);
  }
  std::optional<Location> location() const override { return plain_->location(); }
  void check_unchanged() const override { plain_->check_unchanged(); }

 private:
  StoragePtr plain_;
  std::shared_ptr<io::LargeReads> reads_;
  int descriptor_;
  std::uint64_t offset_;
};

}  // namespace

LargeReader::LargeReader(unsigned threads) : shared_(std::make_shared<Shared>(threads)) {}

const LargeReader::File& LargeReader::file(int descriptor) {
  const auto [place, is_new] = shared_->files.try_emplace(descriptor);
  File& file = place->second;
  if (!is_new) return file;
  struct stat found = {};
  file.descriptor = io::reopened(descriptor);
  if (!file.descriptor || fstat(descriptor, &found) != 0) return file;
  const bool is_cold = io::is_cold(file.descriptor.get(), 0, static_cast<std::uint64_t>(found.st_size));
  file.is_better_read = is_cold || io::is_on_network(descriptor);
  if (is_cold) io::bypass_page_cache(file.descriptor.get());
  return file;
}

bool LargeReader::is_better_read(const Tensor& tensor) {
  const Provenance origin = provenance(tensor);
  return !origin.from.empty() && origin.from.front().descriptor >= 0 &&
         file(origin.from.front().descriptor).is_better_read;
}

const LargeReader::File* LargeReader::file_of_plain(const Tensor& tensor) {
  if (tensor.nbytes() == 0) return nullptr;
  const auto location = tensor.storage()->location();
  if (!location || location->descriptor < 0) return nullptr;
  const File& found = file(location->descriptor);
  return found.is_better_read ? &found : nullptr;
}

Tensor LargeReader::operator()(const Tensor& tensor) {
  const File* const source = file_of_plain(tensor);
  if (source == nullptr) return tensor;
  const std::shared_ptr<io::LargeReads> reads(shared_, &shared_->reads);
  auto storage = std::make_shared<LargeReadStorage>(tensor.storage(), reads, source->descriptor.get(),
                                                    tensor.storage()->location()->offset);
  return Tensor(tensor.dtype(), tensor.shape(), tensor.strides(), std::move(storage), tensor.offset());
}

std::uint64_t LargeReader::phase(const Tensor& tensor) {
  constexpr std::uint64_t kPage = 4096, kWorthIt = std::uint64_t{1} << 20, kSoAligned = 8;
  if (tensor.nbytes() < kWorthIt || !tensor.is_contiguous() || file_of_plain(tensor) == nullptr) return 0;
  const std::uint64_t phase = (tensor.storage()->location()->offset + tensor.offset()) % kPage;
  return phase % kSoAligned == 0 ? phase : 0;  // a file that put its values askew is put straight
}

}  // namespace ballast
