#include "formats/pickle/judge.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "core/text.hpp"
#include "formats/pickle/given.hpp"

namespace ballast {

std::string_view name(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::known: return "known";
    case Verdict::unknown: return "unknown";
    case Verdict::dangerous: return "dangerous";
  }
  return "unknown";
}

namespace pickle {
namespace {

struct UseName {
  std::string_view name;
  std::string_view why_unknown;
  std::uint8_t bit;  // of Uses
};

constexpr std::array<UseName, 7> kUses = {{
    {"named", "is named", 0},
    {"handed over", "stands where Python may call it, in arguments or attributes", kHandedOver},
    {"called", "would be called", kCalled},
    {"built", "would be made an instance of", kBuilt},
    {"given a state", "would be given a state", kState},
    {"given items", "would have something appended to it", kItems},
    {"given pairs", "would have something stored in it", kPairs},
}};

constexpr std::array<std::string_view, 10> kRules = {
    "",          "allowlist",  "only named",           "trusted",          "denylist",
    "last word", "attributes", "not on the allowlist", "what it is given", "a module's own attributes"};

const UseName& about(Use use) { return kUses[static_cast<std::size_t>(use)]; }

// Whether calling it depends on what it is given: then to name it is not allowed either.
bool is_guarded(const Allowed& row) {
  return row.given == Given::literal_bytes || row.given == Given::latin1 || row.given == Given::nested_class ||
         row.given == Given::calls_first || row.given == Given::named_ufunc;
}

bool allows(const Allowed& row, Use use) {
  if (use == Use::named) return !is_guarded(row);
  return (row.uses & about(use).bit) != 0;
}

Judgement judge_use(Standing standing, Use use, bool is_given_well) {
  const Allowed* row = standing.row();
  if (row != nullptr && is_given_well && allows(*row, use)) return {Verdict::known, use, Rule::allowlist};
  if (standing.is_dangerous()) return {Verdict::dangerous, use, standing.rule};
  if (use == Use::named) return {Verdict::known, use, Rule::only_named};
  return {Verdict::unknown, use, is_given_well || row == nullptr ? Rule::not_listed : Rule::given};
}

// How many arguments come first that name what is called or made. These are judged for that, and not as values.
std::size_t role_count(Given given) {
  switch (given) {
    case Given::class_first:
    case Given::class_and_arguments:
    case Given::nested_class: return 1;
    case Given::class_and_base:
    case Given::calls_first: return 2;
    default: return 0;
  }
}

bool names_a_class_first(Given given) {
  return given == Given::class_first || given == Given::class_and_base || given == Given::class_and_arguments;
}

class Judge {
 public:
  Judge(const Graph& graph, std::span<const std::string> trusted)
      : graph_(graph), arguments_(graph), trusted_(trusted), is_used_(graph.globals().size()) {
    all_.standings.reserve(graph.globals().size());
    for (const GlobalName& global : graph.globals()) all_.standings.push_back(standing_of(global.module, global.name));
    all_.globals.resize(all_.standings.size());
  }

  Judgements run() {
    seen_.resize(graph_.size());
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (graph_.kind(id) == Kind::object) judge_object(id);
      if (graph_.kind(id) == Kind::persistent) judge_id(graph_.persistent_id(id));
      if (graph_.kind(id) == Kind::global && graph_.is_altered(id)) change_import(graph_.global_number(id));
    }
    for (std::size_t i = 0; i < all_.standings.size(); ++i) {
      if (!is_used_[i]) take(i, judge_use(all_.standings[i], Use::named, true));
    }
    return std::move(all_);
  }

 private:
  // Whoever imports the global later, in this file or outside of it, gets what the file made of it.
  void change_import(std::size_t number) {
    is_used_[number] = true;
    all_.standings[number].harm = kSystem;
    take(number, {Verdict::dangerous, Use::given_state, Rule::attributes});
  }

  // The global that a node stands for if the node is called or made an instance of.
  struct Subject {
    std::size_t number;
    Standing standing;
  };

