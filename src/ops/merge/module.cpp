#include "ops/merge/module.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/suggest.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text.hpp"
#include "ops/adapter/modules.hpp"
#include "ops/merge/merged_storage.hpp"
#include "tensor/tensor_numbers.hpp"

namespace ballast::merging {
namespace {

// Of different tensors, the first piece tells.
bool are_equal(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape() || !a.has_data() || !b.has_data()) return false;
  constexpr std::uint64_t kFirstBytes = 64 << 10, kMostBytes = 4 << 20;
  std::vector<std::byte> of_a, of_b;
  for (const Tensor* tensor : {&a, &b}) tensor->storage()->prepare({});
  for (std::uint64_t at = 0, size = kFirstBytes; at < a.nbytes(); at += size, size = kMostBytes) {
    size = std::min(size, a.nbytes() - at);
    of_a.resize(static_cast<std::size_t>(size));
    of_b.resize(of_a.size());
    a.read(at, of_a);
    b.read(at, of_b);
    if (of_a != of_b) return false;
  }
  return true;
}

}  // namespace

const Tensor* Module::find(std::string_view part) const {
  const auto place = parts.find(part);
  return place == parts.end() ? nullptr : &place->second;
}

const Tensor& Module::at(std::string_view part) const {
  if (const Tensor* tensor = find(part)) return *tensor;
  throw Error(Errc::mismatch, fmt::format("the adapter has {} of the module {}, but no {}",
                                          parts.empty() ? "nothing" : parts.begin()->first, quote(name), part))
      .hint("a part of the adapter is missing: was it saved or downloaded completely?");
}

const Tensor& Base::at(std::string_view name) const {
  if (const Tensor* tensor = find(name)) return *tensor;
  packed_.refuse_weight(name, "merged into");
  std::vector<std::string_view> names;
  for (const auto& entry : checkpoint_) names.push_back(entry.name);
  Error error(Errc::not_found, fmt::format("the adapter changes {}, which the base does not have", quote(name)));
  if (const auto near = nearest(name, names)) {
    error.hint(fmt::format("did you mean {}? The adapter may belong to another model", quote(*near)));
  } else {
    error.hint("the adapter belongs to another model, or the names of one of both were changed");
  }
  throw error;
}

// Vectors of words, and whatever has as many of the same length: one of them may be a copy of the other.
std::vector<Base::Table> Base::tables_of(const Checkpoint& checkpoint) {
  std::vector<Shape> shapes;
  for (const auto& [name, tensor] : checkpoint) {
    if (tensor.rank() == 2 && adapter::is_word_embedding(name.substr(0, name.rfind('.'))))
      shapes.push_back(tensor.shape());
  }
  std::vector<Table> tables;
  for (const auto& [name, tensor] : checkpoint) {
    if (std::ranges::find(shapes, tensor.shape()) != shapes.end()) tables.push_back({std::string(name), tensor});
  }
  return tables;
}

Base::Base(Checkpoint& checkpoint, bool apart) : checkpoint_(checkpoint), packed_(checkpoint) {
  TensorNumbers numbers;
  for (const auto& [name, tensor] : checkpoint) {
    const std::size_t number = apart ? changes_.size() : numbers(tensor);
    if (number == changes_.size()) changes_.emplace_back();
    changes_[number].names.emplace_back(name);
    numbers_.emplace(name, number);
  }
  tables_ = tables_of(checkpoint);
}

void Base::edit(std::string_view name, EditPtr edit) {
  const Tensor& tensor = at(name);
  packed_.refuse(name, tensor, "merged into");
  if (edit->extent().rows * edit->extent().columns != tensor.numel())
    throw Error(Errc::mismatch,
                fmt::format("the adapter changes a matrix of {} by {}, but {} has the shape {}", edit->extent().rows,
                            edit->extent().columns, quote(name), to_string(tensor.shape())))
        .hint("the adapter belongs to another model, or to another size of it");
  auto& edits = changes_[numbers_.find(name)->second].edits;
  if (!edits.empty() && edits.front()->extent() != edit->extent())
    throw Error(Errc::unsupported, fmt::format("two adapters see {} as matrices of different sizes", quote(name)));
  edits.push_back(std::move(edit));
}

