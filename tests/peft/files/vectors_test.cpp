// load, get and set against the files that PEFT 0.20.1.dev0 saved of 85 models (tests/vectors/peft).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>

#include <ballast/adapter.hpp>
#include <ballast/load.hpp>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/json_file.hpp"
#include "support/tensor_values.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVectors = "peft";

// Prompt encoders with layers of their own: files hold the output of those layers, and torch adds in another order.
const std::vector<std::string> kEncoders = {"p_tuning", "p_tuning_lstm", "prefix_tuning_projection"};

bool has_encoder(const std::string& name) { return std::ranges::find(kEncoders, name) != kEncoders.end(); }

struct Case {
  std::string name;
  fs::path folder;
  std::vector<std::pair<std::string, fs::path>> adapters;  // name in the state dict, folder; in the order of addition

  std::string path(const char* file) const { return (folder / file).string(); }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& entry : fs::directory_iterator(test::vector_path(kVectors))) {
    Case c{entry.path().filename().string(), entry.path(), {}};
    if (!fs::is_regular_file(c.path("adapted_state_dict.safetensors"))) continue;
    if (c.name == "xlora") c.adapters = {{"0", c.folder / "expert_a"}, {"1", c.folder / "expert_b"}};
    // For that case, adapter/ has a plain LoRA, made of residual_adapter/ and its initial state; the state dict has the
    // residual.
    c.adapters.emplace_back("default", c.folder / (c.name == "lora_pissa_converted" ? "residual_adapter" : "adapter"));
    for (const auto& other : fs::directory_iterator(c.folder / "adapter")) {
      if (other.is_directory() && c.name != "xlora")
        c.adapters.emplace_back(other.path().filename().string(), other.path());
    }
    all.push_back(c);
  }
  std::ranges::sort(all, {}, &Case::name);
  return all;
}

bool are_near(const Tensor& a, const Tensor& b) {
  const std::string x = test::text_of(a.to(DType::f32)), y = test::text_of(b.to(DType::f32));
  for (std::size_t i = 0; i < x.size(); i += 4) {
    float p = 0, q = 0;
    std::memcpy(&p, x.data() + i, 4);
    std::memcpy(&q, y.data() + i, 4);
    if (!(std::abs(p - q) <= 1e-6f * std::max(1.0f, std::abs(q)))) return false;
  }
  return true;
}

enum class Compare { bytes, values, shapes };

// Returns the differences, a line each; empty if there is none.
std::string difference(const StateDict& got, const StateDict& wanted, Compare compare = Compare::bytes) {
  std::string lines;
  for (const auto& [name, tensor] : wanted) {
    const Tensor* mine = got.find(name);
    if (mine == nullptr) {
      lines += "  missing " + std::string(name) + "\n";
    } else if (mine->dtype() != tensor.dtype() || mine->shape() != tensor.shape()) {
      lines += "  shape of " + std::string(name) + ": " + to_string(mine->shape()) + "\n";
    } else if (compare == Compare::bytes ? test::text_of(*mine) != test::text_of(tensor)
                                         : compare == Compare::values && !are_near(*mine, tensor)) {
      lines += "  values of " + std::string(name) + "\n";
    }
  }
  for (const auto& [name, tensor] : got) {
    if (!wanted.contains(name)) lines += "  extra " + std::string(name) + "\n";
  }
  return lines;
}

StateDict without(const StateDict& state, const std::function<bool(std::string_view)>& left_out) {
  StateDict rest;
  for (const auto& [name, tensor] : state) {
    if (!left_out(name)) rest.insert(name, tensor);
  }
  return rest;
}

// The adapter as PEFT would have written it if PEFT had not mixed up tensors of adapters whose name is also a part of
// other names.
Adapter adapter_of(const Case& c, const std::string& name, const fs::path& folder) {
  Adapter adapter = load_adapter(folder.string());
  const StateDict state = load(c.path("adapted_state_dict.safetensors"));
  const Json meta = test::read_json(c.folder / "meta.json");
  if (c.name == "xlora" && name == "default") {  // its experts are called "0" and "1", like layers of the classifier
    for (const std::string end : {"bias", "weight"}) {
      const std::string lost = "base_model.internal_xlora_classifier.layers.0." + end;
      adapter.tensors.insert(lost, state.at(lost));
    }
  }
  const Json* wrong = meta.find("peft_wrong_files");
  wrong = wrong == nullptr ? nullptr : wrong->find(name);
  if (wrong == nullptr) return adapter;
  for (const Json& lost : wrong->at("not_written").list()) {
    std::string in_state = lost.text();
    in_state.insert(in_state.rfind('.'), "." + name);
    adapter.tensors.insert(lost.text(), state.at(in_state));
  }
  adapter.tensors = without(adapter.tensors, [&](std::string_view tensor) {
    return std::ranges::find(wrong->at("extra").list(), Json(tensor)) != wrong->at("extra").list().end();
  });
  return adapter;
}

// No configuration says what PEFT was told to leave out when it saved the adapter.
GetAdapterOptions options_of(const Case& c) {
  const Json meta = test::read_json(c.folder / "meta.json");
  const Json* options = meta.find("save_pretrained_options");
  const Json* saves = options == nullptr ? nullptr : options->find("save_embedding_layers");
  return {.embeddings = saves != nullptr && saves->is_bool() ? SaveEmbeddings::never : SaveEmbeddings::automatic};
}