  std::optional<Subject> subject_of(NodeId node) const {
    if (const NodeId global = arguments_.class_node(node); global != kNoNode) {
      const std::size_t number = graph_.global_number(global);
      return Subject{number, all_.standings[number]};
    }
    return std::nullopt;
  }

  void judge_object(NodeId id) {
    const ObjectParts parts = graph_.object(id);
    const auto callee = subject_of(parts.callee);
    if (!callee) {
      all_.nameless.push_back({graph_[id].offset, "calls what it has computed, whatever that is"});
    } else {
      const Use use = parts_are_built(id) ? Use::built : Use::called;
      const Allowed* row = callee->standing.row();
      if (row == nullptr && use == Use::built && is_module(id, parts)) {
        add_module(*callee);
        return hand_over(parts.state);
      }
      const bool is_given_well = row == nullptr || arguments_.are(row->given, parts.arguments, parts.keywords);
      add(*callee, use, is_given_well);
      const Subject made = row != nullptr ? judge_roles(*callee, *row, parts) : *callee;
      judge_changes(id, *callee);
      if (made.number != callee->number) judge_changes(id, made);
    }
    const Allowed* row = callee ? callee->standing.row() : nullptr;
    hand_over_arguments(parts.arguments, row != nullptr ? row->given : Given::anything);
    hand_over(parts.keywords);
    hand_over(parts.state);
    for (const NodeId item : graph_.items(id)) hand_over(item);
    for (const NodeId item : graph_.pairs(id)) hand_over(item);
  }

  // torch up to 1.10 calls the class of a storage with a number. Several storages may share an id.
  void judge_id(NodeId id) {
    if (!is_storage_id(id) || (seen_[id] & kIsId) != 0) return;
    seen_[id] |= kIsId;
    const auto type = subject_of(arguments_.first_of(id)[1]);
    if (type) {
      const Allowed* row = type->standing.row();
      add(*type, Use::called, row == nullptr || row->given == Given::anything);
    } else {
      all_.nameless.push_back({graph_[id].offset, "has storages of a class that it has computed, whatever that is"});
    }
    std::size_t i = 0;
    for (const NodeId item : graph_.items(id)) {
      if (i++ >= 2) hand_over(item);
    }
  }

  // Whether an object is a module of an unknown class, with what torch.nn.Module gives every module and nothing else.
  bool is_module(NodeId id, const ObjectParts& parts) const {
    return !graph_.is_altered(id) && graph_.length(parts.arguments) == 0 && parts.keywords == kNoNode &&
           graph_.length(id) == 0 && parts.pairs_count == 0 && arguments_.is_module_state(parts.state);
  }

  void add_module(const Subject& subject) {
    if (subject.standing.is_dangerous()) return add(subject, Use::given_state, true);
    is_used_[subject.number] = true;
    take(subject.number, {Verdict::known, Use::given_state, Rule::module});
  }

  bool parts_are_built(NodeId id) const {
    const Making making = graph_[id].making;
    return making == Making::newobj || making == Making::newobj_ex;
  }

  // Judges arguments that are more than data. Returns what the object is an instance of.
  Subject judge_roles(const Subject& callee, const Allowed& row, const ObjectParts& parts) {
    const auto first = arguments_.first_of(parts.arguments);
    if (row.given == Given::literal_bytes && first[0] != kNoNode) {
      if (const NodeId literal = arguments_.literal_bytes(first[0]); literal != kNoNode) all_.loaded.push_back(literal);
    }
    if (names_a_class_first(row.given)) {
      const auto made = subject_of(first[0]);
      if (!made) return callee;
      add(*made, Use::built, is_built_well(*made, row.given, parts.arguments));
      return *made;
    }
    if (row.given != Given::calls_first) return callee;
    if (const auto function = subject_of(first[0])) {
      const Allowed* inner = function->standing.row();
      const bool is_simple =
          inner == nullptr || (inner->given != Given::calls_first && !names_a_class_first(inner->given));
      add(*function, Use::called, is_simple && (inner == nullptr || arguments_.are(inner->given, first[2], kNoNode)));
      if (inner != nullptr && inner->given == Given::literal_bytes) {
        const NodeId literal = arguments_.literal_bytes(arguments_.first_of(first[2])[0]);
        if (literal != kNoNode) all_.loaded.push_back(literal);
      }
    }
    const auto made = subject_of(first[1]);
    if (!made) return callee;
    add(*made, Use::built, true);
    if (first[3] != kNoNode) add(*made, Use::given_state, arguments_.is_plain_state(first[3]));
    return *made;
  }

