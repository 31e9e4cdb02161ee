#include "llamacpp/names/renaming.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "checkpoint/quantization/packed_parts.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "layout/names_values.hpp"
#include "llamacpp/names/changes.hpp"
#include "llamacpp/names/match.hpp"
#include "llamacpp/names/numbers.hpp"
#include "tensor/checkpoint_parts.hpp"

namespace ballast::names {
namespace {

std::string_view described(NameStyle style) { return style == NameStyle::gguf ? "GGUF" : "Hugging Face"; }

void remark(Checkpoint& checkpoint, std::string text) {
  checkpoint.notes.push_back({checkpoint.target, std::move(text), Note::Kind::remark});
}

// Counts tensors of one kind, for one note about all of them.
struct Tally {
  std::uint64_t count = 0;
  std::string example;

  void add(std::string_view name) {
    if (count++ == 0) example = name;
  }
};

class Renaming {
 public:
  Renaming(Checkpoint& checkpoint, const Architecture& architecture, NameStyle style, const NameOptions& options)
      : checkpoint_(checkpoint),
        packed_(checkpoint),
        architecture_(architecture),
        style_(style),
        options_(options),
        numbers_(checkpoint, architecture, options),
        main_blocks_(numbers_.main_blocks()) {}

  void run() {
    find_query_rows();
    for (const auto& [name, tensor] : checkpoint_) take(name, tensor);
    make_tensors();
    take_names();
    forget_repacked();
    say_notes();
  }

 private:
  // The tensors that a row of the table makes others of, together.
  struct Group {
    Match match;
    std::map<std::pair<std::size_t, std::uint64_t>, std::pair<std::string_view, Tensor>> parts;  // by part and number
    std::size_t position = 0;  // of the last part among all tensors
  };
  using Key = std::tuple<const Row*, std::uint64_t, std::string>;

  std::optional<Match> match(std::string_view name, const Tensor& tensor) const {
    return names::match(architecture_, style_, name, {main_blocks_, tensor.dtype() == DType::mxfp4});
  }

  void take(std::string_view name, const Tensor& tensor) {
    const std::size_t position = positions_++;
    const auto found = match(name, tensor);
    if (found && found->is_left_out) return left_out_.add(name);
    if (!found && style_ == NameStyle::gguf && is_of_tower(name)) return towers_.add(name);
    if (!found) {
      if (options_.refuse_unknown) throw_unknown(name);
      unnamed_.add(name);
      others_.emplace(position, std::pair(name, tensor));
      return;
    }
    Group& group = groups_[{found->row, found->block, found->suffix}];
    if (group.parts.empty()) group.match = *found;
    group.position = position;
    const auto [there, is_new] = group.parts.try_emplace({found->part, found->number}, name, tensor);
    if (!is_new) throw_twice(there->second.first, name, found->name);
  }

  [[noreturn]] void throw_unknown(std::string_view name) const {
    throw Error(Errc::unsupported, fmt::format("tensor {} has no place in a GGUF of the architecture {}", quote(name),
                                               quote(architecture_.gguf)))
        .hint(leave_it_out());
  }

  [[noreturn]] static void throw_twice(std::string_view one, std::string_view other, std::string_view name) {
    throw Error(Errc::invalid_argument,
                fmt::format("tensors {} and {} would both be called {}", quote(one), quote(other), quote(name)))
        .hint("leave one out with " + mention(Remedy::exclude));
  }

  // The tensors in the order of the checkpoint; what is made of several stands where the last of them stood.
  void make_tensors() {
    tensors_.reserve(positions_);
    std::map<std::size_t, const Group*> by_position;
    for (const auto& [key, group] : groups_) by_position.emplace(group.position, &group);
    auto other = others_.begin();
    const auto take_others = [&](std::size_t before) {
      for (; other != others_.end() && other->first < before; ++other) {
        const auto& [name, tensor] = other->second;
        insert(name, std::string(name), tensor);
        changes_.emplace(name, Change::none);
      }
    };
    for (const auto& [position, group] : by_position) {
      take_others(position);
      make(*group);
    }
    take_others(positions_);
  }

  void insert(std::string_view from, const std::string& name, Tensor tensor) {
    const auto [origin, is_new] = origins_.try_emplace(name, from);
    if (!is_new) throw_twice(origin->second, from, name);
    tensors_.insert(name, std::move(tensor));
    made_.try_emplace(std::string(from), name);
  }