TEST(PeftVectors, GetGivesWhatPeftSaved) {
  EXPECT_EQ(cases().size(), 85u);
  for (const Case& c : cases()) {
    const StateDict state = load(c.path("adapted_state_dict.safetensors"));
    for (const auto& [name, folder] : c.adapters) {
      if (c.name == "xlora" && name != "default") continue;  // saved under other names before X-LoRA used them
      const Adapter wanted = adapter_of(c, name, folder);
      const StateDict got = get_adapter_state_dict(state, wanted.config, name, options_of(c));
      const Compare compare = has_encoder(c.name) ? Compare::values : Compare::bytes;
      EXPECT_EQ(difference(got, wanted.tensors, compare), "") << c.name << ", adapter " << name;
    }
  }
}

StateDict adapted(const Case& c) {
  StateDict state = load(c.path("base.safetensors"));
  for (const auto& [name, folder] : c.adapters) {
    const Adapter adapter = adapter_of(c, name, folder);
    SetAdapterResult set = set_adapter_state_dict(state, adapter.tensors, adapter.config, name);
    EXPECT_EQ(set.missing, std::vector<std::string>()) << c.name;
    EXPECT_EQ(set.unexpected, std::vector<std::string>()) << c.name;
    EXPECT_EQ(set.mismatched, std::vector<std::string>()) << c.name;
    state = std::move(set.state);
  }
  return state;
}

TEST(PeftVectors, SetGivesTheAdaptedModel) {
  for (const Case& c : cases()) {
    StateDict got = adapted(c), wanted = load(c.path("adapted_state_dict.safetensors"));
    Compare compare = Compare::bytes;
    const auto leave_out = [&](const std::function<bool(std::string_view)>& left_out) {
      got = without(got, left_out);
      wanted = without(wanted, left_out);
    };
    // Files do not hold everything, so some tensors cannot come back: pruned ranks, the encoder of a prompt, logits
    // that are not the largest, and the base that PiSSA has taken its matrices from.
    if (c.name == "adalora_rank_pattern")
      leave_out([](std::string_view name) { return name.find(".lora_") != std::string_view::npos; });
    if (has_encoder(c.name)) leave_out([](std::string_view name) { return name.starts_with("prompt_encoder."); });
    if (c.name == "vblora_topk_only" || c.name == "lora_pissa_converted") compare = Compare::shapes;
    EXPECT_EQ(difference(got, wanted, compare), "") << c.name;
  }
}

TEST(PeftVectors, GetGivesBackTheTensorsThatSetHasPut) {
  for (const Case& c : cases()) {
    const StateDict state = adapted(c);
    for (const auto& [name, folder] : c.adapters) {
      if (c.name == "xlora" && name != "default") continue;
      const Adapter wanted = adapter_of(c, name, folder);
      const Compare compare = c.name == "vblora_topk_only" ? Compare::values : Compare::bytes;
      EXPECT_EQ(difference(get_adapter_state_dict(state, wanted.config, name, options_of(c)), wanted.tensors, compare),
                "")
          << c.name << ", adapter " << name;
    }
  }
}

TEST(PeftVectors, ConfigurationsAreWrittenAsPeftWritesThem) {
  for (const Case& c : cases()) {
    for (const auto& [name, folder] : c.adapters) {
      const std::string text = test::read_whole_file(folder / "adapter_config.json");
      EXPECT_EQ(to_string(AdapterConfig::parse(text)), text) << c.name;
    }
  }
}

std::vector<std::string> texts(const Json* list) {
  std::vector<std::string> all;
  if (list == nullptr) return all;
  for (const Json& item : list->list()) all.push_back(item.text());
  return all;
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::ranges::sort(names);
  return names;
}

TEST(PeftVectors, ReportsAreThoseOfPeft) {
  const fs::path folder = test::vector_path("peft/loading_reports");
  const AdapterConfig config = load_adapter((folder.parent_path() / "lora_plain/adapter").string()).config;
  const StateDict model = load((folder / "model.safetensors").string());
  const Json expected = test::read_json(folder / "expected.json");
  for (const Json& report : expected.at("reports").list()) {
    const std::string& name = report.at("case").text();
    const StateDict adapter = load((folder / report.at("adapter_file").text()).string());
    const SetAdapterOptions options{.ignore_mismatched_sizes =
                                        report.at("options").find("ignore_mismatched_sizes") != nullptr};
    if (report.find("error") != nullptr) {
      EXPECT_ERROR(set_adapter_state_dict(model, adapter, config, "default", options), Errc::mismatch,
                   "tensor \"base_model.model.model.layers.0.self_attn.q_proj.lora_A.default.weight\" has the shape "
                   "[8, 16] in the adapter, but the model needs [4, 16]");
      continue;
    }
    const SetAdapterResult set = set_adapter_state_dict(model, adapter, config, "default", options);
    if (name == "no_prefix") {  // PEFT cannot read this file, and Ballast can
      EXPECT_EQ(set.missing.size() + set.unexpected.size(), 0u);
      continue;
    }
    EXPECT_EQ(set.missing, texts(report.find("missing_adapter_keys"))) << name;
    EXPECT_EQ(sorted(set.unexpected), sorted(texts(report.find("unexpected_keys")))) << name;
    EXPECT_EQ(set.mismatched.size(), options.ignore_mismatched_sizes ? 1u : 0u) << name;
    const Json* after = report.find("state_dict_after");
    if (after == nullptr) continue;
    EXPECT_EQ(difference(set.state, load((folder / after->text()).string())), "") << name;
  }
}

}  // namespace
}  // namespace ballast
