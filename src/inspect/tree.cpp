#include <ballast/tree.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/name_hash.hpp"
#include "core/prefetch.hpp"
#include "core/saturate.hpp"
#include "inspect/measured_tree.hpp"
#include "inspect/numbered_label.hpp"
#include "inspect/tensor_ranges.hpp"

namespace ballast {
namespace {

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

  TensorTotals totals() const {
    const Amount& all = tree_.amounts[0];
    return {all.tensors, all.parameters, all.bytes};
  }

  void visit(const TreeVisitor& visit) {
    const TensorTotals all = totals();
    members_.push_back(0);
    open_children(children_of({.members = 1}), 0);
    TreeNode node;  // its texts keep their memory from one node to the next
    while (!open_.empty()) {
      const Fold next = open_.back();
      open_.pop_back();
      fetch_later_ones();
      show(next, node);
      visit(node, all);
    }
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

  // Those that are shown soon.
  void fetch_later_ones() const {
    constexpr std::size_t kAhead = 6;
    if (open_.size() < kAhead) return;
    const std::uint32_t name = first_of(open_[open_.size() - kAhead]).name;
    if (name != PrefixNode::kNone) prefetch(checkpoint_.tensors[numbers_[name]]);
  }

  // The node of a fold. As long as there is only one way on below it, what follows is joined to it.
  void show(Fold fold, TreeNode& node) {
    const Amount amount = amount_of(fold);
    path_.resize(path_ends_[fold.depth]);
    node.name_at = path_.size() + (first_of(fold).separator == 0 ? 0 : 1);
    node.depth = fold.depth;
    node.folded = fold.folded;
    node.tensors = amount.tensors;
    node.parameters = amount.parameters;
    node.bytes = amount.bytes;
    node.shared_bytes = amount.shared_bytes;
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
    node.dtype.clear();
    node.shape = {};
    if (const std::uint32_t name = first_of(fold).name; name != PrefixNode::kNone) {
      TensorDescription tensor = describe_tensor(checkpoint_, numbers_[name]);
      node.dtype = std::move(tensor.dtype);
      node.shape = std::move(tensor.shape);
    }
    if (node.depth + 1 != options_.depth) open_children(children, node.depth + 1);
  }

  // The members of a fold begin with those under one parent, which are in the order of their numbers.
  void append_to_path(const Fold& fold) {
    const PrefixNode& first = first_of(fold);
    if (first.separator != 0) path_ += first.separator;
    if (fold.folded == 1) return void(path_ += first.label);
    NumberList numbers;
    NumberedLabel label;
    for (const std::uint32_t member : members_of(fold).first(fold.folded)) {
      label = read_number(tree_.nodes[member].label).value_or(label);
      numbers.add(label.number);
    }
    path_ += label.stem;
    path_ += numbers.text();
    path_ += label.rest;
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
    if (first.children == 0) return children;
    NameMap<std::size_t> known;  // the children that may be folded, by their keys
    std::optional<NumberedLabel> last;
    child_of_.clear();
    for (std::uint32_t i = first.first_child; i < first.first_child + first.children; ++i) {
      const auto label = read_number(tree_.nodes[i].label);
      std::size_t child = children.size();
      if (label && last && label->differs_only_in_number(*last) && are_of_one_kind(i - 1, i))
        child = child_of_.back();  // nearly always, so that nothing has to be looked up
      else if (label)
        child = known.try_emplace(folding_key(i, *label), child).first->second;
      if (child < children.size())
        ++children[child].folded;
      else
        children.emplace_back();
      child_of_.push_back(child);
      last = label;
    }
    gather_members(fold, children);
    sort_siblings(children);
    return children;
  }

  bool are_of_one_kind(std::size_t a, std::size_t b) const {
    return tree_.kinds[a] == tree_.kinds[b] && tree_.nodes[a].separator == tree_.nodes[b].separator;
  }

  // Numbered siblings with the same key are of one kind and differ only in their numbers.
  const std::string& folding_key(std::size_t node, const NumberedLabel& label) {
    key_.assign(1, tree_.nodes[node].separator);
    append_number(key_, tree_.kinds[node]);
    append_number(key_, label.stem.size());
    key_ += label.stem;
    return key_ += label.rest;
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
  MeasuredTree tree_;
  std::vector<std::uint32_t> members_;
  std::vector<Fold> open_;              // the next one last
  std::string path_;                    // of the node that is shown
  std::vector<std::size_t> path_ends_;  // for each depth, where the path of the node above it ends
  std::vector<std::size_t> child_of_;   // the child that each child of a member belongs to
  std::string key_;
};

TreeFolder folder_of(const Checkpoint& checkpoint, std::span<const std::size_t> numbers, const TreeOptions& options) {
  if (options.sort != SortBy::name && options.sort != SortBy::bytes && options.sort != SortBy::numel)
    throw Error(Errc::invalid_argument, fmt::format("prefixes have no {} to sort by", name(options.sort)))
        .hint("sort a tree by name, bytes or numel");
  return TreeFolder(checkpoint, numbers, options);
}

}  // namespace

Tree tree_of(const Checkpoint& checkpoint, const TreeOptions& options) {
  return tree_of(checkpoint, all_numbers(checkpoint), options);
}

Tree tree_of(const Checkpoint& checkpoint, std::span<const std::size_t> numbers, const TreeOptions& options) {
  TreeFolder folder = folder_of(checkpoint, numbers, options);
  Tree tree{.nodes = {}, .totals = folder.totals()};
  folder.visit([&](const TreeNode& node, const TensorTotals&) { tree.nodes.push_back(node); });
  return tree;
}

void visit_tree(const Checkpoint& checkpoint, std::span<const std::size_t> numbers, const TreeOptions& options,
                const TreeVisitor& visit) {
  folder_of(checkpoint, numbers, options).visit(visit);
}

}  // namespace ballast
