#include "objects.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ballast/error.hpp>
#include <ballast/open.hpp>

#include "checkpoint.hpp"
#include "checkpoint/objects.hpp"
#include "formats/torch/calls.hpp"
#include "formats/torch/mapping.hpp"
#include "gil.hpp"
#include "tensor.hpp"

namespace py = pybind11;

namespace ballast::python {
namespace {

using pickle::Graph;
using pickle::Kind;
using pickle::kNoNode;
using pickle::NodeId;

// Makes Python objects of nodes, without recursion. The shell of whatever may contain itself (a list, a dict, an
// object) is made before its children; everything else is made after them. The Python side (ballast._load) makes what
// is more than a number, a text or a container, so that this file imports nothing by the names that a pickle gives.
class Maker {
 public:
  Maker(const torch::Objects& objects, std::shared_ptr<PrivateMaps> maps, py::object makers)
      : objects_(objects), graph_(*objects.graph), maps_(std::move(maps)), makers_(std::move(makers)) {}

  py::object make() {
    waiting_.push_back({objects_.root, false});
    while (!waiting_.empty()) {
      const Step step = waiting_.back();
      waiting_.pop_back();
      step.is_begun ? finish(step.node) : begin(step.node);
    }
    // An object that contains itself through a tuple could not be filled before the tuple was there.
    for (const NodeId node : std::exchange(unfilled_, {})) fill(node);
    return made_.at(objects_.root);
  }

 private:
  struct Step {
    NodeId node;
    bool is_begun;  // its children have been made
  };

  void begin(NodeId node) {
    if (made_.contains(node) || begun_.contains(node)) return;
    if (const auto tensor = objects_.tensors.find(node); tensor != objects_.tensors.end())
      return void(made_.emplace(node, tensor_of(node, tensor->second)));
    if (const auto file = objects_.files.find(node); file != objects_.files.end()) {
      return void(made_.emplace(node, makers_.attr("file")(std::make_unique<PyCheckpoint>(file->second, "cpu"))));
    }
    begun_.emplace(node, true);
    if (py::object shell = shell_of(node)) made_.emplace(node, std::move(shell));
    waiting_.push_back({node, true});
    // The first child is made first.
    const std::vector<NodeId> children = children_of(node);
    for (std::size_t i = children.size(); i-- > 0;) waiting_.push_back({children[i], false});
  }

  void finish(NodeId node) {
    const bool has_shell = made_.contains(node);
    if (!has_shell) {
      made_.emplace(node, value_of(node));
      const Kind kind = graph_.kind(node);
      if (kind == Kind::tuple || kind == Kind::frozenset || kind == Kind::object) note_cost(node);
      return;
    }
    if (!fill(node)) unfilled_.push_back(node);
  }

  std::optional<torch::Mapping> mapping(NodeId node) const {
    auto mapping = torch::mapping_of(graph_, node);
    return mapping && mapping->is_certain ? mapping : std::nullopt;
  }

  // What can be there before its children are; null for everything else.
  py::object shell_of(NodeId node) {
    switch (graph_.kind(node)) {
      case Kind::list: return py::list();
      case Kind::dict: return py::dict();
      case Kind::object: {
        const auto made = torch::construction_of(graph_, node);
        if (!made.cls) return {};
        const bool is_mapping = mapping(node).has_value();
        py::object shell = makers_.attr("shell")(to_text(made.cls->module), to_text(made.cls->name), is_mapping);
        return shell.is_none() ? py::object() : shell;
      }
      default: return {};
    }
  }

  std::vector<NodeId> children_of(NodeId node) const {
    switch (graph_.kind(node)) {
      case Kind::tuple:
      case Kind::list:
      case Kind::set:
      case Kind::frozenset: return graph_.item_list(node);
      case Kind::dict: return pairs_of(node);
      case Kind::object: {
        std::vector<NodeId> children;
        if (const auto items = mapping(node)) {
          for (torch::MappingPairs pairs(graph_, items->parts); pairs.next();) {
            if (pairs.key() != kNoNode) children.push_back(pairs.key());
            children.push_back(pairs.value());
          }
        } else {
          const auto made = torch::construction_of(graph_, node);
          for (const NodeId part : {made.arguments, made.keywords}) children.push_back(part);
          for (const NodeId item : graph_.items(node)) children.push_back(item);
          for (const NodeId item : pairs_of(node)) children.push_back(item);
        }
        children.push_back(graph_.object(node).state);
        std::erase(children, kNoNode);
        return children;
      }
      default: return {};
    }
  }

  std::vector<NodeId> pairs_of(NodeId node) const {
    std::vector<NodeId> pairs;
    for (const NodeId item : graph_.pairs(node)) pairs.push_back(item);
    return pairs;
  }

