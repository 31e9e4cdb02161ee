#include "formats/format.hpp"

#include <utility>

namespace ballast {

TensorLayouts::TensorLayouts(const Checkpoint& checkpoint) {
  entries_.reserve(checkpoint.size());
  for (const auto& entry : checkpoint) entries_.push_back(&entry);
}

std::vector<Bundle> TensorLayouts::bundles() const {
  std::vector<Bundle> bundles;
  bundles.reserve(entries_.size());
  for (const auto* entry : entries_)
    bundles.push_back({{bundles.size()}, entry->tensor.nbytes(), entry->tensor.numel()});
  return bundles;
}

SavePlan::File TensorLayouts::lay_out(std::span<const std::size_t> values, const FilePlace& place,
                                      std::vector<Note>&) const {
  Entries chosen;
  chosen.reserve(values.size());
  for (const std::size_t value : values) chosen.push_back(entries_[value]);
  SavePlan::File file = lay_out_file(std::move(chosen), place);
  file.path = place.path;
  file.tensors = values.size();
  return file;
}

}  // namespace ballast