  void judge_changes(NodeId id, const Subject& made) {
    const ObjectParts parts = graph_.object(id);
    if (parts.state != kNoNode)
      add(made, Use::given_state, !graph_.is_altered(id) && arguments_.is_plain_state(parts.state));
    if (graph_.length(id) != 0) add(made, Use::given_items, true);
    if (parts.pairs_count != 0) add(made, Use::given_pairs, is_a_plain_dict(made) || arguments_.has_plain_keys(id));
  }

  // Keys of these are data. Other objects may have attributes by their keys.
  bool is_a_plain_dict(const Subject& made) const {
    const Allowed* row = made.standing.row();
    return row != nullptr && (row->path.starts_with("builtins.") || row->path.starts_with("collections."));
  }

  // Whether a class that another function makes an instance of is given what its row asks for.
  bool is_built_well(const Subject& made, Given given, NodeId arguments) const {
    const Allowed* row = made.standing.row();
    if (row == nullptr || row->given == Given::anything) return true;
    if (given == Given::class_and_arguments)
      return arguments_.are(row->given, arguments_.first_of(arguments)[1], kNoNode);
    return given == Given::class_and_base || graph_.length(arguments) == 1;
  }

  // Arguments behind those that name what is called or made. Several calls may share a tuple.
  void hand_over_arguments(NodeId arguments, Given given) {
    const std::size_t roles = role_count(given);
    if (arguments == kNoNode || (seen_[arguments] & (1U << roles)) != 0) return;
    seen_[arguments] |= static_cast<std::uint8_t>(1U << roles);
    std::size_t i = 0;
    for (const NodeId item : graph_.items(arguments)) {
      if (i++ >= roles) hand_over(item);
    }
    if (given != Given::nested_class) return;
    const auto outer = subject_of(arguments_.first_of(arguments)[0]);
    if (outer) add(*outer, outer->standing.row() != nullptr ? Use::named : Use::handed_over, true);
  }

  // Every name in a value, however deep in plain containers, may be called by whoever gets the value. Objects in it are
  // judged by themselves. Looks at each container once.
  void hand_over(NodeId value) {
    if (value == kNoNode) return;
    left_.push_back(value);
    while (!left_.empty()) {
      const NodeId node = left_.back();
      left_.pop_back();
      switch (graph_.kind(node)) {
        case Kind::global:
          hand_over_name({graph_.global_number(node), all_.standings[graph_.global_number(node)]});
          break;
        case Kind::object:  // a class inside of a class is a name, too
          if (const auto nested = subject_of(node)) hand_over_name(*nested);
          break;
        case Kind::persistent: hand_on_id(node); break;
        case Kind::tuple:
        case Kind::list:
        case Kind::set:
        case Kind::frozenset:
        case Kind::dict: hand_on(node); break;
        default: break;
      }
    }
  }

  void hand_on(NodeId container) {
    if ((seen_[container] & kHandedOn) != 0) return;
    seen_[container] |= kHandedOn;
    const bool is_dict = graph_.kind(container) == Kind::dict;
    std::size_t passed_over = is_storage(container) ? 2 : 0;
    for (const NodeId item : is_dict ? graph_.pairs(container) : graph_.items(container)) {
      if (passed_over != 0)
        --passed_over;
      else
        left_.push_back(item);
    }
  }

