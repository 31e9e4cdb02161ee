// The data at the top of a README.md: whatever the text says, it gives an object, or an Error that says in which line
// it is wrong. What is found out from it about a model are texts that UTF-8 can hold.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <ballast/error.hpp>

#include "core/text.hpp"
#include "llamacpp/about/authorship.hpp"
#include "llamacpp/about/model_card.hpp"

namespace {

using ballast::Errc;
using ballast::Error;
using ballast::Json;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void require_utf8(const Json& value) {
  if (value.is_text()) {
    require(ballast::valid_utf8_prefix(value.text()) == value.text().size(), "a text that is not UTF-8");
  } else if (value.is_list()) {
    for (const Json& item : value.list()) require_utf8(item);
  } else if (value.is_object()) {
    for (const auto& [key, member] : value.members()) {
      require_utf8(Json(key));
      require_utf8(member);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const Json card = ballast::llamacpp::parse_model_card(text);
    require(card.is_object(), "a card that is not an object");
    require_utf8(card);
    const auto known = ballast::llamacpp::find_authorship(card, Json(Json::Members()), "Model-7B", 7'000'000'000);
    require_utf8(known.name);
    for (const Json& source : known.base_models.value_or(std::vector<Json>())) {
      require(source.is_object(), "a base model that is not an object");
      require_utf8(source);
    }
  } catch (const Error& error) {
    require(error.code() == Errc::malformed || error.code() == Errc::unsupported || error.code() == Errc::limit,
            "an odd kind of error");
    require(!error.message().empty() && error.message().size() < 2000, "a message that nobody would read");
  }
  return 0;
}
