// Opening and listing, against a cold simdjson DOM parse of the same header, which neither checks nor keeps anything.
#include <simdjson.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <ballast/ballast.hpp>

#include "benchmarks.hpp"
#include "generate.hpp"

namespace ballast::bench {
namespace {

std::string read_header(const std::string& path, std::uint64_t size) {
  std::string text(size + simdjson::SIMDJSON_PADDING, '\0');
  std::ifstream file(path, std::ios::binary);
  file.seekg(8);
  file.read(text.data(), static_cast<std::streamsize>(size));
  return text;
}

}  // namespace

void bench_open(Report& report) {
  const std::string path = scratch() + "/model.safetensors";
  std::vector<double> counts, times;
  for (const std::size_t count : {1'000u, 10'000u, 100'000u, 300'000u}) {
    const std::string name = fmt::format("open and list {} tensors / cold simdjson parse", count);
    if (!report.wants(name) && !report.wants("growth")) continue;
    const std::uint64_t header = write_model(path, 0, count);
    const std::string text = read_header(path, header);
    const auto parse = [&] {
      simdjson::dom::parser parser;
      const auto error = parser.parse(text.data(), header, /*realloc_if_needed=*/false).error();
      keep(error);
    };
    const Comparison result = compare({[&] { open_and_list(path); }}, {parse});
    report.add(name, result, Goal::time_at_most, 1.0);
    counts.push_back(std::log(static_cast<double>(count)));
    times.push_back(std::log(result.ours_ms));

    reset_peak();
    const Checkpoint checkpoint = open(path);
    keep(checkpoint);
    report.add_value(fmt::format("memory to open {} tensors / header", count),
                     static_cast<double>(peak_bytes()) / static_cast<double>(header), 4.0, "x");
  }
  if (times.size() == 4) {
    report.add_value("growth from 10 000 to 300 000 tensors, exponent", (times[3] - times[1]) / (counts[3] - counts[1]),
                     1.05, "");
  }

  if (report.wants("open 10 GB / open 1 MB")) {
    const std::string small = scratch() + "/small.safetensors", large = scratch() + "/large.safetensors";
    write_model(small, 0, 100, 10'240);
    write_model(large, 0, 100, 102'400'000);
    report.add("open 10 GB / open 1 MB", compare({[&] { open_and_list(large); }}, {[&] { open_and_list(small); }}),
               Goal::time_at_most, 1.1);
  }
}

void bench_vocabulary(Report& report) {
  constexpr std::size_t kTokens = 160'000;
  const std::string name = "open a GGUF with 160 000 tokens / malloc and read it";
  if (!report.wants(name)) return;
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < kTokens; ++i) tokens.push_back(fmt::format("token{}", i));
  const std::vector<float> scores(kTokens, -1);
  const std::vector<std::int32_t> types(kTokens, 1);
  Checkpoint checkpoint;
  checkpoint.typed_metadata.set(MetadataEntry::of("general.architecture", "llama"));
  checkpoint.typed_metadata.set(MetadataEntry::strings("tokenizer.ggml.tokens", tokens));
  checkpoint.typed_metadata.set(MetadataEntry::numbers<float>("tokenizer.ggml.scores", scores));
  checkpoint.typed_metadata.set(MetadataEntry::numbers<std::int32_t>("tokenizer.ggml.token_type", types));
  const std::string path = scratch() + "/vocabulary.gguf";
  save(checkpoint, path, {.allow_empty = true, .durable = false});
  report.add(name, compare({[&] { open_and_list(path); }}, {[&] { malloc_and_read(path); }}), Goal::time_at_most, 4.0);
}

void bench_shards(Report& report) {
  constexpr std::size_t kTensors = 92'000, kShards = 163;
  const std::string name = "open 92 000 tensors in 163 shards / in one file";
  if (!report.wants(name)) return;
  const std::string one = scratch() + "/one.safetensors", folder = scratch() + "/shards";
  write_model(one, 0, kTensors);
  std::filesystem::create_directories(folder);
  std::string index = "{\n  \"metadata\": {\n    \"total_size\": 0\n  },\n  \"weight_map\": {";
  for (std::size_t shard = 0; shard < kShards; ++shard) {
    const std::size_t first = kTensors * shard / kShards, last = kTensors * (shard + 1) / kShards;
    const std::string file = fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, kShards);
    write_model(folder + "/" + file, first, last - first);
    for (std::size_t i = first; i < last; ++i)
      index += fmt::format("{}\n    \"{}\": \"{}\"", i ? "," : "", model_tensor_name(i), file);
  }
  std::ofstream(folder + "/model.safetensors.index.json") << index << "\n  }\n}\n";
  report.add(name, compare({[&] { open_and_list(folder); }}, {[&] { open_and_list(one); }}), Goal::time_at_most, 2.0);
}

}  // namespace ballast::bench
