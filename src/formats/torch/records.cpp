#include "formats/torch/records.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "core/name_hash.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "formats/torch/types.hpp"
#include "tensor/element_layout.hpp"

namespace ballast::torch {
namespace {

Error unsupported(std::string_view name, const std::string& what) {
  return Error(Errc::unsupported, "tensor " + quote(name) + " " + what);
}

void check_can_store(std::string_view name, const Tensor& tensor) {
  const DTypeInfo& type = info(tensor.dtype());
  if (type.torch_name.empty()) {
    throw unsupported(name, "has dtype " + std::string(type.name) + ", which torch cannot store")
        .hint(cast_it_or_leave_it_out("F32"));
  }
  if (!tensor.has_data()) throw unsupported(name, "has no data to store").hint(leave_it_out());
  if (valid_utf8_prefix(name) != name.size()) throw unsupported(name, "has a name that is not UTF-8").hint(rename_it());
  const bool fills_bytes = tensor.rank() != 0 && tensor.shape().dims().back() % type.block_elements == 0;
  if (counts_bytes_in_shapes(tensor.dtype()) && !fills_bytes) {
    throw unsupported(name, "has shape " + to_string(tensor.shape()) + ", but torch packs " +
                                std::to_string(type.block_elements) + " elements of the last dimension in a byte")
        .hint(cast_it_or_leave_it_out("F32"));
  }
}

using EntriesByName = NameViewMap<const Tensor*>;

const Tensor* find_part(const Composite& composite, const EntriesByName& entries, const char* ending) {
  for (const std::string& part : composite.parts) {
    if (part != composite.name + ending) continue;
    const auto found = entries.find(part);
    if (found != entries.end()) return found->second;
  }
  return nullptr;
}

Leaf quantized_leaf(const StateDict::Entry& entry, const Composite* composite, const EntriesByName& entries) {
  if (composite == nullptr) {
    throw unsupported(entry.name, "has dtype " + std::string(name(entry.tensor.dtype())) + " and nothing that says " +
                                      "by which scale its integers are to be multiplied")
        .hint(leave_it_out());
  }
  Leaf leaf{entry.name, &entry.tensor, composite};
  if (!composite->axis) return leaf;
  leaf.scales = find_part(*composite, entries, ".scales");
  leaf.zero_points = find_part(*composite, entries, ".zero_points");
  if (leaf.scales == nullptr || leaf.zero_points == nullptr) {
    throw unsupported(entry.name, "is quantized by channels, and its scales and zero points are not with it")
        .hint("select " + quote(composite->name + ".scales") + " and " + quote(composite->name + ".zero_points") +
              " too, or " + leave_it_out());
  }
  return leaf;
}

std::vector<std::pair<std::string_view, const Tensor*>> tensors_of(std::span<const Leaf> leaves) {
  std::vector<std::pair<std::string_view, const Tensor*>> tensors;
  tensors.reserve(leaves.size());
  for (const Leaf& leaf : leaves) {
    for (const Tensor* tensor : {leaf.tensor, leaf.scales, leaf.zero_points}) {
      if (tensor != nullptr) tensors.emplace_back(leaf.name, tensor);
    }
  }
  return tensors;
}

// The bytes [low, high) of its storage from which a tensor takes its elements.
struct View {
  std::size_t number;  // of the tensor
  const Tensor* tensor;
  std::uint64_t low, high;
  Strides strides;
};

View view_of(std::size_t number, const Tensor& tensor) {
  View view{number, &tensor, tensor.offset(), tensor.offset() + tensor.nbytes(), tensor.strides()};
  if (!tensor.is_contiguous()) {
    const ElementLayout layout = element_layout(tensor.dtype(), tensor.shape(), view.strides);
    view.low = tensor.offset() - layout.low_bytes;
    view.high = tensor.offset() + layout.high_bytes;
  }
  return view;
}

bool is_same(const View& a, const View& b) {
  return a.tensor->offset() == b.tensor->offset() && a.tensor->dtype() == b.tensor->dtype() &&
         a.tensor->shape() == b.tensor->shape() && a.strides == b.strides;
}

// Puts equal views beside each other, and the views of each storage in the order of their beginnings.
bool goes_before(const View& a, const View& b) {
  const auto key = [](const View& v) {
    return std::tuple(v.tensor->storage().get(), v.low, v.high, v.tensor->dtype(), v.tensor->offset());
  };
  if (key(a) != key(b)) return key(a) < key(b);
  if (!(a.tensor->shape() == b.tensor->shape())) {
    const auto x = a.tensor->shape().dims(), y = b.tensor->shape().dims();
    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
  }
  if (a.strides != b.strides) return a.strides < b.strides;
  return a.number < b.number;
}

// Views whose bytes overlap, from the first byte of any of them to the last.
class Cluster {
 public:
  explicit Cluster(std::span<const View> views) : views_(views), low_(views.front().low) {
    for (std::size_t i = 0; i < views.size(); ++i) {
      high_ = std::max(high_, views[i].high);
      if (i != 0 && is_same(views[i - 1], views[i])) continue;
      ++distinct_;
      copies_bytes_ += views[i].tensor->nbytes();
    }
  }

