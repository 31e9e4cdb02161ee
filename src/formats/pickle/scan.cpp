#include "formats/pickle/scan.hpp"

#include <algorithm>
#include <deque>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "formats/pickle/hidden.hpp"
#include "formats/pickle/joblib.hpp"
#include "formats/pickle/judge.hpp"
#include "formats/pickle/machine.hpp"
#include "io/section.hpp"

namespace ballast::pickle {
namespace {

// Limits what is reported about one range, so that a hostile file cannot make a report that is far larger than itself.
constexpr std::size_t kMostGlobals = 100'000;  // dangerous ones are reported beyond that
constexpr std::size_t kMostDangerous = 200'000;
constexpr std::size_t kMostFindings = 1'000;
constexpr std::size_t kMostPickles = 1'000'000;  // one after the other
constexpr std::size_t kLongestShownName = 512;

constexpr std::uint64_t kShortestPickle = 4;  // of a pickle that does anything

// Bytes without PROTO are tried, since they may be an old pickle; old pickles are small.
constexpr std::uint64_t kMostGuessedNodes = 1'000'000;

// A range of bytes to be looked at.
struct Place {
  SourcePtr source;
  std::uint64_t first, last;
  std::string member;
  std::uint64_t depth;  // 0 is what the caller asked about
};

// One pickle that was run as far as it went.
struct Attempt {
  Graph graph;
  std::vector<Error> complaints;
  bool stopped = false;  // whether it came to STOP, before `end`
  std::uint64_t end = 0;
};

// Whether this is an identifier with dots, as modules and names are. Names that chance makes of raw bytes are not.
bool is_plausible(std::string_view name) {
  if (valid_utf8_prefix(name) != name.size()) return false;
  return !name.empty() && name.size() <= kLongestShownName && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '<' || c == '>' || static_cast<unsigned char>(c) >= 0x80;
  });
}

bool names_something(const Graph& graph) {
  return std::ranges::any_of(graph.globals(),
                             [](const GlobalName& g) { return is_plausible(g.module) && is_plausible(g.name); });
}

bool names_danger(const Graph& graph) {
  return std::ranges::any_of(judge(graph).globals, [](const Judgement& j) { return j.verdict == Verdict::dangerous; });
}

bool calls_something(const Graph& graph) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.kind(id) == Kind::object) return true;
  }
  return false;
}

class Scanner {
 public:
  Scanner(const Limits& limits, Scan& scan, FileTest is_file) : limits_(limits), scan_(scan), is_file_(is_file) {}

  void look_at(Place place) {
    places_.push_back(std::move(place));
    while (!places_.empty()) {
      const Place next = std::move(places_.front());
      places_.pop_front();
      pickles_of(next);
    }
  }

 private:
  // Looks at one pickle after the other. The first one counts whatever it is; what follows a STOP may be raw data.
  void pickles_of(const Place& place) {
    std::uint64_t at = place.first;
    for (std::size_t count = 0; at < place.last; ++count) {
      if (count == kMostPickles)
        return find(place, at, fmt::format("more than {} pickles, one after the other", count));
      const bool guess = count != 0 && !has_proto(place, at);
      const Attempt attempt = run(place, at, guess ? guess_limits() : limits_);
      if (count != 0 && !is_pickle(attempt, !guess)) return tell_trailing(place, at);
      const std::vector<NodeId> loaded = report(place, attempt);
      for (const NodeId id : loaded) take_loaded(place, attempt.graph, id);
      look_inside(place, attempt.graph, loaded);
      if (holds_raw_arrays(attempt.graph)) look_again(place, at, attempt.graph);
      if (!attempt.stopped) return;
      at = attempt.end;
    }
  }

  // Raw data are not instructions for long, and name nothing that could be a module's name.
  static bool is_pickle(const Attempt& attempt, bool proto) {
    return names_something(attempt.graph) || (attempt.stopped && (proto || attempt.complaints.empty()));
  }

  static bool has_proto(const Place& place, std::uint64_t at) {
    char beginning[3] = {};
    if (place.last - at < sizeof beginning) return false;
    place.source->read(at, std::as_writable_bytes(std::span(beginning)));
    return begins_with_proto({beginning, sizeof beginning});
  }

  Limits guess_limits() const {
    Limits limits = limits_;
    limits.max_pickle_nodes = std::min(limits.max_pickle_nodes, kMostGuessedNodes);
    return limits;
  }