void Base::replace(std::string_view name, Tensor tensor) {
  const auto number = numbers_.find(name);
  if (number == numbers_.end()) {
    checkpoint_.notes.push_back(
        {std::string(name), fmt::format("the base has no {}: it is the adapter's", quote(name)), Note::Kind::remark});
    checkpoint_.tensors.insert(name, std::move(tensor));
    numbers_.emplace(name, changes_.size());
    changes_.push_back({{std::string(name)}, {}});
    return;
  }
  packed_.refuse(name, at(name), "replaced alone");
  if (!changes_[number->second].edits.empty())
    throw Error(Errc::unsupported, fmt::format("one adapter changes {} and a later one replaces it", quote(name)));
  std::erase(changes_[number->second].names, name);
  number->second = changes_.size();
  changes_.push_back({{std::string(name)}, {}, true});
  checkpoint_.tensors.replace(name, std::move(tensor));
}

bool Base::is_changed(const Table& table) const {
  const Change& change = changes_[numbers_.find(table.name)->second];
  return change.is_replaced || !change.edits.empty();
}

// A head that is tied to the embeddings may lie in a file as a copy of them, which no name tells.
void Base::note_copies() const {
  for (const Table& changed : tables_) {
    if (!is_changed(changed)) continue;
    for (const Table& other : tables_) {
      const bool may_be_tied =
          adapter::is_word_embedding(module_of(changed)) || adapter::is_word_embedding(module_of(other));
      if (!may_be_tied || is_changed(other) || !are_equal(changed.before, other.before)) continue;
      checkpoint_.notes.push_back(
          {changed.name,
           fmt::format("{} is changed and {} is not, which were equal in the base: a model that ties them "
                       "(tie_word_embeddings) uses one for both",
                       quote(changed.name), quote(other.name)),
           Note::Kind::remark});
    }
  }
}

void Base::finish(bool round_between) {
  note_copies();
  for (auto& [names, edits, is_replaced] : changes_) {
    if (edits.empty()) continue;
    try {
      const Tensor merged = merged_tensor(at(names.front()), std::move(edits), round_between);
      for (const std::string& name : names) checkpoint_.tensors.replace(name, merged);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("tensor {}: {}", quote(names.front()), error.message())).hint(error.hint());
    }
  }
}

Addition Task::addition(std::vector<DType> dtypes) const {
  if (!options.peft_exact) dtypes.clear();
  return {weight, std::move(dtypes), options.peft_exact};
}

void Task::edit(std::string_view name, EditPtr edit) const {
  base.edit(name, weighted(std::move(edit), std::abs(weight)));
}

void Task::refuse_unmerge(std::string_view why) const {
  if (!options.unmerge) return;
  throw Error(Errc::unsupported, fmt::format("the module {} cannot be taken out again: {}", quote(module.name), why))
      .hint("go back to the base that it was merged into");
}

const Tensor& Task::shared(std::string_view name) const {
  const auto place = parts.shared.find(name);
  if (place != parts.shared.end()) return place->second;
  throw Error(Errc::mismatch, fmt::format("the adapter has no {}, which all of its modules need", name));
}

void require_shape(const Module& module, std::string_view part, std::initializer_list<std::uint64_t> shape) {
  const Shape wanted(shape);
  const Shape& found = module.at(part).shape();
  if (found == wanted) return;
  throw Error(Errc::mismatch, fmt::format("{} of the module {} has the shape {}, but the configuration and its other "
                                          "parts ask for {}",
                                          part, quote(module.name), to_string(found), to_string(wanted)))
      .hint("is this the adapter_config.json that the tensors were saved with?");
}

bool is_transposed(const Task& task, const Tensor& weight, std::uint64_t out, std::uint64_t in) {
  const Extent found = extent(weight.shape()), wanted{out, in};
  const bool is_square = out == in && found == wanted;
  if (is_square) return weight.rank() == 2 && task.settings.flag("fan_in_fan_out");
  if (found == wanted) return false;
  if (weight.rank() == 2 && found == wanted.transposed()) return true;
  throw Error(Errc::mismatch,
              fmt::format("the adapter changes the module {} by a matrix of {} by {}, but its weight has "
                          "the shape {}",
                          quote(task.module.name), out, in, to_string(weight.shape())))
      .hint("the adapter belongs to another model, or to another size of it");
}

}  // namespace ballast::merging
