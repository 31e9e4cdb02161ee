#include <ballast/tree.hpp>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/name_hash.hpp"
#include "core/saturate.hpp"
#include "inspect/prefix_tree.hpp"
#include "inspect/tensor_ranges.hpp"

namespace ballast {
namespace {

struct Amount {
  std::uint64_t tensors = 0, parameters = 0, bytes = 0, shared_bytes = 0;

  void add(const Amount& other) {
    tensors += other.tensors;
    parameters = saturating_add(parameters, other.parameters);
    bytes = saturating_add(bytes, other.bytes);
    shared_bytes = saturating_add(shared_bytes, other.shared_bytes);
  }
};

// The prefixes with what lies under each of them, and with the kind of structure that it is: two prefixes of one kind
// have the same names, dtypes and shapes under them.
struct Measured {
  std::vector<PrefixNode> nodes;
  std::vector<Amount> amounts;
  std::vector<std::uint32_t> kinds;
};

void append_number(std::string& text, std::uint64_t number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// A text that only prefixes of one kind have.
void describe_kind(std::string& text, const Measured& tree, const PrefixNode& node, const Checkpoint& checkpoint,
                   std::span<const std::size_t> numbers) {
  text.clear();
  if (node.name != PrefixNode::kNone) {
    const TensorDescription tensor = describe_tensor(checkpoint, numbers[node.name]);
    text += tensor.dtype;
    append_number(text, tensor.shape.rank());
    for (const std::uint64_t dimension : tensor.shape) append_number(text, dimension);
  }
  append_number(text, node.children);
  for (std::uint32_t child = node.first_child; child < node.first_child + node.children; ++child) {
    append_number(text, tree.nodes[child].label.size());
    text += tree.nodes[child].separator;
    text += tree.nodes[child].label;
    append_number(text, tree.kinds[child]);
  }
}

Measured measure(const Checkpoint& checkpoint, std::span<const std::size_t> numbers) {
  std::vector<std::string_view> names;
  names.reserve(numbers.size());
  for (const std::size_t number : numbers) names.push_back(checkpoint.tensors[number].name);
  Measured tree{prefix_tree(names), {}, {}};
  tree.amounts.resize(tree.nodes.size());
  tree.kinds.resize(tree.nodes.size());

  const std::vector<bool> is_repeated = find_repeated(checkpoint, sorted_ranges(checkpoint, numbers));
  NameMap<std::uint32_t> kinds;
  std::string text;
  for (std::size_t i = tree.nodes.size(); i-- > 0;) {  // children before their parents
    const PrefixNode& node = tree.nodes[i];
    Amount& amount = tree.amounts[i];
    if (node.name != PrefixNode::kNone) {
      const std::size_t number = numbers[node.name];
      const std::uint64_t bytes = checkpoint.tensors[number].tensor.nbytes();
      amount =
          is_repeated[number] ? Amount{1, 0, 0, bytes} : Amount{1, describe_tensor(checkpoint, number).numel, bytes, 0};
    }
    for (std::uint32_t child = 0; child < node.children; ++child) amount.add(tree.amounts[node.first_child + child]);
    describe_kind(text, tree, node, checkpoint, numbers);
    tree.kinds[i] = kinds.try_emplace(text, static_cast<std::uint32_t>(kinds.size())).first->second;
  }
  return tree;
}

// Prefixes of one kind that are shown as one.
struct Fold {
  std::string name;
  char separator = 0;
  std::size_t depth = 0;
  std::uint64_t folded = 1;
  std::vector<std::uint32_t> members{};
  Amount amount{};
  std::string path{};
};

// The number that a label begins with, if it is a whole part of it and reads back as it was written.
std::optional<std::uint64_t> leading_number(std::string_view label) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), number);
  const auto size = static_cast<std::size_t>(end - label.data());
  const bool is_part = error == std::errc() && (size == label.size() || is_separator(label[size]));
  constexpr std::size_t kMostDigits = 18;  // as globs have it
  const bool is_plain = is_part && size <= kMostDigits && (size == 1 || label[0] != '0');
  return is_plain ? std::optional(number) : std::nullopt;
}

// "{0..31}", "{0..2,5}". The numbers are ascending.
std::string name_of_range(const std::vector<std::uint64_t>& numbers) {
  std::string text = "{";
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (i > 0) text += ',';
    text += std::to_string(numbers[i]);
    if (last > i) text += ".." + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text + "}";
}

class TreeFolder {
 public:
  TreeFolder(const Checkpoint& checkpoint, std::span<const std::size_t> numbers, const TreeOptions& options)
      : checkpoint_(checkpoint), numbers_(numbers), options_(options), tree_(measure(checkpoint, numbers)) {}

