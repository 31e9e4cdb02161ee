#include "formats/pickle/scan.hpp"

#include <algorithm>
#include <deque>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "formats/pickle/globals.hpp"
#include "formats/pickle/hidden.hpp"
#include "formats/pickle/machine.hpp"

namespace ballast::pickle {
namespace {

// What is told about one place, so that a hostile file cannot make a report that is larger than itself by far.
constexpr std::size_t kMostGlobals = 100'000;  // dangerous ones are told beyond that
constexpr std::size_t kMostDangerous = 200'000;
constexpr std::size_t kMostFindings = 1'000;
constexpr std::size_t kMostPickles = 1'000'000;  // one after the other
constexpr std::size_t kLongestShownName = 512;

constexpr std::uint64_t kShortestPickle = 4;  // that does anything

// Bytes without PROTO are tried on the chance that they are an old pickle; those that are one are small.
constexpr std::uint64_t kMostGuessedNodes = 1'000'000;

// A range of bytes to be looked at.
struct Place {
  io::ByteSourcePtr source;
  std::uint64_t first, last;
  std::string member;
  std::uint64_t depth;  // 0 is what the caller asked about
};

// One pickle that was run as far as it went.
struct Attempt {
  Graph graph;
  std::vector<Error> complaints;
  bool stopped = false;  // it came to STOP, at `end`
  std::uint64_t end = 0;
};

// An identifier with dots, as modules and names are: what chance makes of raw bytes is none.
bool is_plausible(std::string_view name) {
  return !name.empty() && name.size() <= kLongestShownName && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '<' || c == '>' || static_cast<unsigned char>(c) >= 0x80;
  });
}

bool names_something(const Graph& graph) {
  return std::ranges::any_of(graph.globals(),
                             [](const GlobalName& g) { return is_plausible(g.module) && is_plausible(g.name); });
}

class Scanner {
 public:
  Scanner(const Limits& limits, Scan& scan) : limits_(limits), scan_(scan) {}

  void look_at(Place place) {
    places_.push_back(std::move(place));
    while (!places_.empty()) {
      const Place next = std::move(places_.front());
      places_.pop_front();
      pickles_of(next);
    }
  }

 private:
  // One pickle after the other. The first one counts whatever it is; what follows a STOP may be raw data.
  void pickles_of(const Place& place) {
    std::uint64_t at = place.first;
    for (std::size_t count = 0; at < place.last; ++count) {
      if (count == kMostPickles)
        return find(place, at, fmt::format("more than {} pickles, one after the other", count));
      const bool guess = count != 0 && !has_proto(place, at);
      const Attempt attempt = run(place, at, guess ? guess_limits() : limits_);
      if (count != 0 && !is_pickle(attempt, !guess)) return tell_trailing(place, at);
      report(place, attempt);
      look_inside(place, attempt.graph);
      if (!attempt.stopped) return;
      at = attempt.end;
    }
  }

  // Raw data is no instructions for long, and names nothing that could be a module's name.
  static bool is_pickle(const Attempt& attempt, bool proto) {
    return names_something(attempt.graph) || (attempt.stopped && (proto || attempt.complaints.empty()));
  }

  static bool has_proto(const Place& place, std::uint64_t at) {
    char beginning[3] = {};
    if (place.last - at < sizeof beginning) return false;
    place.source->read_at(at, std::as_writable_bytes(std::span(beginning)));
    return begins_with_proto({beginning, sizeof beginning});
  }

  Limits guess_limits() const {
    Limits limits = limits_;
    limits.max_pickle_nodes = std::min(limits.max_pickle_nodes, kMostGuessedNodes);
    return limits;
  }

  static Attempt run(const Place& place, std::uint64_t at, const Limits& limits) {
    Attempt attempt{Graph(place.source), {}, false, 0};
    try {
      attempt.end = run_leniently(attempt.graph, at, place.last, limits, attempt.complaints).end;
      attempt.stopped = true;
    } catch (const Error& error) {
      if (error.code() != Errc::malformed && error.code() != Errc::limit && error.code() != Errc::unsupported) throw;
      attempt.complaints.push_back(error);
    }
    return attempt;
  }

  void report(const Place& place, const Attempt& attempt) {
    for (const GlobalName& global : attempt.graph.globals()) add(place, global);
    for (const Error& complaint : attempt.complaints)
      find(place, complaint.offset().value_or(place.first), complaint.message());
  }

