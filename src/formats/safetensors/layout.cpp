#include "formats/safetensors/layout.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include "core/checked.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "formats/safetensors/encode.hpp"

namespace ballast::safetensors {
namespace {

void check_can_store(const StateDict::Entry& entry) {
  const DTypeInfo& type = info(entry.tensor.dtype());
  if (!type.in_safetensors) {
    throw Error(Errc::unsupported, "tensor " + quote(entry.name) + " has dtype " + std::string(type.name) +
                                       ", which safetensors cannot store")
        .hint("write a .pt, which has this dtype, or " + leave_it_out());
  }
  if (!entry.tensor.has_data()) {
    throw Error(Errc::unsupported, "tensor " + quote(entry.name) + " has no data to store").hint(leave_it_out());
  }
  if (entry.name == "__metadata__") {
    throw Error(Errc::unsupported, "safetensors cannot store a tensor called \"__metadata__\"").hint(rename_it());
  }
  if (valid_utf8_prefix(entry.name) != entry.name.size()) {
    throw Error(Errc::unsupported, "tensor " + quote(entry.name) + " has a name that is not UTF-8").hint(rename_it());
  }
}

// Wide dtypes come first, then names decide: so every tensor is aligned to its own size. The dtypes of safetensors are
// the first of our table, in the format's own order.
bool goes_before(const StateDict::Entry* a, const StateDict::Entry* b) {
  if (a->tensor.dtype() != b->tensor.dtype()) return a->tensor.dtype() > b->tensor.dtype();
  return a->name < b->name;
}

}  // namespace

SavePlan::File lay_out(Entries entries, const Metadata& metadata, const Limits& limits) {
  for (const auto* entry : entries) check_can_store(*entry);
  std::sort(entries.begin(), entries.end(), goes_before);

  SavePlan::File file;
  file.items.reserve(entries.size());
  std::string text = "{";
  if (!metadata.empty()) append_metadata(text, metadata);
  std::uint64_t end = 0;
  for (const auto* entry : entries) {
    if (text.size() > 1) text += ',';
    append_entry(text, *entry, end);
    file.items.push_back({std::string(entry->name), entry->tensor, end});
    end = fits(checked_add(end, entry->tensor.nbytes()), "the size of all tensors together");
  }
  text += '}';

  file.head = frame_header(text, 0, limits);
  for (SavePlan::Item& item : file.items) item.offset += file.head.size();
  file.size_bytes = fits(checked_add(file.head.size(), end), "the size of the file");
  return file;
}

namespace {

class SafetensorsLayouts final : public TensorLayouts {
 public:
  SafetensorsLayouts(const Checkpoint& checkpoint, const Limits& limits)
      : TensorLayouts(checkpoint), metadata_(checkpoint.metadata), limits_(limits) {}

 private:
  SavePlan::File lay_out_file(Entries entries, const FilePlace&) const override {
    return safetensors::lay_out(std::move(entries), metadata_, limits_);
  }

  const Metadata& metadata_;
  const Limits& limits_;
};

}  // namespace

std::unique_ptr<Layouts> layouts(const Checkpoint& checkpoint, const SaveOptions& options) {
  return std::make_unique<SafetensorsLayouts>(checkpoint, options.limits);
}

}  // namespace ballast::safetensors
