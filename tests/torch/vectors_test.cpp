// Every PyTorch file beside the repository, against what its writer or an independent reader says is in it.
#include <gtest/gtest.h>

#include <ballast/hash.hpp>
#include <ballast/open.hpp>

#include <map>
#include <set>

#include "support/expect_error.hpp"
#include "support/fixtures.hpp"
#include "support/json_file.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

struct Expected {
  std::string name, dtype;
  std::optional<Shape> shape;
  std::string sha256;
};

std::string text_of(const Json& object, const char* key) {
  const Json* text = object.find(key);
  return text != nullptr && text->is_text() ? text->text() : std::string();
}

Expected expected_tensor(const Json& from, const std::string& name, const char* hash = "sha256") {
  Expected tensor{name, text_of(from, "dtype"), std::nullopt, text_of(from, hash)};
  for (const char* key : {"shape", "logical_shape"})
    if (const Json* shape = from.find(key)) tensor.shape = Shape(test::counts(*shape));
  return tensor;
}

// Everything that ls and hash should show of a file, as its expectation states it.
std::vector<Expected> all_expected(const Json& file) {
  std::vector<Expected> all;
  const auto each = [&](const char* key, auto&& add) {
    const Json* list = file.find(key);
    if (list == nullptr) return;
    for (const Json& entry : list->list()) add(entry, text_of(entry, "name"));
  };
  each("tensors", [&](auto entry, auto name) { all.push_back(expected_tensor(entry, name)); });
  each("numpy", [&](auto entry, auto name) {
    if (!text_of(entry, "dtype").empty()) all.push_back(expected_tensor(entry, name));
  });
  each("sparse", [&](auto entry, auto name) {
    for (const Json& part : entry.at("parts").list())
      all.push_back(expected_tensor(part, name + "." + text_of(part, "name")));
  });
  each("quantized", [&](auto entry, auto name) { all.push_back(expected_tensor(entry, name, "int_repr_sha256")); });
  each("storages", [&](auto entry, auto name) {
    Expected storage = expected_tensor(entry, name);
    storage.shape.reset();
    all.push_back(storage);
  });
  each("nested", [&](auto entry, auto name) {
    std::size_t number = 0;
    for (const Json& part : entry.at("components").list())
      all.push_back(expected_tensor(part, name + "." + std::to_string(number++)));
  });
  return all;
}

std::map<std::string, std::string> hashes_of(const Checkpoint& checkpoint) {
  std::map<std::string, std::string> hashes;
  for (const auto& tensor : hash(checkpoint).tensors) hashes.emplace(tensor.name, tensor.sha256.value_or(""));
  return hashes;
}

void expect_tensors(const Checkpoint& checkpoint, const std::vector<Expected>& expected) {
  const auto hashes = hashes_of(checkpoint);
  std::multiset<std::string> all_hashes;
  for (const auto& [name, sha256] : hashes) all_hashes.insert(sha256);
  std::map<std::string, int> times;
  for (const Expected& tensor : expected) ++times[tensor.name];
  for (const Expected& tensor : expected) {
    if (times[tensor.name] > 1) {  // two keys of one spelling: both tensors exist, one of them under another name
      EXPECT_EQ(all_hashes.count(tensor.sha256) > 0, true) << tensor.name;
      continue;
    }
    const Tensor* found = checkpoint.find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    if (!tensor.sha256.empty()) {
      EXPECT_EQ(hashes.at(tensor.name), tensor.sha256) << tensor.name;
    }
    if (!tensor.dtype.empty()) {
      EXPECT_EQ(ballast::name(found->dtype()), tensor.dtype) << tensor.name;
    }
    if (tensor.shape) {
      EXPECT_EQ(found->shape(), *tensor.shape) << tensor.name;
    }
  }
}

TEST(TorchVectors, ReadAsTorchWroteThem) {
  const auto files = test::vector_files("torch2", ".expected.json");
  EXPECT_GE(files.size(), 87u);
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename());
    const Json expected = test::read_json(path);
    const std::string file = path.string().substr(0, path.string().size() - std::string(".expected.json").size());
    if (const Json* fails = expected.find("must_fail"); fails != nullptr && fails->boolean()) {
      EXPECT_ERROR(open(file), Errc::malformed, "");
      continue;
    }
    expect_tensors(open(file), all_expected(expected));
  }
}