  void make(const Group& group) {
    const std::string_view name = group.parts.begin()->second.first;
    const Tensor& tensor = group.parts.begin()->second.second;
    std::vector<Tensor> results;
    try {
      results = changed(group);
    } catch (const Error& error) {
      const bool is_blocks = error.code() == Errc::unsupported && info(tensor.dtype()).kind == DTypeKind::ggml;
      Error named(error.code(), fmt::format("tensor {}: {}", quote(name), error.message()));
      named.about(name).hint(is_blocks ? decode_it_first() : error.hint());
      const bool may_wait = options_.allow_unknown_heads && error.code() == Errc::invalid_argument;
      if (!may_wait || group.parts.size() != 1) throw named;
      results.assign(new_names(group, 1).size(), unreadable(tensor, named));
    }
    if (results.front().dtype() != tensor.dtype() && group.match.change == Change::add_one) widened_.add(name);
    const std::vector<std::string> called = new_names(group, results.size());
    for (std::size_t i = 0; i < results.size(); ++i) insert(name, called.at(i), std::move(results[i]));
    if (group.parts.size() == 1 && results.size() == 1) changes_.emplace(name, group.match.change);
    for (const auto& [place, part] : group.parts) gone_.emplace(part.first);
  }

  std::vector<std::string> new_names(const Group& group, std::size_t count) const {
    std::vector<std::string> names = group.match.names_in(style_, main_blocks());
    if (style_ == NameStyle::huggingface && group.match.change == Change::stack) {
      const std::string pattern = names.front();
      names.clear();
      for (std::uint64_t i = 0; i < count; ++i) names.push_back(with_number(pattern, i));
    }
    return names;
  }

  // Hugging Face calls blocks that predict further tokens otherwise, in some architectures.
  std::uint64_t main_blocks() const { return architecture_.extra_blocks == ExtraBlocks::mtp ? main_blocks_ : 0; }

  static bool is_of_mxfp4(Change change) { return change == Change::mxfp4 || change == Change::mxfp4_alternating; }

  std::vector<Tensor> changed(const Group& group) {
    const Change change = group.match.change;
    const std::vector<Tensor> parts = complete_parts(group);
    for (const auto& [place, part] : group.parts) {
      if (is_of_mxfp4(change)) repacked_.emplace(part.second.storage().get(), part.second.offset());
    }
    for (const auto& [place, part] : group.parts) check_changeable(part.first, part.second, change);
    if (change == Change::permute_queries || change == Change::permute_keys)
      return {reordered(parts.front(), group.match)};
    return style_ == NameStyle::gguf ? to_gguf(change, parts, numbers_, group.match.block)
                                     : to_huggingface(change, parts, numbers_, group.match.block);
  }

  // What became ggml's blocks is no part of a quantized weight any more.
  void forget_repacked() {
    if (repacked_.empty() || !checkpoint_.quantization) return;
    StateDict left;
    for (const auto& [name, tensor] : checkpoint_.quantization->parts)
      if (!repacked_.contains({tensor.storage().get(), tensor.offset()})) left.insert(name, tensor);
    checkpoint_.quantization->parts = std::move(left);
    if (checkpoint_.quantization->parts.empty()) checkpoint_.quantization.reset();
  }

  // All parts that the row has on this side, in order; the numbers of a stack have no holes.
  std::vector<Tensor> complete_parts(const Group& group) const {
    std::vector<Tensor> parts;
    const NameStyle own = style_ == NameStyle::gguf ? NameStyle::huggingface : NameStyle::gguf;
    const std::vector<std::string> names = group.match.names_in(own, main_blocks());
    const bool is_stack = group.match.change == Change::stack && style_ == NameStyle::gguf;
    const std::size_t count = is_stack ? group.parts.rbegin()->first.second + 1 : names.size();
    std::size_t expected = 0;
    for (const auto& [place, part] : group.parts) {
      if ((is_stack ? place.second : place.first) != expected) break;
      parts.push_back(part.second);
      ++expected;
    }
    if (parts.size() == count) return parts;
    const std::string missing = is_stack ? with_number(names.front(), expected) : names.at(expected);
    throw Error(Errc::mismatch, fmt::format("belongs with {}, which is not there", quote(missing)))
        .hint("is the checkpoint complete?");
  }

  void check_changeable(std::string_view name, const Tensor& tensor, Change change) const {
    if (change == Change::none || is_of_mxfp4(change)) return;
    if (const auto unknown = checkpoint_.unknown_ggml.find(name); unknown != checkpoint_.unknown_ggml.end()) {
      throw Error(Errc::unsupported,
                  fmt::format("its values change with its name, and it is of ggml's type {}, which is unknown",
                              unknown->second.id))
          .hint(leave_it_out());
    }
    packed_.refuse(name, tensor, "changed with its name");
  }

  // The rows of a head, from the first queries that there are. An adapter may have keys alone.
  void find_query_rows() {
    for (const auto& [name, tensor] : checkpoint_) {
      const auto found = match(name, tensor);
      if (!found || found->change != Change::permute_queries || tensor.rank() == 0) continue;
      const auto heads = numbers_.find_heads(found->block);
      if (heads && *heads != 0) query_rows_ = tensor.shape()[0] / *heads;
      if (query_rows_) return;
    }
  }

