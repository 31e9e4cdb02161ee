#include "peft/merge/module.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/suggest.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text.hpp"
#include "peft/embeddings.hpp"
#include "peft/hints.hpp"
#include "peft/merge/merged_storage.hpp"
#include "peft/names.hpp"
#include "peft/scaling.hpp"
#include "tensor/tensor_numbers.hpp"

namespace ballast::peft {
namespace {

// The first piece that is compared is small, since it shows most differences.
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
  const auto found = parts.find(part);
  return found == parts.end() ? nullptr : &found->second;
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
  error.about(name);
  if (const auto near = nearest(name, names)) {
    error.hint(fmt::format("did you mean {}? The adapter may belong to another model", quote(*near)));
  } else {
    error.hint("the adapter belongs to another model, or the names of one of both were changed");
  }
  throw error;
}

// Tables of word vectors, and other tensors of the same shape: one may be a copy of the other.
std::vector<Base::Table> Base::tables_of(const Checkpoint& checkpoint) {
  std::vector<Shape> shapes;
  for (const auto& [name, tensor] : checkpoint) {
    if (tensor.rank() == 2 && is_word_embedding(module_of(name))) shapes.push_back(tensor.shape());
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
        .hint(kAnotherModel);
  auto& edits = changes_[numbers_.find(name)->second].edits;
  if (!edits.empty() && edits.front()->extent() != edit->extent())
    throw Error(Errc::unsupported, fmt::format("two adapters see {} as matrices of different sizes", quote(name)));
  edits.push_back(std::move(edit));
}

void Base::replace(std::string_view name, Tensor tensor) {
  const auto number = numbers_.find(name);
  if (number == numbers_.end()) {
    checkpoint_.notes.push_back(
        {std::string(name), fmt::format("the base has no {}: the adapter adds it", quote(name)), Note::Kind::remark});
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

// The head of a model that ties it to the embeddings may lie in a file as a copy of them. No name tells that.
void Base::note_copies() const {
  for (const Table& changed : tables_) {
    if (!is_changed(changed)) continue;
    for (const Table& other : tables_) {
      const bool may_be_tied = is_word_embedding(module_of(changed.name)) || is_word_embedding(module_of(other.name));
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

void Base::finish(bool round_between, std::optional<DType> dtype) {
  note_copies();
  // A weight whose dtype changes afterwards is made in F32, so that it is rounded once. F64 keeps its digits until
  // then.
  const auto base_of = [&](const Tensor& tensor) {
    const bool is_real = is_floating(tensor.dtype()) || info(tensor.dtype()).kind == DTypeKind::ggml;
    const bool changes = dtype && *dtype != tensor.dtype() && is_real && tensor.dtype() != DType::f64;
    return changes && !round_between ? tensor.to(DType::f32) : tensor;
  };
  for (auto& [names, edits, is_replaced] : changes_) {
    if (edits.empty()) continue;
    try {
      const Tensor merged = merged_tensor(base_of(at(names.front())), std::move(edits), round_between);
      for (const std::string& name : names) checkpoint_.tensors.replace(name, merged);
    } catch (const Error& error) {
      throw error.saying(fmt::format("tensor {}: {}", quote(names.front()), error.message())).about(names.front());
    }
  }
}

Extent Task::sides(const Module& other) const {
  const Extent whole = extent(base.at(other.name + ".weight").shape());
  return config.is_set("fan_in_fan_out") ? whole.transposed() : whole;
}

double Task::scaling(std::string_view key, std::string_view alpha_field) const {
  const double scaling = scaling_at(config, key, alpha_field);
  if (scaling != 0) return scaling;
  throw Error(Errc::mismatch, fmt::format("the adapter scales {} by 0, so it changes nothing", quote(key)))
      .hint(fmt::format("correct \"{}\" in adapter_config.json", alpha_field));
}

Addition Task::addition(std::vector<DType> dtypes) const {
  if (!options.peft_exact) dtypes.clear();
  return {factor, std::move(dtypes), options.peft_exact};
}

void Task::edit(std::string_view name, EditPtr edit) const {
  base.edit(name, weighted(std::move(edit), std::abs(factor)));
}

void Task::refuse_unmerge(std::string_view why) const {
  if (!options.unmerge) return;
  throw Error(Errc::unsupported, fmt::format("the module {} cannot be taken out again: {}", quote(module.name), why))
      .hint("go back to the base that it was merged into");
}

const Tensor& Task::shared(std::string_view name) const {
  const auto found = parts.shared.find(name);
  if (found != parts.shared.end()) return found->second;
  throw Error(Errc::mismatch, fmt::format("the adapter has no {}, which all of its modules need", name))
      .hint(kWasItSavedWhole);
}

void require_shape(const Module& module, std::string_view part, std::initializer_list<std::uint64_t> shape) {
  const Shape wanted(shape);
  const Shape& found = module.at(part).shape();
  if (found == wanted) return;
  throw Error(Errc::mismatch, fmt::format("{} of the module {} has the shape {}, but the configuration and its other "
                                          "parts ask for {}",
                                          part, quote(module.name), to_string(found), to_string(wanted)))
      .hint(kIsItTheConfig);
}

bool is_transposed(const Task& task, const Tensor& weight, std::uint64_t out, std::uint64_t in) {
  const Extent found = extent(weight.shape()), wanted{out, in};
  const bool is_square = out == in && found == wanted;
  if (is_square) return weight.rank() == 2 && task.config.is_set("fan_in_fan_out");
  if (found == wanted) return false;
  if (weight.rank() == 2 && found == wanted.transposed()) return true;
  throw Error(Errc::mismatch,
              fmt::format("the adapter changes the module {} by a matrix of {} by {}, but its weight has "
                          "the shape {}",
                          quote(task.module.name), out, in, to_string(weight.shape())))
      .hint(kAnotherModel);
}

void throw_wrong_blocks(const Task& task, std::uint64_t blocks, std::uint64_t size) {
  throw Error(Errc::mismatch,
              fmt::format("the adapter turns the inputs of {} by {} blocks of {}, but its weight has the "
                          "shape {}",
                          quote(task.module.name), blocks, size, to_string(task.weight().shape())))
      .hint(kAnotherModel);
}

void require_table(const Task& task, std::uint64_t tokens, std::uint64_t values) {
  if (extent(task.weight().shape()) == Extent{tokens, values}) return;
  throw Error(Errc::mismatch, fmt::format("the adapter changes {} tokens of {} values, but {} has the shape {}", tokens,
                                          values, quote(task.weight_name()), to_string(task.weight().shape())))
      .hint("was the vocabulary of the base changed?");
}

}  // namespace ballast::peft
