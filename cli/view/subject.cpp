#include "subject.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <ballast/diff.hpp>
#include <ballast/error.hpp>
#include <ballast/merge.hpp>
#include <ballast/recipe.hpp>
#include <ballast/scan.hpp>

#include "../diff_report.hpp"
#include "../host.hpp"
#include "../verbs/adapter_verbs.hpp"
#include "../verbs/scan_documents.hpp"

namespace ballast::cli {
namespace {

// Whether a name says that the file is an adapter: loading it as one opens it again, so it is not simply tried.
bool has_adapter_names(const Checkpoint& checkpoint) {
  return std::ranges::any_of(checkpoint, [](const StateDict::Entry& entry) {
    return std::ranges::any_of(merge_rules(), [&](const MergeRule& rule) {
      return !rule.prefix.empty() && entry.name.find(rule.prefix) != std::string_view::npos;
    });
  });
}

std::optional<Adapter> adapter_of(const Session& session, const Subject& subject) {
  if (subject.targets[0] == "-" || !has_adapter_names(subject.originals[0])) return std::nullopt;
  try {
    return open_adapter(session, session.target_in(subject.targets[0]), subject.base ? &*subject.base : nullptr, {});
  } catch (const Error& error) {
    session.note(std::string("not shown as an adapter: ") + error.what());
    return std::nullopt;
  }
}

Checkpoint opened(Session& session, const std::string& target) {
  Checkpoint checkpoint = open_data(session, target);
  say_notes(session, checkpoint);
  return checkpoint;
}

}  // namespace

Subject open_subject(Session& session, const std::vector<std::string>& targets, const std::string& base) {
  Subject subject;
  subject.targets = targets;
  for (std::string& target : subject.targets) {
    subject.originals.push_back(opened(session, target));
    // A program calls what it has open already in a way that means nothing to people.
    if (session.host != nullptr && session.host->targets.contains(target)) target = subject.originals.back().target;
  }
  if (!base.empty()) subject.base = opened(session, base);
  if (targets.size() == 2) {
    subject.aligned = align(subject.originals[0], subject.originals[1], {.open = session.open_options()});
    say_notes(session, subject.aligned->notes);
    subject.sides = {subject.aligned->a, subject.aligned->b};
  } else {
    subject.sides = subject.originals;
  }
  for (Checkpoint& side : subject.sides) side = select_tensors(session, std::move(side));
  if (targets.size() == 1) subject.adapter = adapter_of(session, subject);
  if (!base.empty() && !subject.adapter)
    throw Error(Errc::invalid_argument, "a base is for an adapter, and the target is none")
        .hint("two checkpoints are compared by naming both");
  return subject;
}

std::string info_document(const Subject& subject, std::size_t side) {
  Host host;
  host.say = [](std::string_view) {};
  host.targets.emplace(subject.targets[side], subject.originals[side]);
  return run_for(host, {"info", "--json", "--", subject.targets[side]}).out;
}

std::string scan_document(const Session& session, const std::string& target, const std::string& shown) {
  std::string text;
  Output out(&text);
  write_scan_json(out, {session.target_in(shown)}, scan(session.target_in(target), {session.open_options(), {}}));
  out.flush();
  return text;
}

std::string diff_document(const Session& session, const Subject& subject, const Progress& progress) {
  std::string text;
  Session own;
  own.json = true;
  own.out = Output(&text);
  const Aligned sides{subject.sides[0], subject.sides[1], {}, subject.aligned->style, subject.aligned->prefix};
  const DiffView view{subject.targets[0], subject.targets[1], {}, {}, &sides};
  write_diff_json(own, view,
                  diff(sides.a, sides.b, {.threads = session.threads, .progress = progress, .limits = session.limits}));
  own.out.flush();
  return text;
}

std::string adapter_document(const Subject& subject) {
  std::string text;
  Session own;
  own.json = true;
  own.out = Output(&text);
  show_info(own, *subject.adapter);
  own.out.flush();
  return text;
}

}  // namespace ballast::cli