  Tree fold() {
    Tree tree;
    const Amount& all = tree_.amounts[0];
    tree.totals = {all.tensors, all.parameters, all.bytes};
    std::vector<Fold> open = children_of({.name = {}, .members = {0}});
    std::ranges::reverse(open);
    while (!open.empty()) {
      Fold next = std::move(open.back());
      open.pop_back();
      std::vector<Fold> children = children_of(next);
      while (children.size() == 1 && !names_tensor(next)) {
        next = joined(std::move(next), std::move(children[0]));
        children = children_of(next);
      }
      tree.nodes.push_back(node_of(next, children.size()));
      if (next.depth + 1 == options_.depth) continue;
      for (Fold& child : children) {
        child.depth = next.depth + 1;
        child.path = next.path;
      }
      std::move(children.rbegin(), children.rend(), std::back_inserter(open));
    }
    return tree;
  }

 private:
  const PrefixNode& first_of(const Fold& fold) const { return tree_.nodes[fold.members[0]]; }
  bool names_tensor(const Fold& fold) const { return first_of(fold).name != PrefixNode::kNone; }

  // What is below the prefixes of a fold, in order. They are of one kind, so the first of them says how to fold.
  std::vector<Fold> children_of(const Fold& fold) const {
    const PrefixNode& first = first_of(fold);
    std::vector<Fold> children;
    std::vector<std::vector<std::uint32_t>> places;    // of each child, among the children of a member
    std::vector<std::vector<std::uint64_t>> sequence;  // of each child, its numbers
    NameMap<std::size_t> known;
    std::string key;
    for (std::uint32_t place = 0; place < first.children; ++place) {
      const PrefixNode& node = tree_.nodes[first.first_child + place];
      const auto number = leading_number(node.label);
      std::size_t child = children.size();
      if (number) {
        const std::string_view rest = node.label.substr(std::min(node.label.find_first_of("./"), node.label.size()));
        key.assign(1, node.separator);
        append_number(key, tree_.kinds[first.first_child + place]);
        key += rest;
        child = known.try_emplace(key, child).first->second;
      }
      if (child == children.size()) {
        children.push_back({.name = std::string(node.label), .separator = node.separator});
        places.emplace_back();
        sequence.emplace_back();
      }
      places[child].push_back(place);
      if (number) sequence[child].push_back(*number);
    }
    for (std::size_t i = 0; i < children.size(); ++i) {
      Fold& child = children[i];
      child.folded = places[i].size();
      if (child.folded > 1) {
        const std::size_t digits = std::min(child.name.find_first_of("./"), child.name.size());
        child.name.replace(0, digits, name_of_range(sequence[i]));
      }
      child.members.reserve(fold.members.size() * places[i].size());
      for (const std::uint32_t member : fold.members) {
        for (const std::uint32_t place : places[i]) {
          child.members.push_back(tree_.nodes[member].first_child + place);
          child.amount.add(tree_.amounts[child.members.back()]);
        }
      }
    }
    sort_siblings(children);
    return children;
  }

  void sort_siblings(std::vector<Fold>& siblings) const {
    const auto size = [&](const Fold& fold) {
      return options_.sort == SortBy::bytes ? fold.amount.bytes : fold.amount.parameters;
    };
    if (options_.sort == SortBy::name) {
      if (options_.reverse) std::ranges::reverse(siblings);
      return;
    }
    std::ranges::stable_sort(siblings, [&](const Fold& a, const Fold& b) {
      return options_.reverse ? size(a) < size(b) : size(a) > size(b);
    });
  }

  static Fold joined(Fold above, Fold below) {
    above.name += below.separator + below.name;
    above.folded = saturating_mul(above.folded, below.folded);
    above.members = std::move(below.members);
    return above;
  }

  TreeNode node_of(Fold& fold, std::size_t children) const {
    if (fold.separator != 0) fold.path += fold.separator;
    fold.path += fold.name;
    TreeNode node{.name = fold.name,
                  .path = fold.path,
                  .depth = fold.depth,
                  .folded = fold.folded,
                  .children = children,
                  .tensors = fold.amount.tensors,
                  .parameters = fold.amount.parameters,
                  .bytes = fold.amount.bytes,
                  .shared_bytes = fold.amount.shared_bytes};
    if (names_tensor(fold)) {
      const TensorDescription tensor = describe_tensor(checkpoint_, numbers_[first_of(fold).name]);
      node.dtype = tensor.dtype;
      node.shape = tensor.shape;
    }
    return node;
  }

  const Checkpoint& checkpoint_;
  std::span<const std::size_t> numbers_;
  const TreeOptions& options_;
  Measured tree_;
};

}  // namespace

Tree tree_of(const Checkpoint& checkpoint, const TreeOptions& options) {
  return tree_of(checkpoint, all_numbers(checkpoint), options);
}

Tree tree_of(const Checkpoint& checkpoint, std::span<const std::size_t> numbers, const TreeOptions& options) {
  if (options.sort != SortBy::name && options.sort != SortBy::bytes && options.sort != SortBy::numel)
    throw Error(Errc::invalid_argument, fmt::format("prefixes have no {} to sort by", name(options.sort)))
        .hint("sort a tree by name, bytes or numel");
  return TreeFolder(checkpoint, numbers, options).fold();
}

}  // namespace ballast