  bool is_made(NodeId node) const { return node == kNoNode || made_.contains(node); }
  py::object object_of(NodeId node) const {
    const auto found = made_.find(node);
    return found == made_.end() ? py::object(py::none()) : found->second;
  }

  // False if a child is not there yet.
  bool fill(NodeId node) {
    const std::vector<NodeId> children = children_of(node);
    const bool is_last_chance = waiting_.empty();
    if (!is_last_chance && !std::all_of(children.begin(), children.end(), [&](NodeId child) { return is_made(child); }))
      return false;
    const py::object& shell = made_.at(node);
    switch (graph_.kind(node)) {
      case Kind::list:
        for (const NodeId child : children) py::reinterpret_borrow<py::list>(shell).append(object_of(child));
        break;
      case Kind::dict: set_pairs(shell, children); break;
      default: fill_object(node, shell); break;
    }
    return true;
  }

  void set_pairs(const py::object& target, const std::vector<NodeId>& pairs) {
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) set_pair(target, pairs[i], pairs[i + 1]);
  }
  void set_pair(const py::object& target, NodeId key, NodeId value) const { target[hashable(key)] = object_of(value); }

  // What Python cannot hash, or only in a time or a depth that somebody made up, is named instead; no pickler writes
  // such keys.
  py::object hashable(NodeId node) const {
    py::object object = object_of(node);
    const auto cost = costs_.find(node);
    const bool is_cheap =
        cost == costs_.end() || (cost->second.depth <= kDeepestKey && cost->second.size <= kLargestKey);
    if (is_cheap && PyObject_Hash(object.ptr()) != -1) return object;
    PyErr_Clear();
    return py::str(std::string("<") + Py_TYPE(object.ptr())->tp_name + " " + std::to_string(node) + ">");
  }

  // How deep and how large an object is that Python hashes through, its parts counted as often as they occur.
  struct Cost {
    std::uint64_t depth = 0, size = 1;
  };
  static constexpr std::uint64_t kDeepestKey = 200, kLargestKey = 100'000;

  void note_cost(NodeId node) {
    Cost cost;
    for (const NodeId child : children_of(node)) {
      const auto found = costs_.find(child);
      const Cost own = found == costs_.end() ? Cost{} : found->second;
      cost.depth = std::max(cost.depth, own.depth + 1);
      if (__builtin_add_overflow(cost.size, own.size, &cost.size)) cost.size = UINT64_MAX;
    }
    costs_.emplace(node, cost);
  }

  void fill_object(NodeId node, const py::object& shell) {
    py::object state = object_of(graph_.object(node).state);
    if (const auto items = mapping(node)) {
      for (torch::MappingPairs pairs(graph_, items->parts); pairs.next();) {
        if (pairs.key() != kNoNode) set_pair(shell, pairs.key(), pairs.value());
      }
      makers_.attr("finish_mapping")(shell, arguments_of(node), state);
      return;
    }
    makers_.attr("finish")(shell, arguments_of(node), keywords_of(node), state, items_of(node), own_pairs_of(node));
  }

  py::tuple arguments_of(NodeId node) const {
    const auto made = torch::construction_of(graph_, node);
    if (made.arguments == kNoNode || graph_.kind(made.arguments) != Kind::tuple) return py::tuple();
    const auto all = graph_.item_list(made.arguments);
    py::list given;
    for (std::size_t i = made.first; i < all.size(); ++i) given.append(object_of(all[i]));
    return py::tuple(given);
  }
  py::object keywords_of(NodeId node) const {
    const auto made = torch::construction_of(graph_, node);
    return made.keywords == kNoNode ? py::object(py::dict()) : object_of(made.keywords);
  }
  py::list items_of(NodeId node) const {
    py::list items;
    for (const NodeId item : graph_.items(node)) items.append(object_of(item));
    return items;
  }
  py::list own_pairs_of(NodeId node) const {
    py::list pairs;
    const auto all = pairs_of(node);
    for (std::size_t i = 0; i + 1 < all.size(); i += 2)
      pairs.append(py::make_tuple(object_of(all[i]), object_of(all[i + 1])));
    return pairs;
  }

