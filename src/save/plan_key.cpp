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

// A digest of texts and numbers.
class Hash {
 public:
  // The length comes first, so that "ab" "c" differs from "a" "bc".
  void add(std::string_view text) {
    add(text.size());
    hash_.update(std::as_bytes(std::span(text)));
  }
  void add(std::uint64_t number) { hash_.update(std::as_bytes(std::span(&number, 1))); }
  void add(const SavePlan::File& file) {
    add(file.path);
    add(file.size_bytes);
    add(std::string_view(reinterpret_cast<const char*>(file.head.data()), file.head.size()));
  }

  std::uint64_t digest() const noexcept { return hash_.digest_64(); }

 private:
  kernels::Xxh3 hash_;
};

class KeyMaker {
 public:
  explicit KeyMaker(std::span<const CheckpointFile> sources) {
    hash_.add(kVersion);
    for (const CheckpointFile& source : sources) {
      const std::string identity = identity_of(source);
      if (identity.empty()) continue;  // standard input
      known_.insert(source.path);
      hash_.add(source.path);
      hash_.add(identity);
    }
  }

  void add(const SavePlan::File& file) {
    hash_.add(file);
    for (const SavePlan::Item& item : file.items) {
      hash_.add(item.offset);
      for_each_ancestor(item.tensor, [this](const Tensor& tensor, const auto& derivation) { add(tensor, derivation); });
    }
  }

  std::string finish() const { return is_complete_ ? kernels::to_hex(hash_.digest()) : std::string(); }

 private:
  static std::string identity_of(const CheckpointFile& file) try {
    return (file.source ? file.source : file_source(file.path))->identity();
  } catch (const Error&) {
    return {};  // the source is gone, and a conversion cache was read instead
  }

  void add(const Tensor& tensor, const Storage::Derivation& derivation) {
    hash_.add(name(tensor.dtype()));
    hash_.add(tensor.rank());
    for (const std::uint64_t dim : tensor.shape()) hash_.add(dim);
    hash_.add(tensor.is_contiguous());
    if (!tensor.is_contiguous()) {
      for (const std::int64_t stride : tensor.strides()) hash_.add(static_cast<std::uint64_t>(stride));
    }
    hash_.add(tensor.offset());
    hash_.add(derivation.step);
    hash_.add(derivation.from.size());
    const auto place = derivation.packed || !tensor.storage() ? derivation.packed : tensor.storage()->location();
    if (place) {
      hash_.add(place->file);
      hash_.add(place->offset);
    }
    const bool is_known = place ? known_.contains(place->file) : !derivation.from.empty();
    is_complete_ = is_complete_ && (is_known || tensor.nbytes() == 0);
  }

  Hash hash_;
  std::set<std::string, std::less<>> known_;
  bool is_complete_ = true;
};

}  // namespace

std::string plan_key(const SavePlan& plan, std::span<const CheckpointFile> sources) {
  KeyMaker key(sources);
  for (const SavePlan::File& file : plan.files) key.add(file);
  return key.finish();
}

std::uint64_t plan_digest(const SavePlan& plan) {
  Hash hash;
  hash.add(plan.key.empty() ? 0 : 1);  // the key itself names devices, which have other numbers on other machines
  for (const SavePlan::File& file : plan.files) {
    hash.add(file);
    for (const SavePlan::Item& item : file.items) {
      hash.add(item.name);
      hash.add(item.offset);
      hash.add(name(item.tensor.dtype()));
      hash.add(item.tensor.nbytes());
    }
  }
  return hash.digest();
}

}  // namespace ballast