  // joblib steps over raw arrays. A program that loads the file by pickle alone takes them for instructions.
  static bool holds_raw_arrays(const Graph& graph) {
    return std::ranges::any_of(graph.globals(), [](const GlobalName& global) { return global.name == kArrayWrapper; });
  }

  void look_again(const Place& place, std::uint64_t at, const Graph& stepped) {
    const Attempt attempt = run(place, at, limits_, RawArrays::not_known);
    if (attempt.graph.globals().size() <= stepped.globals().size() && !names_more(attempt.graph, stepped)) return;
    const Judgements judgements = judge(attempt.graph, scan_.trusted);
    std::set<std::uint64_t> known;
    for (const GlobalName& global : stepped.globals()) known.insert(global.offset);
    for (std::size_t i = 0; i < judgements.globals.size(); ++i) {
      const GlobalName global = attempt.graph.globals()[i];
      const bool is_used = judgements.globals[i].verdict != Verdict::known;
      if (known.contains(global.offset) || !is_used || !is_plausible(global.module) || !is_plausible(global.name))
        continue;
      find(place, global.offset, "the file can be read as a plain pickle, too");
      add(place, global, judgements.globals[i], judgements.standings[i]);
    }
  }

  static bool names_more(const Graph& graph, const Graph& other) {
    const auto last = [](const Graph& g) {
      return g.globals().empty() ? 0 : g.globals()[g.globals().size() - 1].offset;
    };
    return last(graph) != last(other);
  }

  static Attempt run(const Place& place, std::uint64_t at, const Limits& limits,
                     RawArrays arrays = RawArrays::stepped_over) {
    Attempt attempt{Graph(place.source), {}, false, 0};
    try {
      attempt.end = run_leniently(attempt.graph, at, place.last, limits, attempt.complaints, arrays).end;
      attempt.stopped = true;
    } catch (const Error& error) {
      if (error.code() != Errc::malformed && error.code() != Errc::limit && error.code() != Errc::unsupported) throw;
      attempt.complaints.push_back(error);
    }
    return attempt;
  }

  // Whether a pickle imports something by a name that is not in the file as it is. Nobody knows that behind too many
  // complaints.
  static bool computes_names(const Place& place, const Attempt& attempt) {
    constexpr std::string_view kExtAndStackGlobal = "\x82\x83\x84\x93";
    if (!names_something(attempt.graph)) return false;
    return attempt.complaints.size() >= kMostComplaints ||
           std::ranges::any_of(attempt.complaints, [&](const Error& complaint) {
             const std::uint64_t at = complaint.offset().value_or(place.last);
             char opcode = 0;
             if (at < place.last) place.source->read(at, std::as_writable_bytes(std::span(&opcode, 1)));
             return opcode != 0 && kExtAndStackGlobal.find(opcode) != std::string_view::npos;
           });
  }

  // Returns the strings that a loader would be given.
  std::vector<NodeId> report(const Place& place, const Attempt& attempt) {
    scan_.computes_names = scan_.computes_names || computes_names(place, attempt);
    Judgements judgements = judge(attempt.graph, scan_.trusted);
    for (std::size_t i = 0; i < judgements.globals.size(); ++i)
      add(place, attempt.graph.globals()[i], judgements.globals[i], judgements.standings[i]);
    for (const NamelessUse& use : judgements.nameless) find(place, use.offset, std::string(use.what));
    for (const Error& complaint : attempt.complaints) {
      find(place, complaint.offset().value_or(place.first), complaint.message(),
           complaint.code() == Errc::unsafe ? Verdict::dangerous : Verdict::unknown);
    }
    std::ranges::sort(judgements.loaded);
    const auto twice = std::unique(judgements.loaded.begin(), judgements.loaded.end());  // clang 14 has no other
    judgements.loaded.erase(twice, judgements.loaded.end());
    return std::move(judgements.loaded);
  }

  void add(const Place& place, const GlobalName& name, const Judgement& judgement, const Standing& standing) {
    const bool dangerous = judgement.verdict == Verdict::dangerous;
    if (scan_.globals.size() >= (dangerous ? kMostDangerous : kMostGlobals)) {
      if (!std::exchange(told_of_many_, true))
        find(place, name.offset, fmt::format("more than {} globals: not all are listed from here", kMostGlobals));
      return;
    }
    scan_.globals.push_back(
        {{shown(name.module), shown(name.name), name.offset, place.member, judgement.verdict, why(judgement, standing)},
         pickle::name(judgement.rule),
         pickle::name(judgement.use)});
  }

