#include <ballast/error.hpp>
#include <ballast/summary.hpp>
#include <ballast/text.hpp>
#include <ballast/training.hpp>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/remedy.hpp"
#include "core/text.hpp"
#include "tensor/checkpoint_parts.hpp"
#include "transform/training_names.hpp"
#include "transform/wrappers.hpp"

namespace ballast {
namespace {

std::string_view top_of(std::string_view name) { return name.substr(0, name.find('.')); }

// Everything that begins with one word: the first part of names and of the paths of values.
struct Subtree {
  enum class Kind : std::uint8_t { unknown, optimizer, average, other };
  Kind kind = Kind::unknown;
  std::uint64_t tensors = 0, bytes = 0;
};
using Subtrees = std::map<std::string, Subtree, std::less<>>;
using Kind = Subtree::Kind;

// Bytes that several tensors of a subtree share are counted once.
void count_bytes(const Checkpoint& checkpoint, Subtrees& subtrees) {
  std::vector<std::tuple<Subtree*, const Storage*, std::uint64_t, std::uint64_t>> ranges;
  ranges.reserve(checkpoint.size());
  for (const auto& [name, tensor] : checkpoint) {
    Subtree& subtree = subtrees.find(top_of(name))->second;
    ++subtree.tensors;
    ranges.emplace_back(&subtree, tensor.storage().get(), tensor.offset(), tensor.nbytes());
  }
  std::ranges::sort(ranges);
  ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
  for (const auto& [subtree, storage, offset, bytes] : ranges) subtree->bytes += bytes;
}

Subtrees subtrees_of(const Checkpoint& checkpoint) {
  Subtrees subtrees;
  const auto add = [&](std::string_view path) {
    const std::string_view top = top_of(path);
    auto found = subtrees.find(top);
    if (found == subtrees.end()) found = subtrees.try_emplace(std::string(top)).first;
    const bool is_optimizer = is_called_optimizer(top) && has_optimizer_sign(path.substr(top.size()));
    if (is_optimizer) found->second.kind = Kind::optimizer;
  };
  for (const auto& entry : checkpoint) add(entry.name);
  for (const PlainValue& value : checkpoint.values) add(value.path);
  return subtrees;
}

bool is_optimizer(const Subtrees::value_type& subtree) { return subtree.second.kind == Kind::optimizer; }

// A file that holds nothing but what optimizer.state_dict() returns.
bool is_bare_optimizer(const Subtrees& subtrees) {
  const auto is_of_it = [](std::string_view word) { return word == "state" || word == "param_groups"; };
  return subtrees.contains("state") && subtrees.contains("param_groups") &&
         std::ranges::all_of(
             subtrees, [&](const auto& subtree) { return subtree.second.tensors == 0 || is_of_it(subtree.first); });
}

bool is_lightning(const Checkpoint& checkpoint, const Subtrees& subtrees) {
  return subtrees.contains("optimizer_states") || std::ranges::any_of(checkpoint.values, [](const PlainValue& value) {
           return value.path.starts_with("pytorch-lightning_version");
         });
}

// Says of every subtree what it is.
class Sorted {
 public:
  explicit Sorted(const Checkpoint& checkpoint) : checkpoint_(checkpoint), subtrees_(subtrees_of(checkpoint)) {
    if (checkpoint.format == Format::archive) return;  // a slash stands between the parts of such names
    count_bytes(checkpoint, subtrees_);
    if (is_bare_optimizer(subtrees_)) {
      for (auto& [word, subtree] : subtrees_) subtree.kind = Kind::optimizer;
      return;
    }
    has_optimizer_ = std::ranges::any_of(subtrees_, is_optimizer);
    sort_averages();
    choose_model();
    sort_the_others();
  }

  const std::string& root() const noexcept { return root_; }

  bool is_of_model(std::string_view path) const {
    const auto found = subtrees_.find(top_of(path));
    return found == subtrees_.end() || found->second.kind == Kind::unknown;
  }

