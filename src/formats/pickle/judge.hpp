// The only judge of what a pickle does with the names that it names. scan, the refusal to convert, and the documents
// take their verdicts from here.
//
// A name is judged for each of its uses, with what it is given: torch.storage._load_from_bytes is known with bytes that
// stand in the file, and dangerous with computed ones. The weakest verdict counts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/global.hpp>

#include "formats/pickle/globals.hpp"
#include "formats/pickle/graph.hpp"

namespace ballast::pickle {

enum class Use : std::uint8_t { named, handed_over, called, built, given_state, given_items, given_pairs };
std::string_view name(Use use) noexcept;  // "named", "handed over", "called", ...

struct Judgement {
  Verdict verdict = Verdict::known;
  Use use = Use::named;
  Rule rule = Rule::none;
};
std::string_view name(Rule rule) noexcept;  // "allowlist", "only named", "trusted", "denylist", "last word", ...

// A mention of a global, as it is reported.
struct JudgedGlobal : Global {
  std::string_view rule, use;
};

// A use of something that has no name.
struct NamelessUse {
  std::uint64_t offset = 0;
  std::string_view what;
};

struct Judgements {
  std::vector<Judgement> globals;   // one for each of Graph::globals()
  std::vector<Standing> standings;  // what the tables say about each of them
  std::vector<NamelessUse> nameless;
  std::vector<NodeId> loaded;  // text and bytes that a loader is given as they are: their content counts
};

// Why the verdict is what it is: "runs programs or shell commands", "would be called"; empty for what is only named.
std::string_view why(const Judgement& judgement, const Standing& standing) noexcept;

// `trusted` are patterns over "module.name" (see glob_match). They make unknown names known, and never dangerous ones.
Judgements judge(const Graph& graph, std::span<const std::string> trusted = {});

}  // namespace ballast::pickle
