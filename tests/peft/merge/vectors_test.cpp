// For every case of the reference vectors, merge() with peft_exact gives what PEFT's merge_and_unload() gave.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ballast/load.hpp>
#include <ballast/merge.hpp>
#include <ballast/open.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "support/json_file.hpp"
#include "support/tensor_values.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolder = "peft";

struct Case {
  std::string name;                   // the name of the folder
  std::string file;                   // what PEFT made: "merged.safetensors", "merged_all.safetensors"
  std::vector<std::string> adapters;  // subfolders of adapter/; "" is the default one

  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name << '/' << c.file; }
};

// "merged.safetensors" is of the default adapter, "merged_NAME.safetensors" of adapter/NAME, "merged_all" of all.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& folder : fs::directory_iterator(test::vector_path(kFolder))) {
    if (!folder.is_directory()) continue;
    std::vector<std::string> others;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      const std::string file = entry.path().filename().string();
      if (!file.starts_with("merged") || !file.ends_with(".safetensors")) continue;
      Case c{folder.path().filename().string(), file, {""}};
      if (const std::string stem = entry.path().stem().string(); stem != "merged") c.adapters = {stem.substr(7)};
      cases.push_back(c);
      if (c.adapters.front() != "all" && !c.adapters.front().empty()) others.push_back(c.adapters.front());
    }
    for (Case& c : cases) {
      if (c.name != folder.path().filename().string() || c.adapters.front() != "all") continue;
      c.adapters = {""};
      c.adapters.insert(c.adapters.end(), others.begin(), others.end());
    }
  }
  std::ranges::sort(cases, {}, [](const Case& c) { return c.name + c.file; });
  return cases;
}

// Repairs a file in which PEFT lost keys, or into which it put keys of another adapter.
void repair(const fs::path& folder, const std::string& name, Adapter& adapter) {
  const Json meta = test::read_json(folder / "meta.json");
  const Json* wrong = meta.find("peft_wrong_files");
  const Json* files = wrong == nullptr ? nullptr : wrong->find(name.empty() ? "default" : name);
  if (files == nullptr) return;
  const StateDict model = open((folder / "adapted_state_dict.safetensors").string()).tensors;
  StateDict tensors;
  const Json& extra = files->at("extra");
  for (const auto& [key, tensor] : adapter.tensors) {
    if (std::ranges::find(extra.list(), Json(key)) == extra.list().end()) tensors.insert(key, tensor);
  }
  for (const Json& key : files->at("not_written").list()) {
    std::string in_model = key.text();
    in_model.insert(in_model.rfind('.'), "." + (name.empty() ? "default" : name));
    tensors.insert(key.text(), model.at(in_model));
  }
  adapter.tensors = std::move(tensors);
}

Checkpoint merge_case(const Case& c, bool peft_exact) {
  const fs::path folder = fs::path(test::vector_path(kFolder)) / c.name;
  std::vector<Adapter> adapters;
  for (const std::string& name : c.adapters) {
    adapters.push_back(load_adapter(folder / "adapter" / name));
    repair(folder, name, adapters.back());
  }
  return merge(open((folder / "base.safetensors").string()), adapters, {{}, peft_exact, false});
}

// One unit in the last place of a number of this size.
float unit_in_last_place(DType dtype, float value) {
  const int digits = dtype == DType::bf16 ? 8 : dtype == DType::f16 ? 11 : 24;
  return std::ldexp(1.0F, std::max(std::ilogb(std::max(std::abs(value), 1e-30F)), -14) - digits + 1);
}

struct Comparison {
  bool is_exact = true;  // to the bit
  float worst = 0;       // the largest difference, as a multiple of the allowed one
  std::string where;
};

Comparison compare(const StateDict& expected, const StateDict& found) {
  Comparison result;
  for (const auto& [name, tensor] : expected) {
    const Tensor* mine = found.find(name);
    if (mine == nullptr || mine->shape() != tensor.shape() || mine->dtype() != tensor.dtype())
      return {false, INFINITY, std::string(name) + " is missing or another kind of tensor"};
    std::vector<std::byte> a(tensor.nbytes()), b(a.size());
    tensor.read(0, a);
    mine->read(0, b);
    if (a == b) continue;
    result.is_exact = false;
    const std::vector<float> x = test::values_of(tensor), y = test::values_of(*mine);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float allowed = tensor.dtype() == DType::f32 ? 1e-6F : unit_in_last_place(tensor.dtype(), x[i]);
      const float off = std::isnan(y[i]) ? INFINITY : std::abs(x[i] - y[i]) / allowed;
      if (off <= result.worst) continue;
      result.worst = off;
      result.where = fmt::format("{}[{}]: {} instead of {}", name, i, y[i], x[i]);
    }
  }
  for (const auto& entry : found) {
    if (!expected.contains(entry.name)) return {false, INFINITY, std::string(entry.name) + " should not be there"};
  }
  return result;
}