  // Every head of queries meets a head of keys, so both have as many rows. So a head count that is wrong, or that was
  // left out although keys have fewer heads, shows here and not in the model's output.
  Tensor reordered(const Tensor& tensor, const Match& match) {
    const bool is_of_keys = match.change == Change::permute_keys;
    const std::uint64_t heads = is_of_keys ? numbers_.heads_of_keys(match.block) : numbers_.heads(match.block);
    const bool is_assumed = is_of_keys && numbers_.assumes_heads_of_keys(match.block);
    if (is_assumed && !query_rows_) numbers_.throw_unknown_keys();
    Tensor result = style_ == NameStyle::gguf ? interleave_halves(tensor, heads) : separate_halves(tensor, heads);
    const std::uint64_t rows = tensor.shape()[0] / heads;
    const auto [first, is_first] = head_rows_.try_emplace(match.block, is_assumed ? *query_rows_ : rows);
    if (first->second != rows) {
      throw Error(Errc::mismatch, fmt::format("with {} heads, one has {} rows, and {} has {}", heads, rows,
                                              is_first ? "one of queries" : "another of that block", first->second))
          .hint(options_.refuse_unknown
                    ? std::string("does config.json belong to these weights?")
                    : fmt::format("give {} with {} and {} with {}", numbers_.heads_key(), mention(Remedy::heads),
                                  numbers_.keys_key(), mention(Remedy::kv_heads)));
    }
    return result;
  }

  // Two names of one tensor still share it, if the same change is made to both.
  void take_names() {
    std::set<std::string, std::less<>> parted;
    for (const auto& [removed, kept] : checkpoint_.aliases) {
      const auto a = made_.find(removed), b = made_.find(kept);
      if (a == made_.end() || b == made_.end()) continue;
      const auto change_a = changes_.find(removed), change_b = changes_.find(kept);
      const bool is_shared =
          change_a != changes_.end() && change_b != changes_.end() && change_a->second == change_b->second;
      if (is_shared) tensors_.replace(a->second, Tensor(tensors_.at(b->second)));
      if (!is_shared) parted.insert(a->second);
    }
    // Names of tensors that became one, or several, are not those of any tensor now.
    checkpoint_ = rename_names(std::move(checkpoint_), [&](std::string_view name) -> std::optional<std::string> {
      const auto found = made_.find(name);
      if (found == made_.end() || (gone_.contains(name) && !changes_.contains(name))) return std::nullopt;
      return found->second;
    });
    replace_tensors(checkpoint_, std::move(tensors_), [&](std::string_view name) { return !parted.contains(name); });
  }

  void say_notes() const {
    const std::uint64_t all = positions_;
    if (unnamed_.count != 0) {
      remark(checkpoint_,
             fmt::format("{} of {} names of {} have no counterpart in {} and stay, such as {}", unnamed_.count, all,
                         architecture_.name, described(style_), quote(unnamed_.example)));
    }
    if (left_out_.count != 0) {
      remark(checkpoint_, fmt::format("left out, since GGUF has no place for them: {} of {} tensors, such as {}",
                                      left_out_.count, all, quote(left_out_.example)));
    }
    if (towers_.count != 0) {
      remark(checkpoint_, fmt::format("left out, since they are not of the language model but see or hear: {} of {} "
                                      "tensors, such as {}",
                                      towers_.count, all, quote(towers_.example)));
    }
    if (widened_.count != 0) {
      remark(checkpoint_, fmt::format("norms are F32 now, since 1 is {}: {} of them, such as {}",
                                      style_ == NameStyle::gguf ? "added to them" : "subtracted from them",
                                      widened_.count, quote(widened_.example)));
    }
  }

  Checkpoint& checkpoint_;
  PackedParts packed_;
  const Architecture& architecture_;
  NameStyle style_;
  const NameOptions& options_;
  Numbers numbers_;
  std::uint64_t main_blocks_;
  std::optional<std::uint64_t> query_rows_;
  std::size_t positions_ = 0;
  std::set<std::pair<const Storage*, std::uint64_t>> repacked_;  // where parts lie that became blocks of ggml's
  std::map<Key, Group> groups_;
  std::map<std::size_t, std::pair<std::string_view, Tensor>>
      others_;  // by position: names that the table does not have
  StateDict tensors_;
  std::map<std::string, std::string, std::less<>> origins_;  // the old name, by the new one
  std::map<std::string, std::string, std::less<>> made_;     // the (first) new name, by the old one
  std::map<std::string, Change, std::less<>> changes_;       // by the old name, if one tensor became one tensor
  std::set<std::string, std::less<>> gone_;                  // old names that the table has
  std::map<std::uint64_t, std::uint64_t> head_rows_;         // by the block
  Tally unnamed_, left_out_, towers_, widened_;
};

}  // namespace

void rename_tensors(Checkpoint& checkpoint, const Architecture& architecture, NameStyle style,
                    const NameOptions& options) {
  Renaming(checkpoint, architecture, style, options).run();
}

}  // namespace ballast::names