  // Whether one storage can hold all of them, as torch would have saved it: every view can be told in whole elements,
  // and the storage is not larger than copies would be.
  bool can_share() const {
    const DTypeInfo& type = info(dtype());
    if (high_ - low_ > copies_bytes_ || (high_ - low_) % type.block_bytes != 0) return false;
    return std::all_of(views_.begin(), views_.end(), [&](const View& view) {
      const bool is_plain = type.block_elements == 1 || (view.tensor->is_contiguous() && distinct_ == 1);
      return is_plain && view.tensor->dtype() == dtype() && (view.tensor->offset() - low_) % type.block_bytes == 0 &&
             std::all_of(view.strides.begin(), view.strides.end(), [](std::int64_t stride) { return stride >= 0; });
    });
  }

  Tensor whole() const {
    const DTypeInfo& type = info(dtype());
    const std::uint64_t count = (high_ - low_) / type.block_bytes * type.block_elements;
    return Tensor(dtype(), {count}, views_.front().tensor->storage(), low_);
  }
  std::uint64_t first_of(const View& view) const { return (view.tensor->offset() - low_) / info(dtype()).block_bytes; }

  std::span<const View> views() const { return views_; }
  bool has_several() const { return distinct_ > 1; }

 private:
  DType dtype() const { return views_.front().tensor->dtype(); }

  std::span<const View> views_;
  std::uint64_t low_, high_ = 0;
  std::uint64_t copies_bytes_ = 0;  // that copies of the distinct views would take
  std::size_t distinct_ = 0;
};

class Assignment {
 public:
  explicit Assignment(std::span<const Leaf> leaves) : tensors_(tensors_of(leaves)), placed_(tensors_.size()) {
    std::vector<View> views;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Tensor& tensor = *tensors_[i].second;
      if (tensor.nbytes() != 0) {
        views.push_back(view_of(i, tensor));
      } else {
        place(i, contents_.size(), 0, contiguous_strides(torch_shape(tensor)));
        contents_.push_back(tensor);
      }
    }
    std::sort(views.begin(), views.end(), goes_before);
    for (std::size_t begin = 0; begin < views.size();) {
      const std::size_t end = end_of_cluster(views, begin);
      add(Cluster(std::span(views).subspan(begin, end - begin)));
      begin = end;
    }
  }

  // Numbers the records in the order in which the pickle comes to the storages.
  Records finish() && {
    Records result{{}, std::move(placed_), std::move(notes_)};
    std::vector<std::optional<std::size_t>> numbers(contents_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      auto& record = result.placements[i].record;
      if (!numbers[record]) {
        numbers[record] = result.records.size();
        result.records.push_back({std::move(contents_[record]), tensors_[i].first});
      }
      record = *numbers[record];
    }
    return result;
  }

 private:
  static std::size_t end_of_cluster(std::span<const View> views, std::size_t begin) {
    std::uint64_t high = views[begin].high;
    std::size_t end = begin + 1;
    for (; end < views.size(); ++end) {
      const bool overlaps = views[end].tensor->storage() == views[begin].tensor->storage() && views[end].low < high;
      if (!overlaps) break;
      high = std::max(high, views[end].high);
    }
    return end;
  }

