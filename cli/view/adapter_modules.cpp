#include "adapter_modules.hpp"

#include <ballast/adapter_changes.hpp>

#include "../json_writer.hpp"

namespace ballast::cli {

std::string modules_document(const Session& session, const Subject& subject, const Progress& progress) {
  std::string text;
  Output out(&text);
  JsonWriter json(out, "ballast.view.modules/1");
  json.key("modules");
  json.begin_array(JsonWriter::Layout::lines);
  const Checkpoint* base = subject.base ? &*subject.base : nullptr;
  for (const AdapterChange& change : adapter_changes(*subject.adapter, base, progress, session.threads)) {
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