  void add(const Place& place, const GlobalName& name) {
    const Judgement judgement = judge(name.module, name.name);
    const bool dangerous = judgement.verdict == Verdict::dangerous;
    if (scan_.globals.size() >= (dangerous ? kMostDangerous : kMostGlobals)) {
      if (!std::exchange(told_of_many_, true))
        find(place, name.offset, fmt::format("more than {} globals: not all are listed from here", kMostGlobals));
      return;
    }
    scan_.globals.push_back(
        {shown(name.module), shown(name.name), name.offset, place.member, judgement.verdict, judgement.why});
  }

  static std::string shown(std::string_view name) {
    if (name.size() <= kLongestShownName) return std::string(name);
    return std::string(name.substr(0, kLongestShownName)) + "...";
  }

  void find(const Place& place, std::uint64_t offset, std::string what) {
    if (scan_.findings.size() < kMostFindings) {
      scan_.findings.push_back({place.member, offset, std::move(what)});
    } else if (scan_.findings.size() == kMostFindings) {
      scan_.findings.push_back({place.member, offset, "more findings, which are not listed"});
    }
  }

  // Of the file or member itself, whose end somebody may have added to; a string in it may go on as it likes.
  void tell_trailing(const Place& place, std::uint64_t at) {
    if (place.depth == 0) find(place, at, fmt::format("{} bytes follow the last pickle", place.last - at));
  }

  // Strings of a pickle that are pickles themselves. A node is looked at once, however often it is used.
  void look_inside(const Place& place, const Graph& graph) {
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (may_hold_a_pickle(graph, id) && !is_it_a_pickle(place, graph, id)) try_readings(place, graph, id);
    }
  }

  static bool may_hold_a_pickle(const Graph& graph, NodeId id) {
    const Kind kind = graph.kind(id);
    return (kind == Kind::text || kind == Kind::bytes || kind == Kind::bytearray) &&
           graph.length(id) >= kShortestPickle;
  }

  // As it is. The bytes stay where they are in the file.
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
      if (graph.length(id) > limits_.max_inflated_bytes || !begins_like_writing(place, graph[id])) return;
      far = graph.read_chars(id);
    }
    for (std::string& bytes : readings_of(graph[id].is_far ? far : graph.chars(id))) {
      if (try_copy(place, content_offset(graph, id).value_or(graph[id].offset), std::move(bytes))) return;
    }
  }

  // Before a large string is read whole: numbers of tensors do not look like letters for long.
  static bool begins_like_writing(const Place& place, const Node& far) {
    char beginning[64];
    place.source->read_at(far.offset, std::as_writable_bytes(std::span(beginning)));
    const std::string_view chars(beginning, sizeof beginning);
    return chars.starts_with("\xC2\x80") || std::ranges::all_of(chars, [](char c) { return c >= '\t' && c <= '~'; });
  }

  bool try_copy(const Place& place, std::uint64_t offset, std::string bytes) {
    const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
    return take(place, offset, io::from_memory({first, first + bytes.size()}, place.source->name()));
  }

  // Whether it is a pickle; then it is looked at later. One that begins with PROTO must end well or name something, one
  // that does not both.
  bool take(const Place& place, std::uint64_t offset, io::ByteSourcePtr source) {
    Place inner{std::move(source), 0, 0, fmt::format("{}@{}", place.member, offset), place.depth + 1};
    inner.last = inner.source->size_bytes();
    const bool proto = has_proto(inner, 0);
    const Attempt attempt = run(inner, 0, proto ? limits_ : guess_limits());
    const bool names = names_something(attempt.graph), ends_well = attempt.stopped && attempt.complaints.empty();
    if (proto && !attempt.complaints.empty() && attempt.complaints.back().code() == Errc::limit)
      find(place, offset, fmt::format("a string that begins like a pickle: {}", attempt.complaints.back().message()));
    if (proto ? !names && !ends_well : !names || !ends_well) return false;
    if (attempt.stopped && attempt.end == inner.last && is_plain(attempt.graph)) return true;
    if (inner.depth > limits_.max_archive_depth) {
      find(place, offset, fmt::format("pickles inside each other, deeper than {}", limits_.max_archive_depth));
    } else {
      places_.push_back(std::move(inner));
    }
    return true;
  }

  static bool is_plain(const Graph& graph) {
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (may_hold_a_pickle(graph, id)) return false;
    }
    return graph.globals().empty();
  }

  const Limits& limits_;
  Scan& scan_;
  std::deque<Place> places_;
  bool told_of_many_ = false;
};

}  // namespace

void scan_pickles(const io::ByteSourcePtr& source, std::uint64_t first, std::uint64_t last, const std::string& member,
                  const Limits& limits, Scan& scan) {
  Scanner(limits, scan).look_at({source, first, last, member, 0});
}

}  // namespace ballast::pickle