  // torch's loader of legacy streams gives back the class of the id ("module", class, file, source), and that of tars
  // the first thing in any tuple. What is in the id of a storage is judged once, by judge_id().
  void hand_on_id(NodeId persistent) {
    if ((seen_[persistent] & kHandedOn) != 0) return;
    seen_[persistent] |= kHandedOn;
    const NodeId id = graph_.persistent_id(persistent);
    if (!is_storage_id(id)) left_.push_back(id);
  }

  // The persistent id ("storage", class, key, ...). torch takes a word that is bytes for text.
  bool is_storage_id(NodeId id) const {
    if (graph_.kind(id) != Kind::tuple || graph_.length(id) == 0) return false;
    return graph_.chars(arguments_.first_of(id)[0]) == "storage";
  }

  // ("storage", torch.FloatStorage, key, ...): some writers spell the id of a storage as a tuple, whose class says the
  // type of its elements and is not called.
  bool is_storage(NodeId tuple) const {
    if (graph_.kind(tuple) != Kind::tuple || graph_.length(tuple) < 3) return false;
    const auto first = arguments_.first_of(tuple);
    if (graph_.kind(first[0]) != Kind::text || graph_.chars(first[0]) != "storage") return false;
    if (graph_.kind(first[1]) != Kind::global || !graph_.global(first[1]).name.ends_with("Storage")) return false;
    const Allowed* row = all_.standings[graph_.global_number(first[1])].row();
    return row != nullptr && row->path == kElementClass.path;
  }

  void hand_over_name(const Subject& subject) { add(subject, Use::handed_over, true); }

  void add(const Subject& subject, Use use, bool is_given_well) {
    is_used_[subject.number] = true;
    take(subject.number, judge_use(subject.standing, use, is_given_well));
  }

  // The weakest verdict counts. Of two equal verdicts, a use of a name says more than that it is only named.
  void take(std::size_t number, Judgement judgement) {
    if (judgement.verdict == Verdict::unknown && is_trusted(number)) {
      judgement.verdict = Verdict::known;
      judgement.rule = Rule::trusted;
    }
    Judgement& weakest = all_.globals[number];
    const bool is_first = weakest.rule == Rule::none;
    const bool says_more = judgement.verdict == weakest.verdict && weakest.use <= Use::handed_over;
    if (is_first || judgement.verdict > weakest.verdict || says_more) weakest = judgement;
  }

  bool is_trusted(std::size_t number) const {
    if (trusted_.empty()) return false;
    const GlobalName global = graph_.globals()[number];
    const std::string path = std::string(global.module) + "." + std::string(global.name);
    return std::ranges::any_of(trusted_, [&](const std::string& pattern) { return glob_match(pattern, path); });
  }

  const Graph& graph_;
  const Arguments arguments_;
  const std::span<const std::string> trusted_;
  std::vector<bool> is_used_;  // by number
  static constexpr std::uint8_t kHandedOn = 128, kIsId = 64;
  std::vector<std::uint8_t> seen_;  // by node: with how many roles it has been arguments, and what else it has been
  std::vector<NodeId> left_;        // of hand_over()
  Judgements all_;
};

}  // namespace

std::string_view name(Use use) noexcept { return about(use).name; }
std::string_view name(Rule rule) noexcept { return kRules[static_cast<std::size_t>(rule)]; }

std::string_view why(const Judgement& judgement, const Standing& standing) noexcept {
  if (judgement.verdict == Verdict::dangerous) return text(standing.harm);
  if (judgement.rule == Rule::allowlist) return standing.row()->why;
  if (judgement.rule == Rule::module) return "a module with nothing but tensors, layers and numbers of torch's own";
  return judgement.rule == Rule::only_named ? std::string_view() : about(judgement.use).why_unknown;
}

Judgements judge(const Graph& graph, std::span<const std::string> trusted) { return Judge(graph, trusted).run(); }

}  // namespace pickle
}  // namespace ballast
