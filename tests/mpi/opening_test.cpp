// What rank 0 reads to open a target is enough for all ranks, whatever the target is.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <ballast/ballast.hpp>

#include "any_model.hpp"
#include "mpi/open_together.hpp"
#include "mpi/opening_record.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"
#include "support/vectors.hpp"

namespace ballast::test {
namespace {

TEST(KnownBytes, AreThoseThatWereAdded) {
  std::mt19937 random(25);
  for (int round = 0; round < 200; ++round) {
    mpi::KnownBytes known;
    std::map<std::uint64_t, std::byte> right;
    for (int i = 0; i < 12; ++i) {
      const std::uint64_t offset = random() % 60;
      std::vector<std::byte> bytes(random() % 20);
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
      known.add(offset, bytes);
      for (std::size_t k = 0; k < bytes.size(); ++k) right[offset + k] = bytes[k];
    }
    for (std::uint64_t offset = 0; offset < 80; ++offset) {
      for (const std::size_t size : {0u, 1u, 5u, 30u}) {
        std::vector<std::byte> got(size), wanted;
        for (std::size_t k = 0; k < size && right.contains(offset + k); ++k) wanted.push_back(right[offset + k]);
        const bool is_known = known.read(offset, got);
        EXPECT_EQ(is_known, wanted.size() == size) << offset << " " << size;
        if (is_known) {
          EXPECT_TRUE(got == wanted);
        }
      }
    }
    std::uint64_t end = 0;
    for (const auto& [offset, bytes] : known.parts()) {
      EXPECT_TRUE(offset > end || end == 0) << "parts that touch are one";
      end = offset + bytes.size();
    }
  }
}

TEST(AnOpeningRecord, IsTheSameAfterItWasSent) {
  mpi::OpeningRecord record;
  mpi::FileRecord file;
  file.name = "name";
  file.identity = "identity";
  file.location = "";
  file.size_bytes = 77;
  record.add_file("a", file);
  record.add_bytes("a", 5, std::vector<std::byte>(3, std::byte{9}));
  record.add_answer(mpi::OpeningRecord::Question::prefers_whole, "folder", true);
  record.add_list("folder", std::vector<std::string>{"x", "y"});
  record.add_list("file", std::nullopt);
  record.add_notes("folder", {"note"});
  const mpi::OpeningRecord sent(record.packed());
  EXPECT_EQ(sent.packed(), record.packed());
  EXPECT_EQ(sent.file("a")->size_bytes, 77u);
  EXPECT_EQ(sent.file("b"), nullptr);
  EXPECT_EQ(sent.answer(mpi::OpeningRecord::Question::prefers_whole, "folder"), true);
  EXPECT_EQ(sent.answer(mpi::OpeningRecord::Question::exists, "folder"), std::nullopt);
  EXPECT_EQ(sent.list("file")->has_value(), false);
  EXPECT_EQ(sent.list("folder")->value().size(), 2u);
  EXPECT_EQ(sent.notes("folder")->size(), 1u);
}

// What a checkpoint says, without its tensors' bytes.
std::string description(const Checkpoint& checkpoint) {
  std::string text = std::string(name(checkpoint.format)) + " " + std::to_string(checkpoint.shards) + "\n";
  for (const auto& [name, tensor] : checkpoint) {
    const auto place = tensor.storage() ? tensor.storage()->location() : std::nullopt;
    text += std::string(name) + " " + std::string(ballast::name(tensor.dtype())) + to_string(tensor.shape()) +
            (place ? place->file + std::to_string(place->offset + tensor.offset()) : "") + "\n";
  }
  for (const auto& [key, value] : checkpoint.metadata) text += key + "=" + value + "\n";
  for (const PlainValue& value : checkpoint.values) text += value.path + ":" + value.type + "\n";
  for (const Note& note : checkpoint.notes) text += note.where + ": " + note.text + "\n";
  for (const CheckpointFile& file : checkpoint.files) text += file.path + " " + std::to_string(file.bytes) + "\n";
  if (checkpoint.quantization) text += checkpoint.quantization->scheme;
  return text;
}

// The vectors of all formats, and the folders with an index or several files.
std::vector<std::string> targets() {
  std::vector<std::string> found;
  std::set<std::string> folders;
  for (const char* folder : {"safetensors", "torch2", "gguf", "quantized", "peft", "hf2gguf", "found"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(vector_path(folder))) {
      const std::string ending = entry.path().extension();
      if (!entry.is_regular_file() || ending == ".json" || ending == ".md") continue;
      found.push_back(entry.path());
      folders.insert(entry.path().parent_path());
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> some(folders.begin(), folders.end());
  for (std::size_t i = 0; i < found.size(); i += 3) some.push_back(found[i]);  // a third of them is enough
  return some;
}

TEST(OpeningTogether, GivesEveryRankTheCheckpointThatIsThere) {
  const mpi::Communicator all = world();
  std::size_t opened = 0, refused = 0;
  for (const std::string& target : targets()) {
    std::optional<Checkpoint> alone;
    const auto error = error_of([&] { alone = open(target, {.cache = Cache::ignore}); });
    std::optional<mpi::OpenedTogether> together;
    const auto other = error_of([&] { together = mpi::open_together(all, target, {}); });
    EXPECT_EQ(other.has_value(), error.has_value()) << target;
    if (error && other) {
      ++refused;
      EXPECT_EQ(other->code(), error->code()) << target;
      EXPECT_TRUE(other->message().starts_with(error->message())) << target << ": " << other->message();
    }
    if (!alone || !together) continue;
    ++opened;
    EXPECT_EQ(description(together->checkpoint), description(*alone));
    if (all.rank() != 0) {
      EXPECT_EQ(together->opening_bytes, 0u) << target;
    }
  }
  EXPECT_GT(opened, 150u);
  EXPECT_GT(refused, 0u);
}

TEST(OpeningTogether, GivesTheValuesOfQuantizedWeights) {
  std::set<std::string> folders;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(vector_path("quantized"))) {
    if (entry.path().extension() == ".safetensors") folders.insert(entry.path().parent_path());
  }
  const OpenOptions options{.dequantize = true};
  std::size_t loaded = 0;
  for (const std::string& target : folders) {
    std::optional<Checkpoint> alone;
    if (error_of([&] { alone = open(target, options); }) || alone->dequantized.empty()) continue;
    AnyModel model = with_names_of(*alone);
    mpi::load_state_dict(MPI_COMM_WORLD, model, target, {}, {.open = options});
    ++loaded;
    for (const auto& [name, tensor] : *alone) {
      if (tensor.storage()) tensor.storage()->prepare({});
      EXPECT_TRUE(bytes_of(model.tensors.at(std::string(name))) == bytes_of(tensor)) << target << " " << name;
    }
  }
  EXPECT_GT(loaded, 10u);
}

}  // namespace
}  // namespace ballast::test
