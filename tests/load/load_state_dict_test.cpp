// The tensors of a checkpoint in a C++ object.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>

#include <ballast/ballast.hpp>

#include "builders/temp_dir.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"
#include "support/files.hpp"
#include "support/tensor_values.hpp"

namespace elsewhere {

struct Linear {
  ballast::Tensor weight, bias;
};
BALLAST_FIELDS(Linear, weight, bias)

}  // namespace elsewhere

namespace ballast {
namespace {

using elsewhere::Linear;
using test::names_of;
using test::numbers;
using test::values_of;
using Names = std::vector<std::string>;

struct Attention {
  Attention() = default;
  Tensor scale;

  auto fields() {
    return ballast::fields(field("q_proj", query_), field("mask", mask_).not_persistent(),
                           field("scale", scale).optional());
  }
  const Linear& query() const { return query_; }

 private:
  Linear query_;
  Tensor mask_;
};

struct Model {
  std::vector<Linear> layers = std::vector<Linear>(2);
  std::array<Tensor, 2> norms;
  std::map<std::string, Linear> heads = {{"a", {}}, {"b", {}}};
  std::optional<Linear> none;
  std::unique_ptr<Attention> attention = std::make_unique<Attention>();
  std::pair<Tensor, Tensor> both;
  std::vector<float> table;  // memory that the model owns
};
BALLAST_FIELDS(Model, layers, norms, heads, none, attention, both, table)

Names names_of(Model& model) {
  Names names;
  for (const BoundTensor& tensor : bind(model)) names.push_back(tensor.name);
  return names;
}

Checkpoint checkpoint_for(Model& model) {
  Checkpoint checkpoint;
  float first = 1;
  for (const BoundTensor& tensor : bind(model)) {
    if (tensor.is_persistent) checkpoint.tensors.insert(tensor.name, numbers({2, 3}, first += 100));
  }
  return checkpoint;
}

TEST(Bind, WalksWhateverHoldsTensors) {
  Model model;
  EXPECT_EQ(names_of(model),
            (Names{"layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias", "norms.0", "norms.1",
                   "heads.a.weight", "heads.a.bias", "heads.b.weight", "heads.b.bias", "attention.q_proj.weight",
                   "attention.q_proj.bias", "attention.mask", "attention.scale", "both.0", "both.1", "table"}));
}

TEST(Bind, GivesAStateDictWithoutTensorsThatAreNotPersistent) {
  Model model;
  model.layers[1].bias = numbers({4});
  const StateDict state = state_dict(model);
  EXPECT_FALSE(state.contains("attention.mask"));
  EXPECT_EQ(values_of(state.at("layers.1.bias")), (std::vector<float>{0, 1, 2, 3}));
  EXPECT_EQ(parameters(model).size(), state.size());
}

TEST(LoadStateDict, AssignsViewsAndCopiesIntoMemoryThatTheModelOwns) {
  Model model;
  const Checkpoint checkpoint = checkpoint_for(model);
  const LoadReport report = load_state_dict(model, checkpoint);
  EXPECT_TRUE(report.ok()) << to_string(report);
  EXPECT_EQ(report.loaded, checkpoint.size());
  EXPECT_EQ(model.layers[1].weight.storage(), checkpoint.at("layers.1.weight").storage()) << "a view";
  EXPECT_EQ(model.attention->query().weight.storage(), checkpoint.at("attention.q_proj.weight").storage());
  EXPECT_EQ(model.table, values_of(checkpoint.at("table")));
  EXPECT_EQ(report.bytes, 6 * sizeof(float)) << "only the vector was copied";
}

TEST(LoadStateDict, CopiesTensorsWhenTold) {
  Model model;
  const Checkpoint checkpoint = checkpoint_for(model);
  load_state_dict(model, checkpoint, {.assign = false});
  EXPECT_NE(model.layers[0].weight.storage(), checkpoint.at("layers.0.weight").storage());
  EXPECT_EQ(values_of(model.layers[0].weight), values_of(checkpoint.at("layers.0.weight")));
}

TEST(LoadStateDict, ReportsAllThatIsWrongBeforeItChangesAnything) {
  Model model;
  Checkpoint checkpoint = rename(checkpoint_for(model), {{"^norms.0$", "norm.0"}, {"^both.1$", "stray"}});
  model.layers[0].weight = numbers({5});
  const Tensor before = model.layers[1].weight;
  try {
    load_state_dict(model, checkpoint);
    FAIL() << "nothing was thrown";
  } catch (const StateDictError& error) {
    EXPECT_EQ(error.code(), Errc::mismatch);
    EXPECT_EQ(error.report().missing, (Names{"norms.0", "both.1"}));
    EXPECT_EQ(error.report().unexpected, (Names{"norm.0", "stray"}));
    ASSERT_EQ(error.report().mismatched.size(), 1u);
    EXPECT_EQ(error.report().mismatched[0].name, "layers.0.weight");
    EXPECT_EQ(error.hint().text(), "did you mean \"norm.0\" for \"norms.0\"?");
    EXPECT_EQ(to_string(error.report()),
              "loaded      0, 0 B copied\n"
              "missing     2\n  norms.0\n  both.1\n"
              "unexpected  2\n  norm.0\n  stray\n"
              "mismatched  1\n  layers.0.weight: F32 [2, 3] in the file, F32 [5] in the model\n"
              "did you mean \"norm.0\" for \"norms.0\"?\n");
  }
  EXPECT_EQ(model.layers[1].weight.storage(), before.storage());
  EXPECT_TRUE(model.table.empty());
}

TEST(LoadStateDict, LoadsWhatFitsIfItNeedNotBeStrict) {
  Model model;
  const Checkpoint checkpoint = select(checkpoint_for(model), {.include = {}, .exclude = {"heads.*"}});
  const LoadReport report = load_state_dict(model, checkpoint, {.strict = false});
  EXPECT_EQ(report.missing.size(), 4u);
  EXPECT_EQ(report.loaded, checkpoint.size());
  EXPECT_TRUE(load_state_dict(model, checkpoint, {.ignore_missing = {"heads.*"}}).ok());
  Checkpoint more = checkpoint_for(model);
  more.tensors.insert("optimizer.step", numbers({1}));
  EXPECT_TRUE(load_state_dict(model, more, {.ignore_unexpected = {"optimizer.*"}}).ok());
}

TEST(LoadStateDict, LeavesTensorsOfOtherSizesWhenTold) {
  Model model;
  const Checkpoint checkpoint = checkpoint_for(model);
  model.norms[1] = numbers({7});
  const LoadReport report = load_state_dict(model, checkpoint, {.ignore_mismatched_sizes = true});
  EXPECT_TRUE(report.ok());
  ASSERT_EQ(report.left.size(), 1u);
  EXPECT_EQ(report.left[0].name, "norms.1");
  EXPECT_EQ(model.norms[1].shape(), (Shape{7}));
}

TEST(LoadStateDict, MayLackWhatIsOptional) {
  Model model;
  const Checkpoint checkpoint = select(checkpoint_for(model), {.include = {}, .exclude = {"attention.scale"}});
  EXPECT_TRUE(load_state_dict(model, checkpoint).ok());
}

TEST(LoadStateDict, FindsThePrefixThatATrainerLeft) {
  for (const char* prefix : {"module.", "_orig_mod.", "model."}) {
    Model model;
    const LoadReport report = load_state_dict(model, add_prefix(checkpoint_for(model), prefix));
    EXPECT_TRUE(report.ok()) << prefix;
    EXPECT_EQ(report.renamed.size(), report.loaded);
    EXPECT_ERROR(load_state_dict(model, add_prefix(checkpoint_for(model), prefix), {.find_prefix = false}),
                 Errc::mismatch, "missing");
  }
}

TEST(LoadStateDict, FindsAnyStackOfPrefixesBeItInSomeOfTheNames) {
  for (const char* prefix : {"module._orig_mod.", "_fsdp_wrapped_module.module.", "module.model.", "_orig_mod.net."}) {
    Model model;
    EXPECT_TRUE(load_state_dict(model, add_prefix(checkpoint_for(model), prefix)).ok()) << prefix;
  }
  Model model;
  const Checkpoint some =
      rename(checkpoint_for(model), {{"^layers\\.(\\d+)\\.", "module.layers.\\1._fsdp_wrapped_module."}});
  const LoadReport report = load_state_dict(model, some);
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.renamed.size(), 4u);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_NE(report.notes[0].text.find("is taken for \"layers.0.weight\""), std::string::npos) << report.notes[0].text;
  EXPECT_NE(to_string(report).find("note: wrappers of training"), std::string::npos);
  EXPECT_ERROR(load_state_dict(model, some, {.find_prefix = false}), Errc::mismatch, "missing");
}

TEST(LoadStateDict, MapsKeysInOrder) {
  Model model;
  const Checkpoint other = rename(checkpoint_for(model), {{"^layers", "h"}, {"weight$", "w"}});
  EXPECT_TRUE(load_state_dict(model, other, {.key_mapping = {{"^h\\.", "layers."}, {"\\bw$", "weight"}}}).ok());
}

TEST(LoadStateDict, CastsAsThePolicySays) {
  Model model;
  Checkpoint checkpoint = cast(checkpoint_for(model), DType::bf16);
  EXPECT_ERROR(load_state_dict(model, checkpoint), Errc::mismatch, "\"table\"") << "memory has the dtype that it has";
  for (Linear& layer : model.layers) layer.weight = numbers({2, 3}, 0, DType::f16);
  const LoadReport report = load_state_dict(model, checkpoint, {.dtype_policy = DTypePolicy::to_model});
  EXPECT_EQ(report.cast, (Names{"layers.0.weight", "layers.1.weight", "table"}));
  EXPECT_EQ(model.layers[0].weight.dtype(), DType::f16);
  EXPECT_EQ(model.layers[0].bias.dtype(), DType::bf16) << "there was none yet";
  EXPECT_EQ(model.table, values_of(checkpoint.at("table")));
  load_state_dict(model, checkpoint, {.dtype_policy = DTypePolicy::to_one, .dtype = DType::f32});
  EXPECT_EQ(model.norms[0].dtype(), DType::f32);
}

TEST(LoadStateDict, CountsTheValuesThatDoNotFitTheModelsDtype) {
  struct Half {
    std::vector<float16> table;
    auto fields() { return ballast::fields(field("table", table)); }
  } model;
  Checkpoint checkpoint;
  checkpoint.tensors.insert("table", numbers({4}, 65503));  // F16 reaches 65504; values just above are rounded down
  LoadStateDictOptions options;
  options.dtype_policy = DTypePolicy::to_model;
  const LoadReport report = load_state_dict(model, checkpoint, options);
  EXPECT_EQ(report.overflows.count, 0u);
  checkpoint.tensors.replace("table", numbers({4}, 70000));
  const LoadReport beyond = load_state_dict(model, checkpoint, options);
  EXPECT_EQ(beyond.overflows.count, 4u);
  EXPECT_EQ(beyond.overflows.largest, 70003);
  EXPECT_NE(to_string(beyond).find("overflows   4 finite values did not fit the model's dtype, the largest 70003"),
            std::string::npos);
}

TEST(LoadStateDict, ServesTiedNamesFromEitherName) {
  Model model;
  Checkpoint checkpoint = checkpoint_for(model);
  LoadStateDictOptions options;
  options.tied = {{"heads.a.weight", "heads.b.weight"}};
  EXPECT_ERROR(load_state_dict(model, checkpoint, options), Errc::mismatch, "1 tied with other values");
  for (const char* name : {"heads.a.weight", "heads.b.weight"}) {
    const Checkpoint one = select(checkpoint, {.include = {}, .exclude = {name}});
    const LoadReport report = load_state_dict(model, one, options);
    EXPECT_TRUE(report.ok());
    EXPECT_EQ(report.tied, Names{name});
    EXPECT_EQ(model.heads["a"].weight.storage(), model.heads["b"].weight.storage());
  }
}

TEST(LoadStateDict, TakesAScalarForAVectorOfOne) {
  Linear layer{numbers({1}), numbers({})};
  Checkpoint checkpoint;
  checkpoint.tensors.insert("weight", numbers({}));
  checkpoint.tensors.insert("bias", numbers({1}));
  EXPECT_TRUE(load_state_dict(layer, checkpoint).ok());
  EXPECT_EQ(layer.weight.shape(), (Shape{1}));
  EXPECT_EQ(layer.bias.shape(), Shape{});
}

TEST(LoadStateDict, ReadsNothingForTheMetaDevice) {
  Linear layer;
  Checkpoint checkpoint;
  checkpoint.tensors.insert("weight", Tensor(DType::f32, {8}, meta_storage(32)));
  checkpoint.tensors.insert("bias", numbers({3}));
  load_state_dict(layer, checkpoint, {.device = "meta"});
  EXPECT_FALSE(layer.bias.has_data());
  EXPECT_EQ(layer.bias.shape(), (Shape{3}));
}

// The report has every line that a report can have.
TEST(LoadStateDict, PrintsItsReportAsAShortTable) {
  struct Encoder {
    std::vector<Tensor> layers = std::vector<Tensor>(2);
    Tensor head, tied, norm, bias, small = numbers({2, 2});
    auto fields() {
      return ballast::fields(field("encoder.layers", layers), field("head", head), field("tied", tied),
                             field("norm", norm), field("bias", bias), field("small", small));
    }
  } model;
  model.norm = numbers({2}, 0, DType::f32);
  Checkpoint checkpoint;
  for (const char* name : {"m/encoder.layer.0", "m/encoder.layer.1", "m/head", "m/norm"})
    checkpoint.tensors.insert(name, numbers({2}, 0, DType::bf16));
  checkpoint.tensors.insert("m/small", numbers({3, 2}, 0, DType::f32));
  for (int i = 0; i < 12; ++i) checkpoint.tensors.insert("optimizer." + std::to_string(i), numbers({1}));
  LoadStateDictOptions options;
  options.strict = false;
  options.dtype_policy = DTypePolicy::to_model;
  options.tied = {{"head", "tied"}};
  options.key_mapping = {{"^m/", ""}};
  const std::string text = to_string(load_state_dict(model, checkpoint, options));
  options.ignore_mismatched_sizes = true;
  const std::string left = to_string(load_state_dict(model, checkpoint, options));
  const std::string path = std::string(BALLAST_SOURCE_DIR) + "/tests/golden/load_report.txt";
  EXPECT_EQ(text + "---\n" + left, test::read_whole_file(path));
}

TEST(LoadStateDict, ReportsProgressAndCanBeCancelled) {
  struct Table {
    std::vector<float> a, b;
    auto fields() { return ballast::fields(field("a", a), field("b", b)); }
  } model;
  Checkpoint checkpoint;
  checkpoint.tensors.insert("a", numbers({1000}));
  checkpoint.tensors.insert("b", numbers({500}));
  std::uint64_t done = 0;
  LoadStateDictOptions options;
  options.progress = [&](const ProgressState& state) {
    EXPECT_EQ(state.total_bytes, 6000u);
    done = state.done_bytes;
    return true;
  };
  const LoadReport report = load_state_dict(model, checkpoint, options);
  EXPECT_EQ(done, 6000u);
  EXPECT_EQ(report.bytes, 6000u);
  EXPECT_GE(report.seconds, 0.0);
  options.progress = [](const ProgressState&) { return false; };
  EXPECT_ERROR(load_state_dict(model, checkpoint, options), Errc::cancelled, "");
}

// Counts how many of these storages are alive.
class WatchedStorage final : public Storage {
 public:
  WatchedStorage(StoragePtr inner, std::atomic<int>& alive, std::atomic<std::uint64_t>& released)
      : inner_(std::move(inner)), alive_(alive), released_(released) {
    ++alive_;
  }
  ~WatchedStorage() override { --alive_; }
  std::uint64_t size_bytes() const override { return inner_->size_bytes(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override { inner_->read(offset, out); }
  void release(std::uint64_t, std::uint64_t size) const override { released_ += size; }

 private:
  StoragePtr inner_;
  std::atomic<int>& alive_;
  std::atomic<std::uint64_t>& released_;
};

TEST(LoadStateDict, LetsGoOfEveryTensorAfterUseWhenTold) {
  for (const bool is_moved : {false, true}) {
    std::atomic<int> alive = 0;
    std::atomic<std::uint64_t> released = 0;
    std::vector<int> alive_at;
    struct Table {
      std::vector<std::vector<float>> rows = std::vector<std::vector<float>>(4);
      auto fields() { return ballast::fields(field("rows", rows)); }
    } model;
    Checkpoint checkpoint;
    for (int i = 0; i < 4; ++i) {
      auto storage = std::make_shared<WatchedStorage>(numbers({10}).storage(), alive, released);
      checkpoint.tensors.insert("rows." + std::to_string(i), Tensor(DType::f32, {10}, std::move(storage)));
    }
    LoadStateDictOptions options;
    options.consume = true;
    options.threads = 1;
    options.progress = [&](const ProgressState&) {
      alive_at.push_back(alive);
      return true;
    };
    if (is_moved)
      load_state_dict(model, std::move(checkpoint), options);
    else
      load_state_dict(model, checkpoint, options);
    EXPECT_EQ(model.rows[3].size(), 10u);
    EXPECT_EQ(released, 160u);
    EXPECT_EQ(alive, is_moved ? 0 : 4);
    ASSERT_GE(alive_at.size(), 4u);
    EXPECT_EQ(alive_at.back(), is_moved ? 0 : 4);
    EXPECT_LT(alive_at[alive_at.size() - 2], is_moved ? 3 : 5);  // tensors are let go of one after the other
  }
}

TEST(LoadStateDict, StripsAPrefixAndAddsAnother) {
  Linear layer;
  Checkpoint checkpoint;
  checkpoint.tensors.insert("odd/weight", numbers({3}));
  checkpoint.tensors.insert("odd/bias", numbers({3}));
  EXPECT_THROW(load_state_dict(layer, checkpoint), StateDictError);
  EXPECT_TRUE(load_state_dict(layer, checkpoint, {.strip_prefix = "odd/"}).ok());
  EXPECT_ERROR(load_state_dict(layer, checkpoint, {.strip_prefix = "od/"}), Errc::not_found, "begins with");
  struct Outer {
    Linear inner;
    auto fields() { return ballast::fields(field("inner", inner)); }
  } outer;
  Checkpoint plain;
  plain.tensors.insert("weight", numbers({3}));
  plain.tensors.insert("bias", numbers({3}));
  EXPECT_THROW(load_state_dict(outer, plain), StateDictError);
  EXPECT_TRUE(load_state_dict(outer, plain, {.add_prefix = "inner."}).ok());
  Checkpoint training;
  training.tensors.insert("module.weight", numbers({3}));
  training.tensors.insert("module.bias", numbers({3}));
  EXPECT_THROW(load_state_dict(layer, training, {.find_prefix = false}), StateDictError);
}

TEST(LoadStateDict, IgnoresTheTensorsThatItIsToldToIgnore) {
  Linear layer;
  Checkpoint checkpoint;
  checkpoint.tensors.insert("weight", numbers({3}));
  checkpoint.tensors.insert("rotary.inv_freq", numbers({3}));
  EXPECT_THROW(load_state_dict(layer, checkpoint), StateDictError);
  EXPECT_THROW(load_state_dict(layer, checkpoint, {.ignore_missing = {"bias"}}), StateDictError);
  EXPECT_TRUE(
      load_state_dict(layer, checkpoint, {.ignore_missing = {"bias"}, .ignore_unexpected = {"*.inv_freq"}}).ok());
}

TEST(LoadStateDict, RefusesADangerousCheckpoint) {
  Linear layer;
  Checkpoint checkpoint;
  checkpoint.tensors.insert("weight", numbers({3}));
  checkpoint.tensors.insert("bias", numbers({3}));
  checkpoint.dangerous.push_back({"os", "system", 3, "", Verdict::dangerous, "runs shell commands"});
  EXPECT_ERROR(load_state_dict(layer, checkpoint), Errc::unsafe, "os.system");
  EXPECT_TRUE(load_state_dict(layer, checkpoint, {.allow_dangerous = true}).ok());
}

TEST(Load, GivesAStateDictOnTheDeviceThatIsAskedFor) {
  test::TempDir folder;
  Checkpoint checkpoint;
  checkpoint.tensors.insert("a", numbers({4, 5}));
  checkpoint.tensors.insert("b", Tensor(checkpoint.at("a")));
  save(checkpoint, folder / "m.pt");
  const StateDict state = load(folder / "m.pt");
  EXPECT_EQ(values_of(state.at("b")), values_of(checkpoint.at("a")));
  const StateDict shapes = load(folder / "m.pt", {.device = "meta"});
  EXPECT_EQ(shapes.at("a").shape(), (Shape{4, 5}));
  EXPECT_FALSE(shapes.at("a").has_data());
  EXPECT_ERROR(load(folder / "m.pt", {.device = "gpu"}), Errc::invalid_argument, "is no device");
}

// GCC 12 destroys a struct inside a struct twice if what is behind it throws.
TEST(Load, DestroysItsOptionsOnceIfTheDeviceIsNone) {
  const long before = local_files().use_count();
  EXPECT_ERROR(load("m.pt", {.device = "gpu"}), Errc::invalid_argument, "is no device");
  EXPECT_ERROR(load_adapter("m", {.device = "gpu"}), Errc::invalid_argument, "is no device");
  EXPECT_EQ(local_files().use_count(), before);
}

TEST(Realize, BringsEverythingIntoMemoryOnce) {
  StateDict state;
  state.insert("cast", numbers({1000}).to(DType::f16));
  state.insert("strided", numbers({30, 40}).transpose());
  state.insert("same", Tensor(state.at("strided")));
  state.insert("empty", Tensor(DType::f32, {0}, nullptr));
  state.insert("meta", Tensor(DType::f32, {2}, meta_storage(8)));
  const StateDict real = realize(state, {.threads = 3});
  ASSERT_EQ(real.size(), state.size());
  for (const char* name : {"cast", "strided", "same"}) {
    EXPECT_TRUE(real.at(name).is_contiguous()) << name;
    EXPECT_EQ(values_of(real.at(name)), values_of(state.at(name))) << name;
  }
  EXPECT_EQ(real.at("strided").storage(), real.at("same").storage());
  EXPECT_FALSE(real.at("meta").has_data());
}

}  // namespace
}  // namespace ballast
