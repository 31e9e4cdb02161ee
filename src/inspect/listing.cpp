#include <ballast/listing.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <ballast/text.hpp>

#include "core/glob.hpp"
#include "core/saturate.hpp"
#include "core/text.hpp"
#include "inspect/tensor_ranges.hpp"

namespace ballast {
namespace {

constexpr std::string_view kUnknownGgml = "GGML_";

using TensorNumbers = std::vector<std::size_t>;
// Whether the first tensor goes before the second one.
using Before = std::function<bool(std::size_t, std::size_t)>;

bool is_listed(const Checkpoint& checkpoint, std::size_t number, const ListOptions& options) {
  const std::uint64_t bytes = checkpoint.tensors[number].tensor.nbytes();
  if (bytes < options.min_bytes || bytes > options.max_bytes) return false;
  return options.dtypes.empty() || std::ranges::count(options.dtypes, describe_tensor(checkpoint, number).dtype) > 0;
}

TensorNumbers in_natural_order(const Checkpoint& checkpoint, const TensorNumbers& numbers) {
  std::vector<std::string_view> names;
  names.reserve(numbers.size());
  for (const std::size_t number : numbers) names.push_back(checkpoint.tensors[number].name);
  TensorNumbers sorted;
  sorted.reserve(numbers.size());
  for (const std::size_t place : natural_order(names)) sorted.push_back(numbers[place]);
  return sorted;
}

// For each tensor, the place of its text among the different texts.
template <class TextOf>
std::vector<std::size_t> ranks(const Checkpoint& checkpoint, const TensorNumbers& numbers, const TextOf& text_of) {
  std::map<std::string, std::size_t, std::less<>> places;
  std::vector<std::map<std::string, std::size_t, std::less<>>::iterator> found;
  found.reserve(numbers.size());
  for (const std::size_t number : numbers) found.push_back(places.try_emplace(text_of(number)).first);
  std::vector<std::string_view> texts;
  for (const auto& [text, place] : places) texts.push_back(text);
  std::size_t next = 0;
  for (const std::size_t i : natural_order(texts)) places.find(texts[i])->second = next++;
  std::vector<std::size_t> ranks(checkpoint.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) ranks[numbers[i]] = found[i]->second;
  return ranks;
}

// The file that a tensor lies in; empty if there is none. Neighbours mostly share a storage, which is asked once.
class FileOf {
 public:
  explicit FileOf(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  const std::string& operator()(std::size_t number) const {
    const Storage* const storage = checkpoint_.tensors[number].tensor.storage().get();
    if (storage != last_) {
      last_ = storage;
      const auto location = storage == nullptr ? std::nullopt : storage->location();
      file_ = location ? location->file : std::string();
    }
    return file_;
  }

 private:
  const Checkpoint& checkpoint_;
  mutable const Storage* last_ = nullptr;
  mutable std::string file_;
};

Before order_of(const Checkpoint& checkpoint, const TensorNumbers& numbers, SortBy key) {
  const auto smallest_first = [](std::vector<std::size_t> places) -> Before {
    return [places = std::move(places)](std::size_t a, std::size_t b) { return places[a] < places[b]; };
  };
  const auto largest_first = [&](const std::function<std::uint64_t(std::size_t)>& size_of) -> Before {
    std::vector<std::uint64_t> sizes(checkpoint.size());
    for (const std::size_t number : numbers) sizes[number] = size_of(number);
    return [sizes = std::move(sizes)](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; };
  };
  const auto shape_before = [&](std::size_t a, std::size_t b) {
    return std::ranges::lexicographical_compare(describe_tensor(checkpoint, a).shape,
                                                describe_tensor(checkpoint, b).shape);
  };
  switch (key) {
    case SortBy::bytes: return largest_first([&](std::size_t i) { return checkpoint.tensors[i].tensor.nbytes(); });
    case SortBy::numel: return largest_first([&](std::size_t i) { return describe_tensor(checkpoint, i).numel(); });
    case SortBy::dtype:
      return smallest_first(
          ranks(checkpoint, numbers, [&](std::size_t i) { return describe_tensor(checkpoint, i).dtype; }));
    case SortBy::shape: return shape_before;
    case SortBy::file: return smallest_first(ranks(checkpoint, numbers, FileOf(checkpoint)));
    case SortBy::name: break;
  }
  return nullptr;
}

// The numbers come in natural order, and a stable sort keeps that order among tensors with equal keys.
void sort_numbers(const Checkpoint& checkpoint, TensorNumbers& numbers, SortBy key, bool reverse) {
  const Before before = order_of(checkpoint, numbers, key);
  if (before && reverse)
    std::ranges::stable_sort(numbers, [&](std::size_t a, std::size_t b) { return before(b, a); });
  else if (before)
    std::ranges::stable_sort(numbers, before);
  else if (reverse)
    std::ranges::reverse(numbers);
}

}  // namespace

std::vector<std::size_t> list_tensors(const Checkpoint& checkpoint, const ListOptions& options) {
  TensorNumbers numbers = all_numbers(checkpoint);
  const ListOptions all;
  if (!options.dtypes.empty() || options.min_bytes != all.min_bytes || options.max_bytes != all.max_bytes)
    std::erase_if(numbers, [&](std::size_t number) { return !is_listed(checkpoint, number, options); });
  const auto key = options.sort || options.top == 0 ? options.sort : SortBy::bytes;
  if (key) {
    numbers = in_natural_order(checkpoint, numbers);
    sort_numbers(checkpoint, numbers, *key, options.reverse);
  } else if (options.reverse) {
    std::ranges::reverse(numbers);
  }
  if (options.top != 0 && options.top < numbers.size()) numbers.resize(options.top);
  return numbers;
}

std::optional<std::string> parse_listed_dtype(std::string_view text) {
  if (const auto dtype = parse_dtype(text)) return std::string(name(*dtype));
  const bool is_unknown = lower_case(text).starts_with(lower_case(kUnknownGgml));
  const std::string_view digits = text.substr(std::min(text.size(), kUnknownGgml.size()));
  if (!is_unknown || digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  return fmt::format("{}{}", kUnknownGgml, digits);
}

TensorDescription describe_tensor(const Checkpoint& checkpoint, std::size_t number) {
  const auto& [tensor_name, tensor] = checkpoint.tensors[number];
  if (!checkpoint.unknown_ggml.empty()) {
    const auto found = checkpoint.unknown_ggml.find(tensor_name);
    if (found != checkpoint.unknown_ggml.end()) {
      return {fmt::format("{}{}", kUnknownGgml, found->second.id), found->second.shape};
    }
  }
  return {std::string(name(tensor.dtype())), tensor.shape()};
}

TensorTotals add_up(const Checkpoint& checkpoint) { return add_up(checkpoint, all_numbers(checkpoint)); }

TensorTotals add_up(const Checkpoint& checkpoint, std::span<const std::size_t> numbers) {
  const std::vector<bool> is_repeated = find_repeated(checkpoint, numbers);
  TensorTotals totals{.tensors = numbers.size()};
  for (const std::size_t number : numbers) {
    if (is_repeated[number]) continue;
    totals.parameters = saturating_add(totals.parameters, describe_tensor(checkpoint, number).numel());
    totals.bytes = saturating_add(totals.bytes, checkpoint.tensors[number].tensor.nbytes());
  }
  return totals;
}

bool is_glob(std::string_view word) { return has_wildcards(word); }

std::optional<std::string> glob_of_part(const Checkpoint& checkpoint, std::string_view word) {
  if (word.empty() || has_wildcards(word) || checkpoint.contains(word)) return std::nullopt;
  const bool is_part = std::ranges::any_of(
      checkpoint, [word](const StateDict::Entry& entry) { return entry.name.find(word) != std::string_view::npos; });
  return is_part ? std::optional(fmt::format("*{}*", word)) : std::nullopt;
}

}  // namespace ballast
