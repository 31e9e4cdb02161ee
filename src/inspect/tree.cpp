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

std::string_view without_number(std::string_view label) { return label.substr(end_of_part(label)); }

void append_number(std::string& text, std::uint64_t number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// A text that only prefixes of one kind have.
void describe_kind(std::string& text, const Measured& tree, const PrefixNode& node, const TensorDescription* tensor) {
  text.clear();
  if (tensor != nullptr) {
    text += tensor->dtype;
    append_number(text, tensor->shape.rank());
    for (const std::uint64_t dimension : tensor->shape) append_number(text, dimension);
  }
  append_number(text, node.children);
  for (std::uint32_t child = node.first_child; child < node.first_child + node.children; ++child) {
    append_number(text, tree.nodes[child].label.size());
    text += tree.nodes[child].separator;
    text += tree.nodes[child].label;
    append_number(text, tree.kinds[child]);
  }
}

// Kinds as small numbers. Neighbours are often of one kind, which saves looking it up.
class Kinds {
 public:
  std::uint32_t of_tensor(const TensorDescription& tensor, const Measured& tree, const PrefixNode& node) {
    const bool is_last = last_tensor_ && last_tensor_->dtype == tensor.dtype && last_tensor_->shape == tensor.shape;
    if (is_last && node.children == 0) return last_tensor_kind_;
    const std::uint32_t kind = of(tree, node, &tensor);
    if (node.children == 0) {
      last_tensor_.emplace(tensor);
      last_tensor_kind_ = kind;
    }
    return kind;
  }

  std::uint32_t of(const Measured& tree, const PrefixNode& node, const TensorDescription* tensor = nullptr) {
    describe_kind(text_, tree, node, tensor);
    if (text_ != last_text_) {
      last_ = numbers_.try_emplace(text_, static_cast<std::uint32_t>(numbers_.size())).first->second;
      last_text_.swap(text_);
    }
    return last_;
  }

 private:
  NameMap<std::uint32_t> numbers_;
  std::string text_, last_text_;
  std::uint32_t last_ = 0, last_tensor_kind_ = 0;
  std::optional<TensorDescription> last_tensor_;
};

// Whether a prefix is numbered, or lies under one that is. The kind of others is of no interest.
std::vector<bool> find_numbered(const std::vector<PrefixNode>& nodes) {
  std::vector<bool> is_numbered(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::uint32_t child = nodes[i].first_child; child < nodes[i].first_child + nodes[i].children; ++child)
      is_numbered[child] = is_numbered[i] || leading_number(nodes[child].label);
  }
  return is_numbered;
}

