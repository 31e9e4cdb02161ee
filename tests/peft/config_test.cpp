#include <gtest/gtest.h>

#include "support/adapter_parts.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

using test::config_of;

TEST(AdapterConfig, IsWrittenAsPeftWritesItWithUnknownKeys) {
  const auto config = config_of(R"({"z": {"b": 1, "a": [0.0001, 1e-05]}, "peft_type": "LORA", "new": "ü𝄞"})");
  EXPECT_EQ(to_string(config), R"({
  "new": "\u00fc\ud834\udd1e",
  "peft_type": "LORA",
  "z": {
    "a": [
      0.0001,
      1e-05
    ],
    "b": 1
  }
})");
}

TEST(AdapterConfig, ScalesByTheFirstPatternThatMatches) {
  const auto config = config_of(R"({"r": 4, "lora_alpha": 8, "rank_pattern": {"q_proj": 2, ".*\\.0\\..*down": 16},
                                    "alpha_pattern": {"^model.layers.0.q_proj": 1, "layers.0.q_proj": 3}})");
  EXPECT_EQ(lora_scaling(config, "model.layers.0.q_proj"), 0.5);
  EXPECT_EQ(lora_scaling(config, "x.model.layers.0.q_proj"), 1.5);
  EXPECT_EQ(lora_scaling(config, "model.layers.1.q_proj"), 4);
  EXPECT_EQ(lora_scaling(config, "model.layers.0.mlp.down"), 0.5);
  EXPECT_EQ(lora_scaling(config, "model.layers.1.xq_proj"), 2);
}

TEST(AdapterConfig, DividesByTheRootOfTheRankInRslora) {
  EXPECT_EQ(lora_scaling(config_of(R"({"r": 16, "lora_alpha": 8, "use_rslora": true})"), "q"), 2);
}

TEST(AdapterConfig, HasTheDefaultsOfPeft) { EXPECT_EQ(lora_scaling(config_of(R"({"r": null})"), "q"), 1); }

TEST(AdapterConfig, SaysWhatIsWrongWithIt) {
  EXPECT_ERROR(config_of("[]"), Errc::malformed, "must be a JSON object");
  EXPECT_ERROR(config_of("{}").peft_type(), Errc::malformed, "no \"peft_type\"");
  EXPECT_HINT(config_of(R"({"lora_alpha": NaN})"), "JSON has no NaN");
  EXPECT_ERROR(lora_scaling(config_of(R"({"r": 0})"), "q"), Errc::malformed,
               "the scaling of \"q\" is not a number: lora_alpha is 8 and r is 0");
  EXPECT_ERROR(lora_scaling(config_of(R"({"r": "4"})"), "q"), Errc::malformed, "\"4\" is no number");
  EXPECT_ERROR(lora_scaling(config_of(R"-({"alpha_pattern": {"(?=x)": 1}})-"), "q"), Errc::unsupported,
               "alpha_pattern");
}

}  // namespace
}  // namespace ballast
