#include "formats/torch/globals_check.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <set>
#include <string>

#include "core/text.hpp"
#include "formats/pickle/globals.hpp"

namespace ballast::torch {
namespace {

constexpr std::size_t kMostNamed = 5;

std::string full_name(const pickle::GlobalName& global) { return fmt::format("{}.{}", global.module, global.name); }

void note_inert(const std::set<std::string>& inert, Checkpoint& checkpoint) {
  if (inert.empty()) return;
  std::string names;
  std::size_t named = 0;
  for (const std::string& name : inert) {
    if (named == kMostNamed) break;
    names += (named++ == 0 ? "" : ", ") + name;
  }
  if (inert.size() > named) names += fmt::format(" and {} more", inert.size() - named);
  checkpoint.notes.push_back(
      {"",
       fmt::format("{} unknown to Ballast, kept as inert records: {}",
                   inert.size() == 1 ? "a class or function is" : "classes or functions are", names),
       Note::Kind::remark});
}

}  // namespace

void check_globals(const pickle::Graph& graph, Safety safety, const std::string& member, Checkpoint& checkpoint) {
  std::set<std::string> inert, dangerous;
  for (const pickle::GlobalName& global : graph.globals()) {
    if (safety == Safety::strict && !pickle::is_allowed_by_weights_only(global.module, global.name)) {
      throw Error(Errc::unsafe, fmt::format("names {}, which weights_only does not allow", quote(full_name(global))))
          .at_byte(global.offset)
          .hint("Ballast never runs it; leave out --weights-only to open the file");
    }
    const pickle::Judgement judgement = pickle::judge(global.module, global.name);
    if (judgement.verdict == Verdict::inert) inert.insert(full_name(global));
    if (judgement.verdict != Verdict::dangerous || !dangerous.insert(full_name(global)).second) continue;
    checkpoint.dangerous.push_back({std::string(global.module), std::string(global.name), global.offset, member,
                                    judgement.verdict, judgement.why});
  }
  note_inert(inert, checkpoint);
}

}  // namespace ballast::torch
