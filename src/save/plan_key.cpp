#include "save/plan_key.hpp"

#include <ballast/error.hpp>
#include <ballast/source.hpp>

#include <set>
#include <string_view>

#include "kernels/digest.hpp"
#include "tensor/ancestors.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kVersion = 1;  // to be raised if this program makes other bytes from the same input

class KeyMaker {
 public:
  explicit KeyMaker(std::span<const CheckpointFile> sources) {
    add(kVersion);
    for (const CheckpointFile& source : sources) {
      const std::string identity = identity_of(source);
      if (identity.empty()) continue;  // standard input
      known_.insert(source.path);
      add(source.path);
      add(identity);
    }
  }

  void add(const SavePlan::File& file) {
    add(file.path);
    add(file.size_bytes);
    add(std::string_view(reinterpret_cast<const char*>(file.head.data()), file.head.size()));
    for (const SavePlan::Item& item : file.items) {
      add(item.offset);
      for_each_ancestor(item.tensor, [this](const Tensor& tensor, const auto& derivation) { add(tensor, derivation); });
    }
  }

  std::string finish() const { return is_complete_ ? kernels::to_hex(hash_.digest_64()) : std::string(); }

 private:
  static std::string identity_of(const CheckpointFile& file) try {
    return (file.source ? file.source : file_source(file.path))->identity();
  } catch (const Error&) {
    return {};  // the source is gone, and a conversion cache was read instead
  }

  void add(const Tensor& tensor, const Storage::Derivation& derivation) {
    add(name(tensor.dtype()));
    add(tensor.rank());
    for (const std::uint64_t dim : tensor.shape()) add(dim);
    add(tensor.is_contiguous());
    if (!tensor.is_contiguous()) {
      for (const std::int64_t stride : tensor.strides()) add(static_cast<std::uint64_t>(stride));
    }
    add(tensor.offset());
    add(derivation.step);
    add(derivation.from.size());
    const auto place = derivation.packed || !tensor.storage() ? derivation.packed : tensor.storage()->location();
    if (place) {
      add(place->file);
      add(place->offset);
    }
    const bool is_known = place ? known_.contains(place->file) : !derivation.from.empty();
    is_complete_ = is_complete_ && (is_known || tensor.nbytes() == 0);
  }

  // The length comes first, so that "ab" "c" differs from "a" "bc".
  void add(std::string_view text) {
    add(text.size());
    hash_.update(std::as_bytes(std::span(text)));
  }
  void add(std::uint64_t number) { hash_.update(std::as_bytes(std::span(&number, 1))); }

  kernels::Xxh3 hash_;
  std::set<std::string, std::less<>> known_;
  bool is_complete_ = true;
};

}  // namespace

std::string plan_key(const SavePlan& plan, std::span<const CheckpointFile> sources) {
  KeyMaker key(sources);
  for (const SavePlan::File& file : plan.files) key.add(file);
  return key.finish();
}

}  // namespace ballast