  // Everything that is made after its children.
  py::object value_of(NodeId node) {
    const pickle::Node own = graph_[node];
    switch (graph_.kind(node)) {
      case Kind::none: return py::none();
      case Kind::boolean: return py::bool_(own.integer != 0);
      case Kind::integer: return py::int_(own.integer);
      case Kind::big_integer: return big_integer(node);
      case Kind::real: return py::float_(own.real);
      case Kind::text: return text(node);
      case Kind::bytes: return py::bytes(graph_.read_chars(node));
      case Kind::bytearray: return py::bytearray(py::bytes(graph_.read_chars(node)));
      case Kind::tuple: return py::tuple(made_items(node));
      case Kind::set: return py::set(hashable_items(node));
      case Kind::frozenset: return py::reinterpret_steal<py::object>(PyFrozenSet_New(hashable_items(node).ptr()));
      case Kind::global: {
        const auto global = graph_.global(node);
        return makers_.attr("make_global")(to_text(global.module), to_text(global.name));
      }
      case Kind::object: {
        const auto made = torch::construction_of(graph_, node);
        const py::object module = made.cls ? to_text(made.cls->module) : py::str("");
        const py::object name = made.cls ? to_text(made.cls->name) : py::str("<computed>");
        return makers_.attr("make")(module, name, arguments_of(node), keywords_of(node),
                                    object_of(graph_.object(node).state), items_of(node), own_pairs_of(node));
      }
      case Kind::persistent:
        return makers_.attr("make")("", "<persistent id>", py::tuple(), py::dict(), py::none(), py::list(), py::list());
      default: return py::none();
    }
  }

  py::list made_items(NodeId node) const {
    py::list items;
    for (const NodeId item : graph_.items(node)) items.append(object_of(item));
    return items;
  }

  py::list hashable_items(NodeId node) const {
    py::list items;
    for (const NodeId item : graph_.items(node)) items.append(hashable(item));
    return items;
  }

  py::object text(NodeId node) const {
    const std::string chars = graph_.read_chars(node);
    PyObject* made = PyUnicode_DecodeUTF8(chars.data(), static_cast<Py_ssize_t>(chars.size()), "surrogatepass");
    if (made == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(made);
  }

  // In hexadecimal or decimal digits; int() of many decimal digits takes quadratic time, and Python limits it.
  py::object big_integer(NodeId node) const {
    const std::string digits(graph_.chars(node));
    PyObject* made = PyLong_FromString(digits.c_str(), nullptr, 10);
    if (made != nullptr) return py::reinterpret_steal<py::object>(made);
    PyErr_Clear();
    return py::str(digits);
  }

  // Whether an argument of a call is True.
  bool flag_of(NodeId node, std::size_t argument) const {
    const NodeId found = torch::construction_of(graph_, node).argument(graph_, argument);
    return found != kNoNode && graph_.kind(found) == Kind::boolean && graph_[found].integer != 0;
  }

  py::object tensor_of(NodeId node, const torch::Rebuilt& rebuilt) {
    const auto callee = graph_.kind(node) == Kind::object ? torch::callee_of(graph_, node) : std::nullopt;
    const bool is_parameter = callee && callee->name.starts_with("_rebuild_parameter");
    const bool is_array = callee && callee->module.starts_with("numpy");
    const bool has_gradient = callee && flag_of(node, is_parameter                                  ? 1
                                                      : callee->name.starts_with("_rebuild_tensor") ? 4
                                                                                                    : 99);
    if (!rebuilt.composite && rebuilt.parts.size() == 1) {
      return makers_.attr("tensor")(PyTensor(rebuilt.parts[0].tensor, maps_), is_parameter, is_array, has_gradient);
    }
    py::dict parts;
    for (const auto& part : rebuilt.parts) parts[to_text(part.suffix)] = PyTensor(part.tensor, maps_);
    const std::string layout = rebuilt.composite ? rebuilt.composite->layout : "";
    const py::object shape =
        rebuilt.composite ? py::object(to_tuple(rebuilt.composite->shape)) : py::object(py::none());
    return makers_.attr("composite")(layout, shape, parts);
  }

  const torch::Objects& objects_;
  const Graph& graph_;
  std::shared_ptr<PrivateMaps> maps_;
  py::object makers_;
  std::unordered_map<NodeId, py::object> made_;
  std::unordered_map<NodeId, bool> begun_;
  std::unordered_map<NodeId, Cost> costs_;  // of tuples and what is like them
  std::vector<Step> waiting_;
  std::vector<NodeId> unfilled_;
};

// The object in a file, made by `makers`; None if the file holds no pickle, so that its tensors by name are all there
// is.
py::object load(const PyCheckpoint& checkpoint, const py::object& makers) {
  const auto& files = checkpoint.get().files;
  if (files.size() != 1 || !files[0].source) return py::none();
  torch::Objects objects;
  {
    const Unlocked unlocked;
    objects = read_objects(files[0].source, {});
  }
  if (!objects.graph) return py::none();
  return py::make_tuple(Maker(objects, checkpoint.maps(), makers).make());
}

}  // namespace

void add_objects(py::module_& module) { module.def("load", &load, py::arg("checkpoint"), py::arg("makers")); }

}  // namespace ballast::python