  // The name or path below the root of the model.
  std::string below_root(std::string_view path) const {
    if (root_.empty() || top_of(path) != root_) return std::string(path);
    return std::string(path.substr(std::min(path.size(), root_.size() + 1)));
  }

  TrainingParts parts() const {
    TrainingParts parts;
    parts.is_average = is_average_;
    for (const auto& [word, subtree] : subtrees_) {
      const TrainingPart part{word, subtree.tensors, subtree.bytes};
      if (subtree.kind == Kind::optimizer) parts.optimizers.push_back(part);
      if (subtree.kind == Kind::average) parts.averages.push_back(part);
      if (subtree.kind == Kind::other && subtree.tensors != 0) parts.others.push_back(part);
    }
    const Checkpoint model = rename_names(checkpoint_, [&](std::string_view name) {
      return is_of_model(name) ? std::optional(below_root(name)) : std::nullopt;
    });
    const Summary summary = summarize(model);
    parts.model = {root_, summary.tensors, summary.bytes};
    parts.prefix = wrapper_before(model, root_ == "state_dict" && is_lightning(checkpoint_, subtrees_));
    for (const auto& names : summary.tied) parts.tied.insert(parts.tied.end(), names.begin() + 1, names.end());
    return parts;
  }

 private:
  bool is_root(std::string_view word) const {
    return std::ranges::find(checkpoint_.roots, word, &Root::path) != checkpoint_.roots.end();
  }

  // Whether the word is the key of a whole subtree, and not only the beginning of names: an optimizer beside it, the
  // structure of the pickle, or plain values beside it say so.
  bool is_nested(std::string_view word) const {
    if (has_optimizer_ || is_root(word)) return true;
    return checkpoint_.format != Format::torchscript &&
           std::ranges::any_of(checkpoint_.values, [&](const PlainValue& value) { return top_of(value.path) != word; });
  }

  void sort_averages() {
    for (auto& [word, subtree] : subtrees_) {
      if (subtree.tensors == 0 || !is_called_average(word) || !is_nested(word)) continue;
      subtree.kind = Kind::average;
      has_average_ = true;
    }
  }

  // The usual name; or the only subtree that is left; or else the top.
  void choose_model() {
    for (const std::string_view word : usual_models()) {
      const auto found = subtrees_.find(word);
      if (found == subtrees_.end() || found->second.tensors == 0 || !is_nested(word)) continue;
      root_ = word;
      return;
    }
    if (!has_optimizer_ && !has_average_) return take_only_root();
    std::vector<std::string_view> left;
    for (const auto& [word, subtree] : subtrees_) {
      if (subtree.tensors != 0 && subtree.kind == Kind::unknown && !is_called_by_trainers(word)) left.push_back(word);
    }
    if (left.size() == 1 && is_root(left[0])) root_ = left[0];
    if (left.empty() && has_average_) take_average();
  }

  // A subtree that all tensors lie in is the model, whatever it is called.
  void take_only_root() {
    if (checkpoint_.roots.empty() || checkpoint_.roots[0].tensors != checkpoint_.size()) return;
    const std::string& path = checkpoint_.roots[0].path;
    if (path.find('.') == std::string::npos) root_ = path;
  }

  void take_average() {
    const auto average =
        std::ranges::find_if(subtrees_, [](const auto& subtree) { return subtree.second.kind == Kind::average; });
    average->second.kind = Kind::unknown;
    root_ = average->first;
    is_average_ = true;
  }

  // If the model has a subtree of its own, everything else is something else. Plain values stay with the model.
  void sort_the_others() {
    if (root_.empty() && !has_optimizer_ && !has_average_) return;
    for (auto& [word, subtree] : subtrees_) {
      if (subtree.tensors == 0 || subtree.kind != Kind::unknown || word == root_) continue;
      if (!root_.empty() || is_called_by_trainers(word)) subtree.kind = Kind::other;
    }
  }

