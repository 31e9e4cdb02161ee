#include "formats/torch/globals_check.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <set>
#include <string>

#include "core/remedy.hpp"
#include "core/text.hpp"
#include "formats/pickle/judge.hpp"

namespace ballast::torch {
namespace {

constexpr std::size_t kMostNamed = 5;

std::string full_name(const pickle::GlobalName& global) { return fmt::format("{}.{}", global.module, global.name); }

void note_unknown(const std::set<std::string>& unknown, Checkpoint& checkpoint) {
  if (unknown.empty()) return;
  std::string names;
  std::size_t named = 0;
  for (const std::string& name : unknown) {
    if (named == kMostNamed) break;
    names += (named++ == 0 ? "" : ", ") + name;
  }
  if (unknown.size() > named) names += fmt::format(" and {} more", unknown.size() - named);
  checkpoint.notes.push_back(
      {"",
       fmt::format("{} unknown to Ballast, and kept as data that nothing runs: {}",
                   unknown.size() == 1 ? "a class or function is" : "classes or functions are", names),
       Note::Kind::remark});
}

}  // namespace

void check_globals(const pickle::Graph& graph, Safety safety, const std::string& member, Checkpoint& checkpoint) {
  std::set<std::string> unknown, dangerous;
  const pickle::Judgements judgements = pickle::judge(graph);
  std::size_t number = 0;
  for (const pickle::GlobalName& global : graph.globals()) {
    const pickle::Judgement& judgement = judgements.globals[number];
    const pickle::Standing& standing = judgements.standings[number++];
    if (safety == Safety::strict && !pickle::is_allowed_by_weights_only(global.module, global.name)) {
      throw Error(Errc::unsafe, fmt::format("names {}, which weights_only does not allow", quote(full_name(global))))
          .at_byte(global.offset)
          .hint("Ballast never runs it; leave out " + mention(Remedy::weights_only) + " to open the file");
    }
    if (judgement.verdict == Verdict::unknown) unknown.insert(full_name(global));
    if (judgement.verdict != Verdict::dangerous || !dangerous.insert(full_name(global)).second) continue;
    checkpoint.dangerous.push_back({std::string(global.module), std::string(global.name), global.offset, member,
                                    judgement.verdict, why(judgement, standing)});
  }
  note_unknown(unknown, checkpoint);
}

}  // namespace ballast::torch
