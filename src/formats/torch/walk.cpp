#include "formats/torch/walk.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/name_hash.hpp"
#include "core/name_list.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "formats/torch/children.hpp"
#include "formats/torch/optimizer.hpp"
#include "formats/torch/python_text.hpp"
#include "tensor/checkpoint_parts.hpp"

namespace ballast::torch {
namespace {

using pickle::Graph;
using pickle::Kind;
using pickle::NodeId;

constexpr std::size_t kDeepestRoot = 2;
constexpr std::size_t kMostRoots = 1000;
constexpr std::size_t kDeepestObject = 10'000;  // Python itself pickles nothing deeper than its stack

class Walker {
 public:
  Walker(const Graph& graph, const std::string& prefix, Rebuilder& rebuilder, const Limits& limits, Checkpoint& into)
      : graph_(graph), rebuilder_(rebuilder), limits_(limits), checkpoint_(into), path_(prefix), budget_(graph) {}

  void walk(NodeId root) {
    // Reserved memory costs nothing until it is used, and growing would hold the values twice.
    checkpoint_.values.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(limits_.max_values, graph_.size())));
    visit(root);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      path_.resize(frame.path_length);
      if (frame.is_done) {
        on_path_[frame.node] = false;
        note_root(frame);
        frames_.pop_back();
        continue;
      }
      if (!frame.is_root || !path_.empty()) path_ += '.';
      path_ += frame.children.key();
      const NodeId child = frame.children.node();
      const bool is_left_out = frame.children.is_left_out();
      frame.is_done = !frame.children.next();
      is_left_out ? left_out_.add(path_) : visit(child);  // visit() may move the frame
    }
    finish();
  }

 private:
  struct Frame {
    NodeId node;
    Children children;
    std::size_t path_length;
    bool is_root;
    std::size_t tensors_before;  // the number that the checkpoint had when the frame was entered
    bool has_tensors = false;    // of its own, not only below
    bool is_done = false;        // if not, the children are at the next one
  };

  void visit(NodeId node) try {
    budget_.spend_steps(1);
    if (add_tensors(node)) {
      if (!frames_.empty()) frames_.back().has_tensors = true;
      return;
    }
    if (is_leaf(graph_, node)) return add_value(node);
    if (on_path_.empty()) on_path_.resize(graph_.size());
    if (on_path_[node]) return;  // the node contains itself
    find_optimizer(node);
    const auto optimizer = optimizers_.find(node);
    Children children(graph_, node, limits_, budget_, optimizer == optimizers_.end() ? nullptr : &optimizer->second);
    if (!children.next()) return add_value(node);
    if (frames_.size() == kDeepestObject) {
      throw Error(Errc::limit, fmt::format("objects lie inside each other deeper than {}", kDeepestObject))
          .hint(mention(Remedy::scan) + " looks into it all the same");
    }
    on_path_[node] = true;
    frames_.push_back({node, std::move(children), path_.size(), frames_.empty(), checkpoint_.tensors.size()});
  } catch (Error& error) {
    throw error.at_byte(graph_[node].offset);
  }

  void find_optimizer(NodeId node) {
    auto optimizer = optimizer_state(graph_, node, budget_);
    if (optimizer) optimizers_.try_emplace(optimizer->state, std::move(optimizer->numbers));
  }

  // Notes a subtree that is likely to be a state dict of its own: it has tensors, and lies near the top.
  void note_root(const Frame& frame) {
    const std::size_t depth = frames_.size() - 1;
    if (depth == 0 || depth > kDeepestRoot || !frame.has_tensors) return;
    if (checkpoint_.roots.size() == kMostRoots) return;
    budget_.spend_bytes(frame.path_length);
    checkpoint_.roots.push_back(
        {path_.substr(0, frame.path_length), checkpoint_.tensors.size() - frame.tensors_before});
  }

  bool add_tensors(NodeId node) try {
    if (graph_.kind(node) != Kind::object && graph_.kind(node) != Kind::persistent) return false;
    if (const Checkpoint* file = graph_.kind(node) == Kind::object ? rebuilder_.nested_file(node) : nullptr) {
      add_file(*file);
      return true;
    }
    auto rebuilt = rebuilder_.rebuild(node);
    if (!rebuilt) return false;
    std::vector<std::string> names;
    for (auto& part : rebuilt->parts) names.push_back(add_tensor(part_name(part.suffix), part.tensor));
    if (rebuilt->composite) {
      rebuilt->composite->name = path_;
      rebuilt->composite->parts = std::move(names);
      checkpoint_.composites.push_back(std::move(*rebuilt->composite));
    }
    return true;
  } catch (const Error& error) {
    if (error.code() != Errc::unsupported) throw;
    budget_.spend_bytes(path_.size() + error.message().size());
    checkpoint_.notes.push_back({path_, fmt::format("{} is left out: {}", quote(path_), error.message())});
    return true;
  }

  std::string part_name(const std::string& suffix) const {
    return suffix.empty() ? path_ : path_.empty() ? suffix : path_ + "." + suffix;
  }

  // The second and later tensors of one name get "~2", "~3".
  std::string add_tensor(const std::string& name, const Tensor& tensor) {
    constexpr std::uint64_t kEntryBytes = 64;
    budget_.spend_bytes(name.size() + kEntryBytes);
    if (checkpoint_.tensors.size() >= limits_.max_tensors) throw Error(Errc::limit, "there are too many tensors");
    if (checkpoint_.tensors.insert(name, tensor)) return name;
    std::uint64_t& number = taken_.try_emplace(name, 1).first->second;
    for (;;) {
      std::string other = fmt::format("{}~{}", name, ++number);
      if (!checkpoint_.tensors.insert(other, tensor)) continue;
      checkpoint_.notes.push_back(
          {name, fmt::format("another tensor is called {}: it is listed as {}", quote(name), quote(other)),
           Note::Kind::remark});
      return other;
    }
  }

  // Adds a whole file that lies in the bytes of this one: its names go under this path. A file that is met again is
  // listed again, but its notes are not.
  void add_file(const Checkpoint& file) {
    NameViewMap<std::string> names;
    for (const auto& [name, tensor] : file) names.emplace(name, add_tensor(part_name(std::string(name)), tensor));
    budget_.spend_bytes(sizeof(Note) * (file.notes.size() + file.dangerous.size() + file.composites.size()));
    Checkpoint part = rename_names(file, [&](std::string_view name) {
      const auto found = names.find(name);
      return found != names.end() ? found->second : part_name(std::string(name));
    });
    for (PlainValue& value : std::exchange(part.values, {})) {
      value.path = part_name(value.path);
      keep_value(std::move(value));
    }
    for (const MetadataEntry& field : part.typed_metadata) {
      budget_.spend_bytes(path_.size() + field.key.size());
      checkpoint_.typed_metadata.set(with_key(field, part_name(std::string(field.key))));
    }
    for (const auto& [key, value] : part.metadata) {
      budget_.spend_bytes(path_.size() + key.size() + value.size());
      checkpoint_.metadata.emplace(part_name(key), value);
    }
    if (!files_.insert(&file).second) {
      part.notes.clear();
      part.dangerous.clear();
      part.unused_bytes = 0;
    }
    take_over(checkpoint_, part);
  }

  void add_value(NodeId node) {
    if (checkpoint_.values.size() >= limits_.max_values) {
      ++values_left_out_;
      return;
    }
    PlainValue value = plain_value(graph_, node);
    value.path = path_;
    keep_value(std::move(value));
  }

  void keep_value(PlainValue value) {
    if (checkpoint_.values.size() >= limits_.max_values) {
      ++values_left_out_;
      return;
    }
    const auto* text = std::get_if<std::string>(&value.value);
    budget_.spend_bytes(value.path.size() + (text ? text->size() : 0));
    checkpoint_.values.push_back(std::move(value));
  }

  void finish() {
    if (!left_out_.empty()) {
      const bool is_one = left_out_.count() == 1;
      checkpoint_.notes.push_back(
          {"",
           fmt::format("{} not in the state_dict() of {} and left out: {}",
                       is_one ? "a buffer is" : fmt::format("{} buffers are", left_out_.count()),
                       is_one ? "its module" : "their modules", left_out_.text()),
           Note::Kind::remark});
    }
    if (values_left_out_ == 0) return;
    checkpoint_.notes.push_back({"", fmt::format("{} more values are not kept", values_left_out_), Note::Kind::remark});
  }

  const Graph& graph_;
  Rebuilder& rebuilder_;
  const Limits& limits_;
  Checkpoint& checkpoint_;
  std::string path_;
  std::vector<Frame> frames_;
  std::vector<bool> on_path_;
  WalkBudget budget_;
  std::unordered_set<const Checkpoint*> files_;              // files inside this one that have been added
  std::unordered_map<NodeId, ParameterNumbers> optimizers_;  // by their states
  NameList left_out_;                                        // buffers
  std::uint64_t values_left_out_ = 0;
  NameMap<std::uint64_t> taken_;  // names that occur again, and the last number given
};

}  // namespace

void walk(const Graph& graph, NodeId root, const std::string& prefix, Rebuilder& rebuilder, const Limits& limits,
          Checkpoint& checkpoint) {
  Walker(graph, prefix, rebuilder, limits, checkpoint).walk(root);
}

}  // namespace ballast::torch