  const Checkpoint& checkpoint_;
  Subtrees subtrees_;
  std::string root_;
  bool has_optimizer_ = false, has_average_ = false, is_average_ = false;
};

std::string list_of(const std::vector<TrainingPart>& parts) {
  constexpr std::size_t kMostShown = 5;
  std::string text;
  std::size_t shown = 0;
  for (const TrainingPart& part : parts) {
    if (part.tensors == 0) continue;
    if (++shown > kMostShown) return text + ", …";
    text += fmt::format("{}{} ({} {}, {})", text.empty() ? "" : ", ", part.root.empty() ? "all" : quote(part.root),
                        format_count(part.tensors), part.tensors == 1 ? "tensor" : "tensors", format_bytes(part.bytes));
  }
  return text;
}

void say_what_is_left_out(Checkpoint& checkpoint, const TrainingParts& parts) {
  const std::size_t before = checkpoint.notes.size();
  const auto say = [&](std::string text) { checkpoint.notes.push_back({"", std::move(text), Note::Kind::remark}); };
  if (const std::string list = list_of(parts.optimizers); !list.empty()) say("optimizer state is left out: " + list);
  if (!parts.averages.empty())
    checkpoint.notes.push_back({"", "an average of the model is left out: " + list_of(parts.averages),
                                Note::Kind::remark,
                                mention(Remedy::root, parts.averages.front().root) + " takes it instead"});
  if (parts.is_average)
    say(fmt::format("the model is the average {}, since no other weights are there", quote(parts.model.root)));
  if (!parts.others.empty()) say("left out besides the model: " + list_of(parts.others));
  if (!parts.prefix.empty()) say(fmt::format("every name loses its {}", quote(parts.prefix)));
  const bool may_have_wrapper =
      !parts.model.root.empty() && checkpoint.size() != 0 &&
      std::ranges::all_of(checkpoint, [](const StateDict::Entry& entry) { return entry.name.starts_with("model."); });
  if (may_have_wrapper) {
    checkpoint.notes.push_back({"", "every name begins with \"model.\", which is kept: it may be the model's own",
                                Note::Kind::remark, mention(Remedy::strip_prefix) + " takes it away"});
  }
  if (before == checkpoint.notes.size() && parts.model.root.empty()) say("there is nothing in it but the model");
}

// The names without wrappers; all as they are if two of them would become one.
Checkpoint unwrapped(Checkpoint checkpoint, TrainingParts& parts) {
  const auto plain = [&](std::string_view name) {
    return without_wrappers(name.substr(std::min(parts.prefix.size(), name.size())));
  };
  StateDict names;
  names.reserve(checkpoint.size());
  bool is_changed = false;
  for (const auto& [name, tensor] : checkpoint) {
    const std::string other = plain(name);
    is_changed = is_changed || other != name;
    if (names.insert(other, tensor)) continue;
    parts.prefix.clear();
    return checkpoint;
  }
  if (!is_changed) return checkpoint;
  return rename_names(std::move(checkpoint), [&](std::string_view name) { return std::optional(plain(name)); });
}

// Whether a name or a path may be that of an optimizer or an average. Neighbours mostly begin alike.
class Telling {
 public:
  bool operator()(std::string_view path) {
    const std::string_view top = top_of(path);
    if (top == last_) return was_telling_;
    last_ = top;
    was_telling_ = is_called_optimizer(top) || is_called_average(top) || top == "param_groups";
    return was_telling_;
  }

