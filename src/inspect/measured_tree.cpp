#include "inspect/measured_tree.hpp"

#include <optional>

#include <ballast/listing.hpp>

#include "core/name_hash.hpp"
#include "core/prefetch.hpp"
#include "core/saturate.hpp"
#include "inspect/numbered_label.hpp"
#include "inspect/tensor_ranges.hpp"

namespace ballast {
namespace {

// A text that only prefixes of one kind have.
void describe_kind(std::string& text, const MeasuredTree& tree, const PrefixNode& node,
                   const TensorDescription* tensor) {
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
  std::uint32_t of_tensor(const TensorDescription& tensor, const MeasuredTree& tree, const PrefixNode& node) {
    const bool is_last = last_tensor_ && last_tensor_->dtype == tensor.dtype && last_tensor_->shape == tensor.shape;
    if (is_last && node.children == 0) return last_tensor_kind_;
    const std::uint32_t kind = of(tree, node, &tensor);
    if (node.children == 0) {
      last_tensor_.emplace(tensor);
      last_tensor_kind_ = kind;
    }
    return kind;
  }

  std::uint32_t of(const MeasuredTree& tree, const PrefixNode& node, const TensorDescription* tensor = nullptr) {
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
      is_numbered[child] = is_numbered[i] || read_number(nodes[child].label);
  }
  return is_numbered;
}

}  // namespace

void Amount::add(const Amount& other) {
  tensors += other.tensors;
  parameters = saturating_add(parameters, other.parameters);
  bytes = saturating_add(bytes, other.bytes);
  shared_bytes = saturating_add(shared_bytes, other.shared_bytes);
}

void append_number(std::string& key, std::uint64_t number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

MeasuredTree measure(const Checkpoint& checkpoint, std::span<const std::size_t> numbers) {
  std::vector<std::string_view> names;
  names.reserve(numbers.size());
  for (const std::size_t number : numbers) names.push_back(checkpoint.tensors[number].name);
  MeasuredTree tree{prefix_tree(names), {}, {}};
  tree.amounts.resize(tree.nodes.size());
  tree.kinds.resize(tree.nodes.size());

  const std::vector<bool> is_numbered = find_numbered(tree.nodes);
  const std::vector<bool> is_repeated = find_repeated(checkpoint, numbers);
  Kinds kinds;
  for (std::size_t i = tree.nodes.size(); i-- > 0;) {  // children before their parents
    constexpr std::size_t kAhead = 8;
    if (i >= kAhead && tree.nodes[i - kAhead].name != PrefixNode::kNone)
      prefetch(checkpoint.tensors[numbers[tree.nodes[i - kAhead].name]]);
    const PrefixNode& node = tree.nodes[i];
    Amount& amount = tree.amounts[i];
    std::optional<TensorDescription> tensor;
    if (node.name != PrefixNode::kNone) {
      const std::size_t number = numbers[node.name];
      const std::uint64_t bytes = checkpoint.tensors[number].tensor.nbytes();
      tensor.emplace(describe_tensor(checkpoint, number));
      amount = is_repeated[number] ? Amount{1, 0, 0, bytes} : Amount{1, tensor->numel(), bytes, 0};
    }
    for (std::uint32_t child = 0; child < node.children; ++child) amount.add(tree.amounts[node.first_child + child]);
    if (is_numbered[i]) tree.kinds[i] = tensor ? kinds.of_tensor(*tensor, tree, node) : kinds.of(tree, node);
  }
  return tree;
}

}  // namespace ballast
