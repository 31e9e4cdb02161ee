#include "sarif.hpp"

#include <fmt/format.h>

#include "json_writer.hpp"

namespace ballast::cli {
namespace {

using Layout = JsonWriter::Layout;

// A path or an address as a reference to a URI. A path may have any byte; an address is one already.
std::string uri_of(std::string_view file) {
  constexpr std::string_view kPlain = "-._~/!$&'()*+,;=@", kOfAddresses = ":%?#[]";
  const bool is_address = file.find("://") != file.npos;
  std::string uri;
  for (const char c : file) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          kPlain.find(c) != kPlain.npos || (is_address && kOfAddresses.find(c) != kOfAddresses.npos);
    uri += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

void write_text_member(JsonWriter& json, std::string_view key, std::string_view text) {
  json.key(key);
  json.begin_object();
  json.field("text", text);
  json.end();
}

void write_result(JsonWriter& json, const SarifResult& result) {
  json.begin_object();
  json.field("ruleId", result.rule);
  json.field("level", result.level);
  write_text_member(json, "message", result.message);
  json.key("locations");
  json.begin_array();
  json.begin_object();
  json.key("physicalLocation");
  json.begin_object();
  json.key("artifactLocation");
  json.begin_object();
  json.field("uri", uri_of(result.file));
  json.end();
  if (result.offset) {
    json.key("region");
    json.begin_object();
    json.field("byteOffset", *result.offset);
    json.end();
  }
  json.end();
  json.end();
  json.end();
  json.end();
}

}  // namespace

void write_sarif(Output& out, std::string_view tool, std::span<const SarifRule> rules,
                 std::span<const SarifResult> results) {
  JsonWriter json(out);
  json.begin_object(Layout::lines);
  json.field("$schema", "https://json.schemastore.org/sarif-2.1.0.json");
  json.field("version", "2.1.0");
  json.key("runs");
  json.begin_array();
  json.begin_object(Layout::lines);
  json.key("tool");
  json.begin_object();
  json.key("driver");
  json.begin_object();
  json.field("name", tool);
  json.key("rules");
  json.begin_array();
  for (const SarifRule& rule : rules) {
    json.begin_object();
    json.field("id", rule.id);
    write_text_member(json, "shortDescription", rule.text);
    json.end();
  }
  json.end();
  json.end();
  json.end();
  json.key("results");
  json.begin_array(Layout::lines);
  for (const SarifResult& result : results) write_result(json, result);
  json.end();
  json.finish();
}

}  // namespace ballast::cli