 private:
  std::string_view last_;
  bool was_telling_ = false;
};

// The path behind a key, "model.w" of "checkpoint.model.w"; all of it without a key.
std::string_view below(std::string_view key, std::string_view path) {
  return key.empty() ? path : path.substr(std::min(path.size(), key.size() + 1));
}

bool is_below(std::string_view key, std::string_view path) {
  return key.empty() || (path.starts_with(key) && path.substr(key.size()).starts_with('.'));
}

bool may_be_training(const Checkpoint& checkpoint, std::string_view key) {
  Telling is_telling;
  return std::ranges::any_of(checkpoint, [&](const auto& entry) { return is_telling(below(key, entry.name)); }) ||
         std::ranges::any_of(checkpoint.values, [&](const PlainValue& value) {
           return is_below(key, value.path) && is_telling(below(key, value.path));
         });
}

// What lies under the key, as if it were everything.
Checkpoint take_below(const Checkpoint& checkpoint, std::string_view key) {
  Checkpoint inner =
      rename_names(checkpoint, [&](std::string_view name) { return std::optional(std::string(below(key, name))); });
  std::erase_if(inner.values, [&](const PlainValue& value) { return !is_below(key, value.path); });
  for (PlainValue& value : inner.values) value.path = below(key, value.path);
  std::erase_if(inner.roots, [&](const Root& root) { return !is_below(key, root.path); });
  for (Root& root : inner.roots) root.path = below(key, root.path);
  return inner;
}

// The key under which a training checkpoint lies, if all tensors lie under it: "run" in {"run": {"model": …,
// "optimizer": …}}, or several keys in each other. Empty if there is none.
std::string outer_key(const Checkpoint& checkpoint) {
  constexpr int kDeepest = 4;
  if (checkpoint.size() == 0 || checkpoint.format == Format::archive) return {};
  std::string key;
  for (int depth = 0; depth < kDeepest; ++depth) {
    if (may_be_training(checkpoint, key) && Sorted(take_below(checkpoint, key)).parts().is_training()) return key;
    const std::string_view next = top_of(below(key, checkpoint.tensors[0].name));
    key += (key.empty() ? "" : ".") + std::string(next);
    if (!std::ranges::all_of(checkpoint, [&](const auto& entry) { return is_below(key, entry.name); })) return {};
  }
  return {};
}

}  // namespace

bool is_training_checkpoint(const Checkpoint& checkpoint) {
  if (may_be_training(checkpoint, {}) && Sorted(checkpoint).parts().is_training()) return true;
  return !outer_key(checkpoint).empty();
}

TrainingParts training_parts(const Checkpoint& checkpoint) {
  const std::string key = outer_key(checkpoint);
  if (key.empty()) return Sorted(checkpoint).parts();
  TrainingParts parts = Sorted(take_below(checkpoint, key)).parts();
  const auto put_below = [&](TrainingPart& part) { part.root = key + (part.root.empty() ? "" : "." + part.root); };
  put_below(parts.model);
  for (std::vector<TrainingPart>* list : {&parts.optimizers, &parts.averages, &parts.others})
    std::ranges::for_each(*list, put_below);
  return parts;
}

Checkpoint model_only(Checkpoint checkpoint) {
  const std::string key = outer_key(checkpoint);
  const Checkpoint whole = key.empty() ? std::move(checkpoint) : take_below(checkpoint, key);
  const Sorted sorted(whole);
  TrainingParts parts = sorted.parts();
  if (parts.model.tensors == 0) {
    throw Error(Errc::not_found, parts.optimizers.empty() ? "there is no model in it"
                                                          : "there is no model in it, only the state of an optimizer")
        .in(whole.target)
        .hint("the weights are in another file");
  }
  Checkpoint model = rename_names(whole, [&](std::string_view name) {
    return sorted.is_of_model(name) ? std::optional(sorted.below_root(name)) : std::nullopt;
  });
  std::erase_if(model.values, [&](const PlainValue& value) { return !sorted.is_of_model(value.path); });
  for (PlainValue& value : model.values) value.path = sorted.below_root(value.path);
  model.roots.clear();
  model = unwrapped(std::move(model), parts);
  say_what_is_left_out(model, parts);
  return model;
}

}  // namespace ballast
