#include "checkpoint/scan/scan_text.hpp"

#include <algorithm>
#include <array>

#include <ballast/error.hpp>
#include <ballast/json.hpp>

#include "core/text.hpp"

namespace ballast {
namespace {

using namespace std::string_view_literals;

// Chat templates do not need these words. Jinja's sandbox forbids them; programs without the sandbox run them.
constexpr std::array kSuspicious = {
    "__class__"sv,     "__base__"sv,   "__bases__"sv,  "__mro__"sv,   "__subclasses__"sv, "__globals__"sv,
    "__builtins__"sv,  "__import__"sv, "__init__"sv,   "__getattr"sv, "__dict__"sv,       "__code__"sv,
    "__reduce"sv,      "popen"sv,      "subprocess"sv, "os.system"sv, "eval("sv,          "exec("sv,
    "import_module"sv, "|attr("sv,     "| attr("sv,    "|attr ("sv,   "| attr ("sv,       "_TemplateReference__"sv,
    "\\x5f\\x5f"sv,    "cycler."sv,    "joiner."sv,    "lipsum."sv,
};

constexpr std::string_view kAutoMap = "auto_map", kTemplate = "chat_template", kClassName = "class_name";

bool has_word(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

// The class of a Lambda layer, and the class of a function that is stored as byte code.
bool is_lambda(std::string_view class_name) { return class_name == "Lambda" || class_name == "__lambda__"; }

void look_at_member(const Json::Member& member, std::vector<TextFinding>& findings) {
  const auto& [key, value] = member;
  if (key == kAutoMap && value.is_object() && !value.members().empty()) {
    const Json& first = value.members().front().second;
    const std::string code = first.is_text() ? first.text() : to_string(first);
    findings.push_back(
        {"\"auto_map\" names Python code that a loader may fetch and run (" + quote(code) + "): not looked into",
         Verdict::unknown});
  } else if (key == kClassName && value.is_text() && is_lambda(value.text())) {
    findings.push_back({"a Lambda layer, whose Python code runs when the model is loaded", Verdict::dangerous});
  } else if (key == kTemplate || key == "template") {
    if (!value.is_text()) return;
    for (TextFinding& finding : look_into_template(value.text(), key)) findings.push_back(std::move(finding));
  }
}

}  // namespace

std::vector<TextFinding> look_into_json(std::string_view text) {
  std::vector<TextFinding> findings;
  const bool may_matter = has_word(text, "\\u") || has_word(text, kAutoMap) || has_word(text, kTemplate) ||
                          has_word(text, kClassName) || has_word(text, "template");
  if (!may_matter) return findings;
  Json document;
  try {
    document = Json::parse(text);
  } catch (const Error& error) {
    return {{"JSON that cannot be read (" + error.message() + "): not looked into", Verdict::unknown}};
  }
  std::vector<const Json*> left{&document};
  while (!left.empty()) {
    const Json& json = *left.back();
    left.pop_back();
    if (json.is_list()) {
      for (const Json& item : json.list()) left.push_back(&item);
    } else if (json.is_object()) {
      for (const Json::Member& member : json.members()) {
        look_at_member(member, findings);
        left.push_back(&member.second);
      }
    }
  }
  return findings;
}

std::vector<TextFinding> look_into_template(std::string_view text, std::string_view name) {
  const auto found = std::ranges::find_if(kSuspicious, [&](std::string_view word) { return has_word(text, word); });
  if (found == kSuspicious.end()) return {};
  return {{std::string(name) + " reaches from a value to Python itself (" + quote(*found) +
               "): whoever renders it without a sandbox runs its code",
           Verdict::dangerous}};
}

std::vector<TextFinding> look_into_script(std::string_view text) {
  for (const std::string_view word : {"torch.save("sv, "torch.from_file("sv, "aten.save("sv, "aten.from_file("sv}) {
    if (has_word(text, word))
      return {{"TorchScript code that opens or writes files (" + quote(word) + ")", Verdict::dangerous}};
  }
  return {};
}

bool has_lambda_layer(std::string_view bytes) {
  return has_word(bytes, R"("class_name": "Lambda")") || has_word(bytes, R"("class_name":"Lambda")");
}

}  // namespace ballast