  void add(const Cluster& cluster) {
    if (cluster.can_share()) return add_shared(cluster);
    for (std::size_t i = 0; i < cluster.views().size(); ++i) {
      const View& view = cluster.views()[i];
      if (i == 0 || !is_same(cluster.views()[i - 1], view)) contents_.push_back(*view.tensor);
      place(view.number, contents_.size() - 1, 0, contiguous_strides(torch_shape(*view.tensor)));
    }
    if (cluster.has_several()) note_copies(cluster);
  }

  void add_shared(const Cluster& cluster) {
    for (const View& view : cluster.views()) {
      Strides strides = view.tensor->is_contiguous() ? contiguous_strides(torch_shape(*view.tensor)) : view.strides;
      place(view.number, contents_.size(), cluster.first_of(view), std::move(strides));
    }
    contents_.push_back(cluster.whole());
  }

  void place(std::size_t number, std::size_t record, std::uint64_t first, Strides strides) {
    placed_[number] = {record, first, std::move(strides)};
  }

  void note_copies(const Cluster& cluster) {
    const View& a = cluster.views().front();
    const auto b = std::find_if(cluster.views().begin(), cluster.views().end(),
                                [&](const View& view) { return !is_same(a, view); });
    notes_.push_back({"",
                      "tensors " + quote(tensors_[a.number].first) + " and " + quote(tensors_[b->number].first) +
                          " overlap in one storage, and are written as copies",
                      Note::Kind::remark});
  }

  std::vector<std::pair<std::string_view, const Tensor*>> tensors_;
  std::vector<Placement> placed_;
  std::vector<Tensor> contents_;  // of the records, in the order in which they were found
  std::vector<Note> notes_;
};

}  // namespace

std::vector<Leaf> leaves_of(std::span<const StateDict::Entry* const> entries, std::span<const Composite> composites) {
  EntriesByName by_name;
  NameViewMap<const Composite*> quantized;
  for (const Composite& composite : composites) {
    if (composite.layout == "quantized") quantized.emplace(composite.name, &composite);
  }
  if (!quantized.empty()) {
    for (const auto* entry : entries) by_name.emplace(entry->name, &entry->tensor);
  }

  std::vector<Leaf> leaves;
  leaves.reserve(entries.size());
  std::unordered_set<const Tensor*> parts;
  for (const auto* entry : entries) {
    check_can_store(entry->name, entry->tensor);
    if (info(entry->tensor.dtype()).kind != DTypeKind::quantized) {
      leaves.push_back({entry->name, &entry->tensor});
      continue;
    }
    const auto found = quantized.find(entry->name);
    leaves.push_back(quantized_leaf(*entry, found == quantized.end() ? nullptr : found->second, by_name));
    for (const Tensor* part : {leaves.back().scales, leaves.back().zero_points}) parts.insert(part);
  }
  std::erase_if(leaves, [&](const Leaf& leaf) { return parts.contains(leaf.tensor); });
  return leaves;
}

Records assign_records(std::span<const Leaf> leaves) { return Assignment(leaves).finish(); }

std::vector<Bundle> bundles_of(std::span<const Leaf> leaves) {
  const Records records = assign_records(leaves);
  std::vector<std::optional<std::size_t>> bundle_of(records.records.size());
  std::vector<Bundle> bundles;
  std::size_t tensor = 0;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const std::size_t count = leaves[i].scales == nullptr ? 1 : 3;
    const auto mine = std::span(records.placements).subspan(tensor, count);
    tensor += count;

    std::size_t bundle = bundles.size();
    for (const Placement& placement : mine) {
      if (const auto known = bundle_of[placement.record]) bundle = std::min(bundle, *known);
    }
    if (bundle == bundles.size()) bundles.emplace_back();
    bundles[bundle].members.push_back(i);
    for (const Placement& placement : mine) {
      if (bundle_of[placement.record]) continue;
      bundle_of[placement.record] = bundle;
      bundles[bundle].bytes += records.records[placement.record].content.nbytes();
      bundles[bundle].numel += records.records[placement.record].content.numel();
    }
  }
  return bundles;
}

Shape torch_shape(const Tensor& tensor) {
  if (!counts_bytes_in_shapes(tensor.dtype())) return tensor.shape();
  std::vector<std::uint64_t> dims(tensor.shape().begin(), tensor.shape().end());
  dims.back() /= info(tensor.dtype()).block_elements;
  return Shape(dims);
}

}  // namespace ballast::torch
