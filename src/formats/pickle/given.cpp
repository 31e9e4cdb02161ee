#include "formats/pickle/given.hpp"

#include <algorithm>
#include <array>

#include "formats/pickle/globals.hpp"

namespace ballast::pickle {
namespace {

bool is_class_like(std::string_view name) {
  const std::string_view bare = name.substr(std::min(name.find_first_not_of('_'), name.size()));
  return !name.starts_with("__") && !bare.empty() && bare[0] >= 'A' && bare[0] <= 'Z' &&
         bare.find('.') == std::string_view::npos;
}

// The attributes of torch.nn.Module in all its releases. The first three are always there.
constexpr auto kModuleAttributes = std::to_array<std::string_view>({
    "_parameters",
    "_buffers",
    "_modules",
    "training",
    "_backend",
    "_non_persistent_buffers_set",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
    "_is_full_backward_hook",
});

constexpr auto kModulesOfUfuncs =
    std::to_array<std::string_view>({"numpy", "numpy.core", "numpy._core", "scipy.special"});

// The last word of a dotted name: the name of a nested class is the path to it.
std::string_view last_word(std::string_view name) { return name.substr(name.rfind('.') + 1); }

constexpr std::array<std::string_view, 13> kGiven = {
    "",
    "literals",
    "one literal",
    "literal bytes, which are looked into",
    "literal text and \"latin1\"",
    "literal bytes, or literal text and \"latin-1\"",
    "one value",
    "a class that is known",
    "a class that is known, and one of Python's own types",
    "a class that is known, and arguments without keywords",
    "a function that is known for its arguments, and a class that is known",
    "a class that is known, and the name of a class inside it",
    "the names of a module of NumPy or SciPy and of a function there"};

}  // namespace

std::string_view text(Given given) noexcept { return kGiven[static_cast<std::size_t>(given)]; }

bool Arguments::are(Given given, NodeId arguments, NodeId keywords) const {
  if (arguments == kNoNode || (keywords != kNoNode && graph_.length(keywords) != 0)) return false;
  const std::uint64_t count = graph_.length(arguments);
  const NodeId first = count != 0 ? first_of(arguments)[0] : kNoNode;
  switch (given) {
    case Given::anything: return true;
    case Given::literals: {
      constexpr std::uint64_t kMostLiterals = 16;
      return count <= kMostLiterals &&
             std::ranges::all_of(graph_.item_list(arguments), [this](NodeId item) { return is_literal(item); });
    }
    case Given::literal_text: return count == 0 || (count == 1 && is_literal(first));
    case Given::literal_bytes: return count == 1 && literal_bytes(first) != kNoNode;
    case Given::latin1: return is_latin1(arguments);
    case Given::plain_bytes:
      return count == 0 || (count == 1 && literal_bytes(first) != kNoNode) || is_latin1(arguments);
    case Given::one_value: return count == 1;
    case Given::class_first: return class_node(first) != kNoNode;
    case Given::class_and_base: return is_class_and_base(arguments);
    case Given::class_and_arguments: return is_class_and_arguments(arguments);
    case Given::calls_first:
      return count == kMost && graph_.kind(first) == Kind::global && class_node(first_of(arguments)[1]) != kNoNode &&
             graph_.kind(first_of(arguments)[2]) == Kind::tuple;
    case Given::nested_class: return is_nested_class(arguments);
    case Given::named_ufunc: return is_ufunc(arguments);
  }
  return false;
}

std::array<NodeId, Arguments::kMost> Arguments::first_of(NodeId arguments) const {
  std::array<NodeId, kMost> first;
  first.fill(kNoNode);
  if (arguments == kNoNode) return first;
  std::size_t count = 0;
  for (const NodeId item : graph_.items(arguments)) {
    if (count == kMost) break;
    first[count++] = item;
  }
  return first;
}

NodeId Arguments::class_node(NodeId node) const {
  if (node == kNoNode) return kNoNode;
  if (graph_.kind(node) == Kind::global) return node;
  if (graph_.kind(node) == Kind::persistent) {
    const NodeId id = graph_.persistent_id(node);
    if (graph_.kind(id) != Kind::tuple) return kNoNode;
    const auto first = first_of(id);  // the tar of 2016 has no word before the class
    const NodeId named = is_text(first[0]) && graph_.chars(first[0]) == "module" ? first[1] : first[0];
    return named != kNoNode && graph_.kind(named) == Kind::global ? named : kNoNode;
  }
  if (!is_call_of(node, "builtins", "getattr") || !is_nested_class(graph_.object(node).arguments)) return kNoNode;
  return first_of(graph_.object(node).arguments)[0];
}

NodeId Arguments::literal_bytes(NodeId node) const {
  if (node == kNoNode) return kNoNode;
  const Kind kind = graph_.kind(node);
  if (kind == Kind::bytes || kind == Kind::bytearray || kind == Kind::text)
    return graph_.is_altered(node) ? kNoNode : node;
  if (kind != Kind::object) return kNoNode;
  const ObjectParts parts = graph_.object(node);
  if (parts.state != kNoNode || parts.pairs_count != 0 || graph_.length(node) != 0) return kNoNode;
  if (!is_call_of(node, "_codecs", "encode") || !is_latin1(parts.arguments)) return kNoNode;
  return first_of(parts.arguments)[0];
}

bool Arguments::is_module_state(NodeId state) const {
  if (state == kNoNode || graph_.kind(state) != Kind::dict || graph_.length(state) > kModuleAttributes.size())
    return false;
  std::size_t required = 0;
  bool is_key = false;
  for (const NodeId node : graph_.pairs(state)) {
    is_key = !is_key;
    if (!is_key) {
      const Kind kind = graph_.kind(node);
      if (kind == Kind::text || kind == Kind::bytes || kind == Kind::bytearray || kind == Kind::global) return false;
      continue;
    }
    const auto found =
        is_text(node) ? std::ranges::find(kModuleAttributes, graph_.chars(node)) : kModuleAttributes.end();
    if (found == kModuleAttributes.end()) return false;
    if (found < kModuleAttributes.begin() + 3) ++required;
  }
  return required == 3;
}

bool Arguments::is_plain_state(NodeId state) const {
  if (graph_.kind(state) != Kind::tuple) return is_plain_part(state);
  if (graph_.length(state) != 2) return true;  // the class takes it apart itself
  const auto both = first_of(state);           // attributes and slots, which Python sets one by one
  return is_plain_part(both[0]) && is_plain_part(both[1]);
}

// What an object makes of a state that is an object, too, depends on methods of the state: only a dict that was filled
// in the file is taken for one.
bool Arguments::is_plain_part(NodeId part) const {
  if (graph_.kind(part) == Kind::dict) return has_plain_keys(part);
  if (graph_.kind(part) != Kind::object) return true;
  const ObjectParts parts = graph_.object(part);
  return is_call_of(part, "collections", "OrderedDict") && graph_.length(parts.arguments) == 0 &&
         parts.state == kNoNode && has_plain_keys(part);
}

bool Arguments::is_literal(NodeId node) const {
  switch (graph_.kind(node)) {
    case Kind::none:
    case Kind::boolean:
    case Kind::integer:
    case Kind::big_integer:
    case Kind::real:
    case Kind::text:
    case Kind::bytes: return true;
    default: return literal_bytes(node) != kNoNode;
  }
}

bool Arguments::is_text(NodeId node) const { return node != kNoNode && graph_.kind(node) == Kind::text; }

bool Arguments::is_latin1(NodeId arguments) const {
  if (graph_.length(arguments) != 2) return false;
  const auto first = first_of(arguments);
  if (!is_text(first[0]) || !is_text(first[1])) return false;
  const std::string_view codec = graph_.chars(first[1]);
  return codec == "latin1" || codec == "latin-1";
}

bool Arguments::is_nested_class(NodeId arguments) const {
  if (graph_.length(arguments) != 2) return false;
  const auto first = first_of(arguments);
  if (graph_.kind(first[0]) != Kind::global || !is_text(first[1])) return false;
  const GlobalName outer = graph_.global(first[0]);
  const std::string_view inner = graph_.chars(first[1]);
  return is_class_like(last_word(outer.name)) && is_class_like(inner) &&
         !standing_of(outer.module, outer.name).is_dangerous() && !standing_of(outer.module, inner).is_dangerous();
}

bool Arguments::is_ufunc(NodeId arguments) const {
  if (graph_.length(arguments) != 2) return false;
  const auto first = first_of(arguments);
  if (!is_text(first[0]) || !is_text(first[1])) return false;
  const std::string_view module = graph_.chars(first[0]), function = graph_.chars(first[1]);
  const bool is_numeric = std::ranges::any_of(kModulesOfUfuncs, [&](std::string_view known) {
    const bool is_inside =
        known != "numpy" && module.starts_with(known) && module.substr(known.size()).starts_with('.');
    return module == known || is_inside;
  });
  return is_numeric && function.find('.') == std::string_view::npos && !standing_of(module, function).is_dangerous();
}

bool Arguments::is_call_of(NodeId object, std::string_view module, std::string_view name) const {
  return graph_.kind(object) == Kind::object && graph_.is_global(graph_.object(object).callee, module, name);
}

// The constructor of the base runs, so it must be one of those that keep a value and do nothing else.
bool Arguments::is_class_and_base(NodeId arguments) const {
  constexpr auto kBases = std::to_array<std::string_view>(
      {"bytes", "complex", "dict", "float", "frozenset", "int", "list", "object", "set", "str", "tuple", "unicode"});
  const auto first = first_of(arguments);
  if (graph_.length(arguments) != 3 || class_node(first[0]) == kNoNode || graph_.kind(first[1]) != Kind::global)
    return false;
  const GlobalName base = graph_.global(first[1]);
  return python3_module(base.module) == "builtins" && std::ranges::find(kBases, base.name) != kBases.end() &&
         graph_.kind(first[2]) != Kind::object;
}

bool Arguments::is_class_and_arguments(NodeId arguments) const {
  const auto first = first_of(arguments);
  return graph_.length(arguments) == 3 && class_node(first[0]) != kNoNode && graph_.kind(first[1]) == Kind::tuple &&
         graph_.kind(first[2]) == Kind::dict && graph_.length(first[2]) == 0;
}

// Each dict is looked at once, however many objects share it.
bool Arguments::has_plain_keys(NodeId dict) const {
  std::uint8_t& known = states_[dict];
  if (known != 0) return known == 1;
  bool is_key = false;
  known = 1;
  for (const NodeId node : graph_.pairs(dict)) {
    is_key = !is_key;
    if (is_key && is_text(node) && graph_.chars(node).starts_with("__")) known = 2;
  }
  return known == 1;
}

}  // namespace ballast::pickle
