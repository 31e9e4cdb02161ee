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
  std::string text, last_text;
  std::uint32_t kind = 0;
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
    if (text != last_text) {  // neighbours are often of one kind
      kind = kinds.try_emplace(text, static_cast<std::uint32_t>(kinds.size())).first->second;
      last_text.swap(text);
    }
    tree.kinds[i] = kind;
  }
  return tree;
}

// Ascending numbers as a glob has them: "{0..31}", "{0..2,5}".
class NumberList {
 public:
  void add(std::uint64_t number) {
    if (!text_.empty() && number == last_ + 1) return void(last_ = number);
    end_run();
    text_ += text_.empty() ? '{' : ',';
    text_ += std::to_string(number);
    first_ = last_ = number;
  }
  std::string text() const {
    NumberList whole = *this;
    whole.end_run();
    return whole.text_ + "}";
  }

 private:
  void end_run() {
    if (last_ > first_) text_ += ".." + std::to_string(last_);
  }

  std::string text_;  // up to the first number of the last run
  std::uint64_t first_ = 0, last_ = 0;
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

std::string_view without_number(std::string_view label) {
  return label.substr(std::min(label.find_first_of("./"), label.size()));
}

// Prefixes of one kind that are shown as one.
struct Fold {
  std::string_view label{};  // of the first of them
  char separator = 0;
  std::size_t depth = 0;
  std::uint64_t folded = 0;                   // how many of them are siblings
  std::size_t first_member = 0, members = 0;  // in TreeFolder::members_
  NumberList numbers{};
  Amount amount{};
};

class TreeFolder {
 public:
  TreeFolder(const Checkpoint& checkpoint, std::span<const std::size_t> numbers, const TreeOptions& options)
      : checkpoint_(checkpoint), numbers_(numbers), options_(options), tree_(measure(checkpoint, numbers)) {}

  Tree fold() {
    Tree tree;
    const Amount& all = tree_.amounts[0];
    tree.totals = {all.tensors, all.parameters, all.bytes};
    members_.push_back(0);
    open_children(children_of({.members = 1}), 0);
    while (!open_.empty()) {
      const Fold next = std::move(open_.back());
      open_.pop_back();
      tree.nodes.push_back(show(next));
    }
    return tree;
  }

 private:
  const PrefixNode& first_of(const Fold& fold) const { return tree_.nodes[members_[fold.first_member]]; }

  // The node of a fold. As long as there is only one way on below it, what follows is joined to it.
  TreeNode show(const Fold& fold) {
    path_.resize(path_ends_[fold.depth]);
    TreeNode node;
    node.name_at = path_.size() + (fold.separator == 0 ? 0 : 1);
    node.depth = fold.depth;
    node.tensors = fold.amount.tensors;
    node.parameters = fold.amount.parameters;
    node.bytes = fold.amount.bytes;
    node.shared_bytes = fold.amount.shared_bytes;

    append_to_path(fold);
    node.folded = fold.folded;
    const PrefixNode* last = &first_of(fold);
    std::vector<Fold> children = children_of(fold);
    while (children.size() == 1 && last->name == PrefixNode::kNone) {
      const Fold only = std::move(children[0]);
      append_to_path(only);
      node.folded = saturating_mul(node.folded, only.folded);
      last = &first_of(only);
      children = children_of(only);
    }
    node.path = path_;
    node.children = children.size();
    if (last->name != PrefixNode::kNone) {
      TensorDescription tensor = describe_tensor(checkpoint_, numbers_[last->name]);
      node.dtype = std::move(tensor.dtype);
      node.shape = tensor.shape;
    }
    if (fold.depth + 1 != options_.depth) open_children(std::move(children), fold.depth + 1);
    return node;
  }

  void append_to_path(const Fold& fold) {
    if (fold.separator != 0) path_ += fold.separator;
    if (fold.folded == 1) return void(path_ += fold.label);
    path_ += fold.numbers.text();
    path_ += without_number(fold.label);
  }

  void open_children(std::vector<Fold> children, std::size_t depth) {
    path_ends_.resize(depth);
    path_ends_.push_back(path_.size());
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      child->depth = depth;
      open_.push_back(std::move(*child));
    }
  }

  // What is below the prefixes of a fold, in order. They are of one kind, so the first of them says how to fold.
  std::vector<Fold> children_of(const Fold& fold) {
    const PrefixNode& first = first_of(fold);
    std::vector<Fold> children;
    NameMap<std::size_t> known;  // the children that may be folded, by their keys
    bool was_number = false;
    child_of_.clear();
    for (std::uint32_t i = first.first_child; i < first.first_child + first.children; ++i) {
      const PrefixNode& node = tree_.nodes[i];
      const auto number = leading_number(node.label);
      std::size_t child = children.size();
      if (number && was_number && differ_only_in_number(i - 1, i))
        child = child_of_.back();  // nearly always, so that nothing has to be looked up
      else if (number)
        child = known.try_emplace(folding_key(i), child).first->second;
      if (child == children.size()) children.push_back({.label = node.label, .separator = node.separator});
      if (number) children[child].numbers.add(*number);
      ++children[child].folded;
      child_of_.push_back(child);
      was_number = number.has_value();
    }
    gather_members(fold, children);
    sort_siblings(children);
    return children;
  }

  bool differ_only_in_number(std::size_t a, std::size_t b) const {
    return tree_.kinds[a] == tree_.kinds[b] && tree_.nodes[a].separator == tree_.nodes[b].separator &&
           without_number(tree_.nodes[a].label) == without_number(tree_.nodes[b].label);
  }

  // Numbered siblings with the same key differ only in their numbers.
  const std::string& folding_key(std::size_t node) {
    key_.assign(1, tree_.nodes[node].separator);
    append_number(key_, tree_.kinds[node]);
    return key_ += without_number(tree_.nodes[node].label);
  }

  void gather_members(const Fold& fold, std::vector<Fold>& children) {
    std::size_t end = members_.size();
    for (Fold& child : children) {
      child.first_member = end;
      end += child.folded * fold.members;
    }
    members_.resize(end);
    for (std::size_t i = 0; i < fold.members; ++i) {
      const std::uint32_t first_child = tree_.nodes[members_[fold.first_member + i]].first_child;
      for (std::size_t place = 0; place < child_of_.size(); ++place) {
        Fold& child = children[child_of_[place]];
        const auto member = static_cast<std::uint32_t>(first_child + place);
        members_[child.first_member + child.members++] = member;
        child.amount.add(tree_.amounts[member]);
      }
    }
  }

  void sort_siblings(std::vector<Fold>& siblings) const {
    if (options_.sort == SortBy::name) {
      if (options_.reverse) std::ranges::reverse(siblings);
      return;
    }
    const auto size = [&](const Fold& fold) {
      return options_.sort == SortBy::bytes ? fold.amount.bytes : fold.amount.parameters;
    };
    std::ranges::stable_sort(siblings, [&](const Fold& a, const Fold& b) {
      return options_.reverse ? size(a) < size(b) : size(a) > size(b);
    });
  }

  const Checkpoint& checkpoint_;
  std::span<const std::size_t> numbers_;
  const TreeOptions& options_;
  Measured tree_;
  std::vector<std::uint32_t> members_;
  std::vector<Fold> open_;              // the next one last
  std::string path_;                    // of the node that is shown
  std::vector<std::size_t> path_ends_;  // for each depth, where the path of the node above it ends
  std::vector<std::size_t> child_of_;   // the child that each child of a member belongs to
  std::string key_;
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
