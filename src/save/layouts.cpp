#include "save/layouts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/text.hpp"
#include "formats/safetensors/layout.hpp"
#include "formats/torch/layout.hpp"
#include "formats/torch/records.hpp"

namespace ballast {
namespace {

Entries entries_of(const Checkpoint& checkpoint) {
  Entries entries;
  entries.reserve(checkpoint.size());
  for (const auto& entry : checkpoint) entries.push_back(&entry);
  return entries;
}

class SafetensorsLayouts final : public Layouts {
 public:
  SafetensorsLayouts(const Checkpoint& checkpoint, const Limits& limits)
      : entries_(entries_of(checkpoint)), metadata_(checkpoint.metadata), limits_(limits) {}

  std::string_view name(std::size_t value) const override { return entries_[value]->name; }

  std::vector<Bundle> bundles() const override {
    std::vector<Bundle> bundles;
    bundles.reserve(entries_.size());
    for (const auto* entry : entries_)
      bundles.push_back({{bundles.size()}, entry->tensor.nbytes(), entry->tensor.numel()});
    return bundles;
  }

  SavePlan::File lay_out(std::span<const std::size_t> values, const std::string& path,
                         std::vector<Note>&) const override {
    Entries chosen;
    chosen.reserve(values.size());
    for (const std::size_t value : values) chosen.push_back(entries_[value]);
    safetensors::Layout layout = safetensors::lay_out(std::move(chosen), metadata_, limits_);
    SavePlan::File file{path, std::move(layout.head), {}, layout.size_bytes, values.size()};
    file.items.reserve(layout.items.size());
    for (const auto& item : layout.items) file.items.push_back({std::string(item.name), *item.tensor, item.offset});
    return file;
  }

 private:
  Entries entries_;
  const Metadata& metadata_;
  const Limits& limits_;
};

class TorchLayouts final : public Layouts {
 public:
  explicit TorchLayouts(const Checkpoint& checkpoint)
      : entries_(entries_of(checkpoint)), leaves_(torch::leaves_of(entries_, checkpoint.composites)) {}

  std::string_view name(std::size_t value) const override { return leaves_[value].name; }

  std::vector<Bundle> bundles() const override {
    std::vector<Bundle> bundles;
    for (auto& bundle : torch::bundles_of(leaves_))
      bundles.push_back({std::move(bundle.leaves), bundle.bytes, bundle.numel});
    return bundles;
  }

  SavePlan::File lay_out(std::span<const std::size_t> values, const std::string& path,
                         std::vector<Note>& notes) const override {
    std::vector<torch::Leaf> chosen;
    chosen.reserve(values.size());
    for (const std::size_t value : values) chosen.push_back(leaves_[value]);
    torch::Layout layout = torch::lay_out(chosen, path);
    for (Note& note : layout.notes) notes.push_back({path, std::move(note.text), note.kind});

    SavePlan::File file{path, std::move(layout.head), {}, layout.size_bytes, values.size()};
    file.items.reserve(layout.items.size());
    for (auto& item : layout.items) file.items.push_back({std::string(item.name), std::move(item.tensor), item.offset});
    file.finish = [finish = std::move(layout.finish)](std::span<const std::uint32_t> crc32s) {
      std::vector<SavePlan::Piece> pieces;
      for (auto& piece : finish(crc32s)) pieces.push_back({piece.offset, std::move(piece.bytes)});
      return pieces;
    };
    return file;
  }

 private:
  Entries entries_;
  std::vector<torch::Leaf> leaves_;
};

}  // namespace

std::unique_ptr<Layouts> safetensors_layouts(const Checkpoint& checkpoint, const SaveOptions& options) {
  return std::make_unique<SafetensorsLayouts>(checkpoint, options.limits);
}

std::unique_ptr<Layouts> torch_layouts(const Checkpoint& checkpoint, const SaveOptions&) {
  return std::make_unique<TorchLayouts>(checkpoint);
}

}  // namespace ballast