bool is_narrow(const Case& c) { return c.name.find("16_base") != std::string::npos; }

class MergeVectors : public testing::TestWithParam<Case> {};

TEST_P(MergeVectors, AreWhatPeftMakes) {
  const fs::path folder = fs::path(test::vector_path(kFolder)) / GetParam().name;
  const Checkpoint expected = open((folder / GetParam().file).string());
  const Checkpoint merged = merge_case(GetParam(), true);
  const Comparison result = compare(expected.tensors, merged.tensors);
  std::printf("%-48s %s\n", (GetParam().name + "/" + GetParam().file).c_str(),
              result.is_exact ? "to the bit" : fmt::format("{:.3f} of what is allowed", result.worst).c_str());
  EXPECT_LE(result.worst, 1) << result.where;
}

// Without PEFT's roundings and mistakes, the result is the same but for the last digits. Bases of 16 bits are left out,
// because not a digit need be the same if numbers cancel out; so are two cases with mistakes of PEFT.
class MergeVectorsInF32 : public testing::TestWithParam<Case> {};

TEST_P(MergeVectorsInF32, AreNearToWhatPeftMakesWithoutItsRoundings) {
  const fs::path folder = fs::path(test::vector_path(kFolder)) / GetParam().name;
  const Comparison result =
      compare(open((folder / GetParam().file).string()).tensors, merge_case(GetParam(), false).tensors);
  EXPECT_LE(result.worst, 4) << result.where;
}

// Either an adapter can be undone, or merge() says why not. One adapter at a time, and without 16 bits in between.
class MergeVectorsOfOne : public testing::TestWithParam<Case> {};

TEST_P(MergeVectorsOfOne, CanBeUndone) {
  const fs::path folder = fs::path(test::vector_path(kFolder)) / GetParam().name;
  Adapter adapter = load_adapter(folder / "adapter" / GetParam().adapters.front());
  repair(folder, GetParam().adapters.front(), adapter);
  const Checkpoint base = open((folder / "base.safetensors").string());
  try {
    const Checkpoint back = merge(merge(base, {adapter}), {adapter}, {{}, false, true});
    const Comparison result = compare(base.tensors, back.tensors);
    EXPECT_LE(result.worst, 20) << result.where;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unsupported) << error.what();
  }
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name + "_" + fs::path(info.param.file).stem().string();
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

std::vector<Case> cases_where(bool (*is_wanted)(const Case&)) {
  std::vector<Case> cases = all_cases();
  std::erase_if(cases, [&](const Case& c) { return !is_wanted(c); });
  return cases;
}

bool has_no_mistakes(const Case& c) {
  return !is_narrow(c) && c.name != "lora_mha" && c.name != "lora_layer_replication";
}
bool is_of_one(const Case& c) { return c.adapters.size() == 1 && !is_narrow(c) && c.name != "lora_layer_replication"; }

INSTANTIATE_TEST_SUITE_P(Peft, MergeVectors, testing::ValuesIn(all_cases()), test_name);
INSTANTIATE_TEST_SUITE_P(Peft, MergeVectorsInF32, testing::ValuesIn(cases_where(has_no_mistakes)), test_name);
INSTANTIATE_TEST_SUITE_P(Peft, MergeVectorsOfOne, testing::ValuesIn(cases_where(is_of_one)), test_name);

// Matrices that were drawn at random and not saved come from the same generator.
TEST(MergeVectorsDrawn, NeedNoMatricesOfTinyLora) {
  const fs::path folder = fs::path(test::vector_path(kFolder)) / "extra_tinylora";
  Adapter adapter = load_adapter(folder / "adapter");
  StateDict tensors;
  for (const auto& [name, tensor] : adapter.tensors) {
    if (!name.ends_with("tinylora_P")) tensors.insert(name, tensor);
  }
  adapter.tensors = std::move(tensors);
  const Checkpoint merged = merge(open((folder / "base.safetensors").string()), {adapter}, {{}, true, false});
  const Comparison result = compare(open((folder / "merged.safetensors").string()).tensors, merged.tensors);
  EXPECT_LE(result.worst, 1) << result.where;
}

TEST(MergeVectorsFolder, IsThere) { EXPECT_EQ(all_cases().size(), 84U); }

}  // namespace
}  // namespace ballast
