#include "refusal.hpp"

#include "../json_writer.hpp"
#include "../remedies.hpp"

namespace ballast::cli {

std::string refusal_document(const Error& error) {
  std::string text;
  Output out(&text);
  JsonWriter json(out);
  json.begin_object();
  json.field("error", error.what());
  error.hint().empty() ? json.field("hint", nullptr) : json.field("hint", worded(error.hint()));
  json.finish();
  out.flush();
  return text;
}

}  // namespace ballast::cli