Measured measure(const Checkpoint& checkpoint, std::span<const std::size_t> numbers) {
  std::vector<std::string_view> names;
  names.reserve(numbers.size());
  for (const std::size_t number : numbers) names.push_back(checkpoint.tensors[number].name);
  Measured tree{prefix_tree(names), {}, {}};
  tree.amounts.resize(tree.nodes.size());
  tree.kinds.resize(tree.nodes.size());

  const std::vector<bool> is_numbered = find_numbered(tree.nodes);
  const std::vector<bool> is_repeated = find_repeated(checkpoint, numbers);
  Kinds kinds;
  for (std::size_t i = tree.nodes.size(); i-- > 0;) {  // children before their parents
    const PrefixNode& node = tree.nodes[i];
    Amount& amount = tree.amounts[i];
    std::optional<TensorDescription> tensor;
    if (node.name != PrefixNode::kNone) {
      const std::size_t number = numbers[node.name];
      const std::uint64_t bytes = checkpoint.tensors[number].tensor.nbytes();
      tensor.emplace(describe_tensor(checkpoint, number));
      amount = is_repeated[number] ? Amount{1, 0, 0, bytes} : Amount{1, tensor->numel, bytes, 0};
    }
    for (std::uint32_t child = 0; child < node.children; ++child) amount.add(tree.amounts[node.first_child + child]);
    if (is_numbered[i]) tree.kinds[i] = tensor ? kinds.of_tensor(*tensor, tree, node) : kinds.of(tree, node);
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

// Prefixes of one kind that are shown as one. It is small, since there may be as many as there are tensors.
struct Fold {
  std::uint32_t first_member = 0, members = 0;  // in TreeFolder::members_
  std::uint32_t folded = 1;                     // how many of the members are siblings of each other
  std::uint32_t depth = 0;
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
      const Fold next = open_.back();
      open_.pop_back();
      tree.nodes.push_back(show(next));
    }
    return tree;
  }

 private:
  std::span<const std::uint32_t> members_of(const Fold& fold) const {
    return std::span(members_).subspan(fold.first_member, fold.members);
  }
  const PrefixNode& first_of(const Fold& fold) const { return tree_.nodes[members_[fold.first_member]]; }
  Amount amount_of(const Fold& fold) const {
    Amount amount;
    for (const std::uint32_t member : members_of(fold)) amount.add(tree_.amounts[member]);
    return amount;
  }

  // The node of a fold. As long as there is only one way on below it, what follows is joined to it.
  TreeNode show(Fold fold) {
    const Amount amount = amount_of(fold);
    path_.resize(path_ends_[fold.depth]);
    TreeNode node{.name_at = path_.size() + (first_of(fold).separator == 0 ? 0 : 1),
                  .depth = fold.depth,
                  .folded = fold.folded,
                  .tensors = amount.tensors,
                  .parameters = amount.parameters,
                  .bytes = amount.bytes,
                  .shared_bytes = amount.shared_bytes};
    append_to_path(fold);
    std::vector<Fold> children = children_of(fold);
    while (children.size() == 1 && first_of(fold).name == PrefixNode::kNone) {
      fold = children[0];
      append_to_path(fold);
      node.folded = saturating_mul(node.folded, fold.folded);
      children = children_of(fold);
    }
    node.path = path_;
    node.children = children.size();
    if (const std::uint32_t name = first_of(fold).name; name != PrefixNode::kNone) {
      TensorDescription tensor = describe_tensor(checkpoint_, numbers_[name]);
      node.dtype = std::move(tensor.dtype);
      node.shape = tensor.shape;
    }
    if (node.depth + 1 != options_.depth) open_children(children, node.depth + 1);
    return node;
  }

  // The members of a fold begin with those under one parent, which are in the order of their numbers.
  void append_to_path(const Fold& fold) {
    const PrefixNode& first = first_of(fold);
    if (first.separator != 0) path_ += first.separator;
    if (fold.folded == 1) return void(path_ += first.label);
    NumberList numbers;
    for (const std::uint32_t member : members_of(fold).first(fold.folded))
      numbers.add(leading_number(tree_.nodes[member].label).value_or(0));
    path_ += numbers.text();
    path_ += without_number(first.label);
  }

  void open_children(const std::vector<Fold>& children, std::size_t depth) {
    path_ends_.resize(depth);
    path_ends_.push_back(path_.size());
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      open_.push_back(*child);
      open_.back().depth = static_cast<std::uint32_t>(depth);
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
      const bool is_number = leading_number(tree_.nodes[i].label).has_value();
      std::size_t child = children.size();
      if (is_number && was_number && differ_only_in_number(i - 1, i))
        child = child_of_.back();  // nearly always, so that nothing has to be looked up
      else if (is_number)
        child = known.try_emplace(folding_key(i), child).first->second;
      if (child < children.size())
        ++children[child].folded;
      else
        children.emplace_back();
      child_of_.push_back(child);
      was_number = is_number;
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
      child.first_member = static_cast<std::uint32_t>(end);
      end += std::size_t{child.folded} * fold.members;
    }
    members_.resize(end);
    for (std::size_t i = 0; i < fold.members; ++i) {
      const std::uint32_t first_child = tree_.nodes[members_[fold.first_member + i]].first_child;
      for (std::size_t place = 0; place < child_of_.size(); ++place) {
        Fold& child = children[child_of_[place]];
        members_[child.first_member + child.members++] = static_cast<std::uint32_t>(first_child + place);
      }
    }
  }

  void sort_siblings(std::vector<Fold>& siblings) const {
    if (options_.sort == SortBy::name) {
      if (options_.reverse) std::ranges::reverse(siblings);
      return;
    }
    std::vector<std::pair<std::uint64_t, Fold>> sized;
    for (const Fold& sibling : siblings) {
      const Amount amount = amount_of(sibling);
      sized.emplace_back(options_.sort == SortBy::bytes ? amount.bytes : amount.parameters, sibling);
    }
    std::ranges::stable_sort(
        sized, [&](const auto& a, const auto& b) { return options_.reverse ? a.first < b.first : a.first > b.first; });
    std::ranges::transform(sized, siblings.begin(), [](const auto& each) { return each.second; });
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