  static std::string shown(std::string_view name) {
    if (name.size() <= kLongestShownName) return std::string(name);
    return std::string(name.substr(0, kLongestShownName)) + "...";
  }

  void find(const Place& place, std::uint64_t offset, std::string what, Verdict verdict = Verdict::unknown) {
    if (scan_.findings.size() < kMostFindings || verdict == Verdict::dangerous) {
      scan_.findings.push_back({place.member, offset, std::move(what), verdict});
    } else if (scan_.findings.size() == kMostFindings) {
      scan_.findings.push_back({place.member, offset, "more findings, which are not listed"});
    }
  }

  // Reports bytes behind the pickles of the file or member itself, since somebody may have added them; behind a pickle
  // in a string, any bytes may follow.
  void tell_trailing(const Place& place, std::uint64_t at) {
    if (place.depth == 0) find(place, at, fmt::format("{} bytes follow the last pickle", place.last - at));
  }

  // Looks for strings of a pickle that are pickles themselves. A node is looked at once, however often it is used.
  void look_inside(const Place& place, const Graph& graph, const std::vector<NodeId>& loaded) {
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (!may_hold_a_pickle(graph, id) || std::ranges::binary_search(loaded, id)) continue;
      if (!is_it_a_file(place, graph, id) && !is_it_a_pickle(place, graph, id)) try_readings(place, graph, id);
    }
  }

  static bool may_hold_a_pickle(const Graph& graph, NodeId id) {
    const Kind kind = graph.kind(id);
    return (kind == Kind::text || kind == Kind::bytes || kind == Kind::bytearray) &&
           graph.length(id) >= kShortestPickle;
  }

  // Whether a string is a file that holds others: torch.storage._load_from_bytes takes whatever torch.load takes. Text
  // stands for bytes: see from_latin1.
  bool is_it_a_file(const Place& place, const Graph& graph, NodeId id) {
    const Node& node = graph[id];
    const std::string far = node.is_far ? beginning_of(place, graph, id, kFileTestBytes) : std::string();
    const std::string_view first = node.is_far ? std::string_view(far) : graph.chars(id);
    if (!begins_like_a_file(first, is_file_)) return false;
    take_file(place, content_offset(graph, id).value_or(node.offset), content_of(place, graph, id), false);
    return true;
  }

  static std::string beginning_of(const Place& place, const Graph& graph, NodeId far, std::uint64_t most) {
    std::string first(static_cast<std::size_t>(std::min(graph.length(far), most)), '\0');
    place.source->read(graph[far].offset, std::as_writable_bytes(std::span(first)));
    return first;
  }

  // Text stands for bytes: see from_latin1.
  SourcePtr content_of(const Place& place, const Graph& graph, NodeId id) const {
    if (graph.kind(id) == Kind::text && graph.length(id) <= limits_.max_inflated_bytes) {
      const std::string text = graph.read_chars(id);
      return memory_of(place, from_latin1(text).value_or(text));
    }
    if (!graph[id].is_far) return memory_of(place, graph.chars(id));
    return io::section(place.source, graph[id].offset, graph.length(id), place.source->name());
  }

  void take_file(const Place& place, std::uint64_t offset, SourcePtr source, bool is_loaded) {
    scan_.files.push_back({std::move(source), fmt::format("{}@{}", place.member, offset), place.depth + 1, is_loaded});
  }

  // A string that a loader is given is loaded, whatever it looks like. If the caller knows files of other kinds, it
  // looks at the string as a file.
  void take_loaded(const Place& place, const Graph& graph, NodeId id) {
    const std::uint64_t offset = content_offset(graph, id).value_or(graph[id].offset);
    SourcePtr content = content_of(place, graph, id);
    if (is_file_ != nullptr) return take_file(place, offset, std::move(content), true);
    const std::uint64_t last = content->size_bytes();
    go_into(place, {std::move(content), 0, last, fmt::format("{}@{}", place.member, offset), place.depth + 1}, offset);
  }

  void go_into(const Place& outer, Place inner, std::uint64_t offset) {
    if (inner.depth <= limits_.max_archive_depth) return places_.push_back(std::move(inner));
    find(outer, offset, fmt::format("pickles inside each other, deeper than {}", limits_.max_archive_depth));
  }

  static SourcePtr memory_of(const Place& place, std::string_view bytes) {
    const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
    return memory_source({first, first + bytes.size()}, place.source->name());
  }

  // Whether a string is a pickle as it is. The bytes stay where they are in the file.
  bool is_it_a_pickle(const Place& place, const Graph& graph, NodeId id) {
    const bool far = graph[id].is_far;
    const std::string_view near = graph.chars(id);
    if (!far && !begins_with_proto(near) && !may_name_a_global(near)) return false;
    const auto content = content_offset(graph, id);
    if (!content) return try_copy(place, graph[id].offset, std::string(near));
    return take(place, *content, io::section(place.source, *content, graph.length(id), place.source->name()));
  }

  void try_readings(const Place& place, const Graph& graph, NodeId id) {
    std::string far;
    if (graph[id].is_far) {
      if (graph.length(id) > limits_.max_inflated_bytes || !begins_like_writing(place, graph, id)) return;
      far = graph.read_chars(id);
    }
    for (std::string& bytes : readings_of(graph[id].is_far ? far : graph.chars(id), is_file_)) {
      if (try_copy(place, content_offset(graph, id).value_or(graph[id].offset), std::move(bytes))) return;
    }
  }

  // Decides whether a large string is worth reading whole: the numbers of tensors do not look like letters for long.
  bool begins_like_writing(const Place& place, const Graph& graph, NodeId far) const {
    const std::string chars = beginning_of(place, graph, far, 2 * kFileTestBytes);
    if (std::ranges::all_of(std::string_view(chars).substr(0, 64), [](char c) { return c >= '\t' && c <= '~'; }))
      return true;
    const auto bytes = from_latin1(chars);
    return bytes && (begins_with_proto(*bytes) || begins_like_a_file(*bytes, is_file_));
  }

  bool try_copy(const Place& place, std::uint64_t offset, std::string bytes) {
    if (begins_like_a_file(bytes, is_file_)) {
      take_file(place, offset, memory_of(place, bytes), false);
      return true;
    }
    return take(place, offset, memory_of(place, bytes));
  }

  // Whether it is a pickle; then it is looked at later. Bytes that begin with PROTO must end well or name something.
  // Other bytes must do both, or harm whoever loads them: what Python does before a pickle breaks is done.
  bool take(const Place& place, std::uint64_t offset, SourcePtr source) {
    Place inner{std::move(source), 0, 0, fmt::format("{}@{}", place.member, offset), place.depth + 1};
    inner.last = inner.source->size_bytes();
    const bool proto = has_proto(inner, 0);
    const Attempt attempt = run(inner, 0, proto ? limits_ : guess_limits());
    if (proto && !attempt.complaints.empty() && attempt.complaints.back().code() == Errc::limit)
      find(place, offset, fmt::format("a string that begins like a pickle: {}", attempt.complaints.back().message()));
    if (!(proto ? is_new_pickle(attempt) : is_old_pickle(inner, attempt))) return false;
    if (attempt.stopped && attempt.end == inner.last && is_plain(attempt.graph)) return true;
    go_into(place, std::move(inner), offset);
    return true;
  }

  static bool ends_well(const Attempt& attempt) { return attempt.stopped && attempt.complaints.empty(); }

  static bool is_new_pickle(const Attempt& attempt) { return names_something(attempt.graph) || ends_well(attempt); }

  static bool is_old_pickle(const Place& place, const Attempt& attempt) {
    if (names_something(attempt.graph) && ends_well(attempt)) return true;
    return calls_something(attempt.graph) && (names_danger(attempt.graph) || computes_names(place, attempt));
  }

  static bool is_plain(const Graph& graph) {
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (may_hold_a_pickle(graph, id)) return false;
    }
    return graph.globals().empty();
  }

  const Limits& limits_;
  Scan& scan_;
  const FileTest is_file_;
  std::deque<Place> places_;
  bool told_of_many_ = false;
};

}  // namespace

// A name that chance makes of numbers is not a name of Python, or is the name of nothing.
bool Scan::is_telling() const {
  return computes_names || std::ranges::any_of(globals, [](const JudgedGlobal& global) {
           const bool says_something = global.verdict == Verdict::dangerous || global.rule == name(Rule::allowlist);
           return says_something && is_plausible(global.module) && is_plausible(global.name);
         });
}

void scan_pickles(const SourcePtr& source, std::uint64_t first, std::uint64_t last, const std::string& member,
                  const Limits& limits, Scan& scan, FileTest is_file) {
  Scanner(limits, scan, is_file).look_at({source, first, last, member, 0});
}

}  // namespace ballast::pickle
