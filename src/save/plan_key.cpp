#include "save/plan_key.hpp"

#include <ballast/error.hpp>
#include <ballast/source.hpp>

#include <set>
#include <string_view>

#include "kernels/digest.hpp"
#include "kernels/fact_hash.hpp"
#include "tensor/ancestors.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kVersion = 1;  // to be raised if this program makes other bytes from the same input

void add_facts(kernels::FactHash& hash, const SavePlan::File& file) {
  hash.add(file.path);
  hash.add(file.size_bytes);
  hash.add(std::string_view(reinterpret_cast<const char*>(file.head.data()), file.head.size()));
}

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
    add_facts(hash_, file);
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
    add_facts(hash_, tensor, derivation);
    const auto place = derivation.packed || !tensor.storage() ? derivation.packed : tensor.storage()->location();
    if (place) {
      hash_.add(place->file);
      hash_.add(place->offset);
    }
    const bool is_known = place ? known_.contains(place->file) : !derivation.from.empty();
    is_complete_ = is_complete_ && (is_known || tensor.nbytes() == 0);
  }

  kernels::FactHash hash_;
  std::set<std::string, std::less<>> known_;
  bool is_complete_ = true;
};

}  // namespace

std::string plan_key(const SavePlan& plan, std::span<const CheckpointFile> sources) {
  KeyMaker key(sources);
  for (const SavePlan::File& file : plan.files) key.add(file);
  return key.finish();
}

std::uint64_t plan_digest(const SavePlan& plan, const SourceList& sources) {
  kernels::FactHash hash;
  hash.add(plan.key.empty() ? 0 : 1);  // the key itself names devices, which have other numbers on other machines
  hash.add(sources.tensors_digest());
  for (const SavePlan::File& file : plan.files) {
    add_facts(hash, file);
    for (const SavePlan::Item& item : file.items) hash.add(item.offset);
  }
  return hash.digest();
}

SourceList sources_of(const SavePlan& plan) {
  SourceList sources;
  for (const SavePlan::File& file : plan.files) {
    for (const SavePlan::Item& item : file.items) sources.add(item.name, item.tensor);
  }
  return sources;
}

}  // namespace ballast
