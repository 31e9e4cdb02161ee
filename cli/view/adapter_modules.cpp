#include "adapter_modules.hpp"

#include <vector>

#include <ballast/adapter_changes.hpp>
#include <ballast/error.hpp>

#include "../json_writer.hpp"

namespace ballast::cli {

namespace {

std::vector<AdapterChange> changes_of(const Session& session, const Subject& subject, const Progress& progress) try {
  return adapter_changes(*subject.adapter, subject.base ? &*subject.base : nullptr, progress, session.threads);
} catch (const Error& error) {
  // Without the hint: it is of the verbs that merge and convert, and names options that are theirs.
  throw Error(error.code(), error.what());
}

}  // namespace

std::string modules_document(const Session& session, const Subject& subject, const Progress& progress) {
  std::string text;
  Output out(&text);
  JsonWriter json(out, "ballast.view.modules/1");
  json.key("modules");
  json.begin_array(JsonWriter::Layout::lines);
  for (const AdapterChange& change : changes_of(session, subject, progress)) {
    json.begin_object();
    json.field("name", change.module);
    json.field("rank", change.rank);
    json.field("alpha", change.alpha);
    json.field("scaling", change.scaling);
    json.field("norm", change.norm);
    change.base_norm ? json.field("base_norm", *change.base_norm) : json.field("base_norm", nullptr);
    const auto share = change.share();
    share ? json.field("share", *share) : json.field("share", nullptr);
    json.field("effective_rank", change.effective_rank);
    json.end();
  }
  json.end();
  json.finish();
  out.flush();
  return text;
}

}  // namespace ballast::cli
