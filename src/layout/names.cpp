#include <ballast/names.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "checkpoint/quantization/packed_parts.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "layout/names_match.hpp"
#include "layout/names_values.hpp"
#include "tensor/checkpoint_parts.hpp"

namespace ballast {
namespace {

using names::Architecture;
using names::Change;
using names::Match;

constexpr std::string_view kArchitectureKey = "general.architecture";

std::string_view described(NameStyle style) { return style == NameStyle::gguf ? "GGUF" : "Hugging Face"; }

std::string known_list() { return fmt::format("{}", fmt::join(architectures_with_names(), ", ")); }

void remark(Checkpoint& checkpoint, std::string text) {
  checkpoint.notes.push_back({checkpoint.target, std::move(text), Note::Kind::remark});
}

// If the caller asks for an architecture that has no table, that is an error; if the file says one, it is only noted.
const Architecture* choose_architecture(Checkpoint& checkpoint, const std::string& asked) {
  const std::string_view said = names::architecture_in(checkpoint);
  if (!asked.empty()) {
    const Architecture* found = names::find_architecture(asked);
    if (found == nullptr)
      throw Error(Errc::invalid_argument, fmt::format("no names are known for the architecture {}", quote(asked)))
          .hint("known are " + known_list());
    const Architecture* own = names::find_architecture(said);
    if (own != nullptr && std::string_view(own->gguf) != found->gguf)
      throw Error(Errc::mismatch,
                  fmt::format("the file says that it is of the architecture {}, not {}", quote(said), quote(asked)))
          .hint("leave " + mention(Remedy::architecture) + " out");
    return found;
  }
  if (said.empty()) {
    throw Error(Errc::invalid_argument, "nothing says of which architecture the tensors are")
        .hint("name it, such as " + mention(Remedy::architecture, "llama") + "; known are " + known_list());
  }
  const Architecture* found = names::find_architecture(said);
  if (!found) {
    remark(checkpoint, fmt::format("no names are known for the architecture {}: all stay as they are", quote(said)));
  }
  return found;
}

// A number that GGUF keeps for the whole model or for each block, or that safetensors keeps as text.
std::optional<std::uint64_t> find_number(const Checkpoint& checkpoint, std::string_view key, std::uint64_t block) {
  if (const MetadataEntry* field = checkpoint.typed_metadata.find(key)) {
    if (!field->is_array()) return field->as_uint();
    const std::size_t size = width(field->element_type);
    if (size == 0 || block >= field->count) return std::nullopt;
    return MetadataValue{field->element_type, field->bytes.subspan(static_cast<std::size_t>(block) * size, size)}
        .as_uint();
  }
  const auto entry = checkpoint.metadata.find(key);
  if (entry == checkpoint.metadata.end()) return std::nullopt;
  const char *begin = entry->second.data(), *end = begin + entry->second.size();
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(begin, end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

class HeadCounts {
 public:
  HeadCounts(const Checkpoint& checkpoint, const Architecture& architecture, const NameOptions& options)
      : checkpoint_(checkpoint),
        options_(options),
        key_(fmt::format("{}.attention.head_count", architecture.gguf)),
        key_kv_(key_ + "_kv") {}

  const std::string& key() const noexcept { return key_; }
  const std::string& key_kv() const noexcept { return key_kv_; }

  std::uint64_t of(const Match& match) const {
    return match.change == Change::permute_keys ? of_keys(match.block) : of_queries(match.block);
  }

  std::optional<std::uint64_t> find_queries(std::uint64_t block) const {
    const auto said = find_number(checkpoint_, key_, block);
    return options_.head_count != 0 ? agreed(key_, said, options_.head_count) : said;
  }

  // If a file says the heads of queries and is silent about keys, keys have as many heads as queries. If the file says
  // neither, that is only an assumption, because an option may have been forgotten.
  bool are_of_queries(const Match& match) const {
    return match.change == Change::permute_keys && !find_keys(match.block) &&
           !find_number(checkpoint_, key_, match.block);
  }

  [[noreturn]] void throw_unknown_keys() const {
    throw Error(Errc::invalid_argument, fmt::format("its rows go by heads, and nothing says {}", key_kv_))
        .hint("give it, such as " + mention(Remedy::kv_heads, "8") + "; config.json calls it num_key_value_heads");
  }

 private:
  std::uint64_t of_queries(std::uint64_t block) const {
    if (const auto found = find_queries(block)) return *found;
    throw Error(Errc::invalid_argument, fmt::format("its rows go by heads, and nothing says {}", key_))
        .hint("give it, such as " + mention(Remedy::heads, "32") + "; config.json calls it num_attention_heads");
  }

  std::uint64_t of_keys(std::uint64_t block) const {
    const auto found = find_keys(block);
    return found ? *found : of_queries(block);
  }

  std::optional<std::uint64_t> find_keys(std::uint64_t block) const {
    const auto said = find_number(checkpoint_, key_kv_, block);
    return options_.head_count_kv != 0 ? agreed(key_kv_, said, options_.head_count_kv) : said;
  }

  // The options may only add to what the file says, not contradict it.
  static std::uint64_t agreed(const std::string& key, std::optional<std::uint64_t> said, std::uint64_t asked) {
    if (said && *said != asked)
      throw Error(Errc::mismatch, fmt::format("the file says {} for {}, not {}", *said, key, asked))
          .hint("leave the option out");
    return asked;
  }

  const Checkpoint& checkpoint_;
  const NameOptions& options_;
  std::string key_, key_kv_;
};

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
        heads_(checkpoint, architecture, options),
        allow_unknown_heads_(options.allow_unknown_heads) {}

  void run() {
    tensors_.reserve(checkpoint_.size());
    find_query_rows();
    for (const auto& [name, tensor] : checkpoint_) take(name, tensor);
    take_names();
    say_notes();
  }

 private:
  void take(std::string_view name, const Tensor& tensor) {
    const auto found = names::match(architecture_, style_, name);
    if (!found) unnamed_.add(name);
    if (found && found->is_left_out) return left_out_.add(name);
    Match match = found ? *found : Match{std::string(name)};

    const auto [origin, is_new] = origins_.try_emplace(match.name, name);
    if (!is_new) {
      throw Error(Errc::invalid_argument, fmt::format("tensors {} and {} would both be called {}",
                                                      quote(origin->second), quote(name), quote(match.name)))
          .hint("leave one out with " + mention(Remedy::exclude));
    }
    Tensor result = change(name, tensor, match);
    if (result.dtype() != tensor.dtype()) widened_.add(name);
    tensors_.insert(match.name, std::move(result));
    matches_.emplace(name, std::move(match));
  }

  Tensor change(std::string_view name, const Tensor& tensor, const Match& match) {
    if (const auto unknown = checkpoint_.unknown_ggml.find(name); unknown != checkpoint_.unknown_ggml.end()) {
      if (match.change != Change::none) {
        throw Error(Errc::unsupported, fmt::format("tensor {} has values that change with its name, and is of ggml's "
                                                   "type {}, which is unknown",
                                                   quote(name), unknown->second.id))
            .hint(leave_it_out());
      }
    }
    if (match.change != Change::none) packed_.refuse(name, tensor, "changed with its name");
    try {
      return changed(tensor, match);
    } catch (const Error& error) {
      const bool is_blocks = error.code() == Errc::unsupported && info(tensor.dtype()).kind == DTypeKind::ggml;
      Error named(error.code(), fmt::format("tensor {}: {}", quote(name), error.message()));
      named.hint(is_blocks ? decode_it_first() : error.hint());
      if (allow_unknown_heads_ && error.code() == Errc::invalid_argument) return names::unreadable(tensor, named);
      throw named;
    }
  }

  Tensor changed(const Tensor& tensor, const Match& match) {
    const bool to_gguf = style_ == NameStyle::gguf;
    switch (match.change) {
      case Change::none: return tensor;
      case Change::permute_queries:
      case Change::permute_keys: return reordered(tensor, match);
      case Change::add_one: return to_gguf ? names::add_one(tensor) : names::subtract_one(tensor);
      case Change::transpose: return tensor.transpose();
    }
    return tensor;
  }

  // The rows of a head, from the first queries that there are. An adapter may have keys alone.
  void find_query_rows() {
    for (const auto& [name, tensor] : checkpoint_) {
      const auto match = names::match(architecture_, style_, name);
      if (!match || match->change != Change::permute_queries || tensor.rank() == 0) continue;
      const auto heads = heads_.find_queries(match->block);
      if (heads && *heads != 0) query_rows_ = tensor.shape()[0] / *heads;
      if (query_rows_) return;
    }
  }

  // Every head of queries meets a head of keys, so both have as many rows. So a head count that is wrong, or that was
  // left out although keys have fewer heads, shows here and not in the model's output.
  Tensor reordered(const Tensor& tensor, const Match& match) {
    const std::uint64_t heads = heads_.of(match);
    const bool is_assumed = heads_.are_of_queries(match);
    if (is_assumed && !query_rows_) heads_.throw_unknown_keys();
    Tensor result =
        style_ == NameStyle::gguf ? names::interleave_halves(tensor, heads) : names::separate_halves(tensor, heads);
    const std::uint64_t rows = tensor.shape()[0] / heads;
    const auto [first, is_first] = head_rows_.try_emplace(match.block, is_assumed ? *query_rows_ : rows);
    if (first->second != rows) {
      throw Error(Errc::mismatch, fmt::format("with {} heads, one has {} rows, and {} has {}", heads, rows,
                                              is_first ? "one of queries" : "another of that block", first->second))
          .hint(fmt::format("give {} with {} and {} with {}", heads_.key(), mention(Remedy::heads), heads_.key_kv(),
                            mention(Remedy::kv_heads)));
    }
    return result;
  }

  // Two names of one tensor still share it, if the same change is made to both.
  void take_names() {
    std::set<std::string, std::less<>> parted;
    for (const auto& [removed, kept] : checkpoint_.aliases) {
      const auto a = matches_.find(removed), b = matches_.find(kept);
      if (a == matches_.end() || b == matches_.end()) continue;
      const bool is_shared = a->second.change == b->second.change;
      if (is_shared) tensors_.replace(a->second.name, Tensor(tensors_.at(b->second.name)));
      if (!is_shared) parted.insert(a->second.name);
    }
    checkpoint_ = rename_names(std::move(checkpoint_), [&](std::string_view name) -> std::optional<std::string> {
      const auto match = matches_.find(name);
      return match == matches_.end() ? std::nullopt : std::optional(match->second.name);
    });
    replace_tensors(checkpoint_, std::move(tensors_), [&](std::string_view name) { return !parted.contains(name); });
  }

  void say_notes() const {
    if (unnamed_.count != 0) {
      remark(checkpoint_, fmt::format("{} of {} names of {} have no counterpart in {} and stay, such as {}",
                                      unnamed_.count, matches_.size() + left_out_.count, architecture_.name,
                                      described(style_), quote(unnamed_.example)));
    }
    if (left_out_.count != 0) {
      remark(checkpoint_, fmt::format("left out, since GGUF has no place for them: {} of {} tensors, such as {}",
                                      left_out_.count, matches_.size() + left_out_.count, quote(left_out_.example)));
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
  HeadCounts heads_;
  bool allow_unknown_heads_;
  std::optional<std::uint64_t> query_rows_;
  StateDict tensors_;
  std::map<std::string, std::string, std::less<>> origins_;  // by the new name
  std::map<std::string, Match, std::less<>> matches_;        // by the old name
  std::map<std::uint64_t, std::uint64_t> head_rows_;         // by the block
  Tally unnamed_, left_out_, widened_;
};

// Keeps what llama.cpp, and the way back, will look for.
void keep_options(Checkpoint& checkpoint, const Architecture& architecture, const NameOptions& options) {
  const HeadCounts heads(checkpoint, architecture, options);
  const auto keep_number = [&](const std::string& key, std::uint64_t count) {
    if (count == 0 || checkpoint.typed_metadata.find_uint(key) == count) return;
    checkpoint.typed_metadata.remove(key);  // it may be an array with one number for each block
    checkpoint.typed_metadata.set_from_text(key, std::to_string(count));
  };
  if (checkpoint.typed_metadata.find_string(kArchitectureKey) != architecture.gguf)
    checkpoint.typed_metadata.set(MetadataEntry::of(kArchitectureKey, architecture.gguf));
  keep_number(heads.key(), options.head_count);
  keep_number(heads.key_kv(), options.head_count_kv);
}

}  // namespace

bool has_gguf_names(const Checkpoint& checkpoint) {
  return checkpoint.format == Format::gguf && std::any_of(checkpoint.begin(), checkpoint.end(), [](const auto& entry) {
           return entry.name.starts_with("blk.");
         });
}

NameOptions completed(NameOptions options, const Checkpoint& base) {
  const Architecture* architecture = names::find_architecture(base, options);
  if (architecture == nullptr) return options;
  if (options.architecture.empty()) options.architecture = architecture->gguf;
  // Arrays with one number for each block do not fit into the options.
  const HeadCounts heads(base, *architecture, options);
  const auto says = [&](const std::string& key) {
    return base.typed_metadata.find(key) || base.metadata.contains(key);
  };
  const auto number = [&](const std::string& key) {
    const MetadataEntry* field = base.typed_metadata.find(key);
    return field != nullptr && field->is_array() ? 0 : find_number(base, key, 0).value_or(0);
  };
  const bool says_keys = says(heads.key_kv());
  if (options.head_count_kv == 0) options.head_count_kv = number(says_keys ? heads.key_kv() : heads.key());
  if (options.head_count == 0) options.head_count = number(heads.key());
  return options;
}

std::vector<std::string_view> architectures_with_names() {
  std::vector<std::string_view> result;
  for (const Architecture& architecture : names::kArchitectures) result.push_back(architecture.name);
  return result;
}

Checkpoint to_names(Checkpoint checkpoint, NameStyle style, const NameOptions& options) {
  const Architecture* architecture = choose_architecture(checkpoint, options.architecture);
  if (!architecture) return checkpoint;
  Renaming(checkpoint, *architecture, style, options).run();
  if (style == NameStyle::gguf) keep_options(checkpoint, *architecture, options);
  return checkpoint;
}

}  // namespace ballast