// Files that name something that torch.load(weights_only=True) does not allow. (It refuses opcodes of protocol 4, too.)
TEST(TorchVectors, AreRefusedIfWeightsOnlyRefusesThem) {
  for (const auto& path : test::vector_files("torch2", ".expected.json")) {
    SCOPED_TRACE(path.filename());
    const Json expected = test::read_json(path);
    const std::string file = path.string().substr(0, path.string().size() - std::string(".expected.json").size());
    const Json* unsafe = expected.find("unsafe_globals");
    if (unsafe == nullptr || unsafe->is_null()) continue;
    if (unsafe->list().empty()) {
      EXPECT_NO_THROW(static_cast<void>(open(file, {.safety = Safety::strict})));
    } else {
      EXPECT_ERROR(open(file, {.safety = Safety::strict}), Errc::unsafe, "weights_only does not allow");
    }
  }
}

// Only values that JSON can hold as they are.
TEST(TorchVectors, ShowTheValuesBesideTheTensors) {
  std::size_t compared = 0;
  for (const char* name : {"leaves.pt", "leaves_protocol4.pt", "leaves_legacy.pt", "lightning_like.ckpt",
                           "checkpoint_nested.pt", "optimizer_adam.pt"}) {
    SCOPED_TRACE(name);
    const std::string file = test::vector_path(std::string("torch2/") + name);
    const Json expected = test::read_json(file + ".expected.json");
    const Checkpoint checkpoint = open(file);
    std::map<std::string, const PlainValue*> values;
    for (const PlainValue& value : checkpoint.values) values.emplace(value.path, &value);
    for (const auto& [path, value] : expected.at("other").members()) {
      const auto found = values.find(path);
      ASSERT_NE(found, values.end()) << path;
      const auto& held = found->second->value;
      SCOPED_TRACE(path + " " + found->second->type);
      if (value.is_null()) {
        EXPECT_TRUE(std::holds_alternative<std::monostate>(held));
      } else if (value.is_bool()) {
        EXPECT_EQ(std::get<bool>(held), value.boolean());
      } else if (value.is_integer()) {
        EXPECT_EQ(std::get<std::int64_t>(held), value.integer());
      } else if (value.is_double()) {
        EXPECT_EQ(std::get<double>(held), value.number());
      } else if (value.is_text() && value.text().size() <= 65536) {  // longer ones stay in the file
        EXPECT_EQ(std::get<std::string>(held), value.text());
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 4000u);
}

// A path through dicts and lists is the name; tensors inside objects have names of our own.
bool is_plain(const Json& path) {
  for (const Json& part : path.list()) {
    if (!part.is_text()) continue;
    const std::string& text = part.text();
    if (text.starts_with('_') || text.starts_with('<') || text.starts_with('{')) return false;
  }
  return true;
}

TEST(TorchFixtures, HoldWhatAnIndependentReaderFound) {
  SKIP_WITHOUT_FIXTURES("benign");
  const auto files = test::fixture_files("expected", ".json");
  std::size_t tensors = 0;
  for (const auto& path : files) {
    if (!path.filename().string().starts_with("benign__")) continue;
    SCOPED_TRACE(path.filename());
    const Json expected = test::read_json(path);
    const Checkpoint checkpoint = open(test::fixture_path(text_of(expected, "file")));
    const auto hashes = hashes_of(checkpoint);
    std::multiset<std::string> all_hashes;
    for (const auto& [name, sha256] : hashes) all_hashes.insert(sha256);
    for (const Json& tensor : expected.at("tensors").list()) {
      const std::string sha256 = text_of(tensor, "sha256"), name = text_of(tensor, "name");
      if (sha256.empty()) continue;
      EXPECT_TRUE(all_hashes.contains(sha256)) << name;
      if (const Json* parts = tensor.find("path"); parts != nullptr && is_plain(*parts)) {
        EXPECT_TRUE(checkpoint.contains(name)) << name;
      }
      ++tensors;
    }
  }
  EXPECT_GT(tensors, 1400u);
}

TEST(TorchFixtures, WithoutAnExpectationOpenAllTheSame) {
  SKIP_WITHOUT_FIXTURES("benign");
  for (const auto& path : test::fixture_files("benign", "")) {
    SCOPED_TRACE(path.filename());
    if (path.filename() == "burn__reader__broken.pt") {
      EXPECT_ERROR(open(path.string()), Errc::unsupported, "not a checkpoint");
      continue;
    }
    EXPECT_NO_THROW(static_cast<void>(open(path.string())));
  }
  const Checkpoint tar = open(test::fixture_path("benign/burn__reader__tar_multi_dtype.tar"));
  EXPECT_EQ(tar.size(), 3u);
  EXPECT_TRUE(tar.contains("storages.0"));
  EXPECT_EQ(tar.at("storages.1").dtype(), DType::f64);

  const Checkpoint agent = open(test::fixture_path("benign/rl-trained-agents__a2c__CartPole-v1_1__CartPole-v1.zip"));
  EXPECT_EQ(agent.format, Format::archive);
  EXPECT_TRUE(agent.contains("policy.pth/mlp_extractor.policy_net.0.weight"));
}

}  // namespace
}  // namespace ballast
