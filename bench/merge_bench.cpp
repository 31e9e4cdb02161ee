// Merging a LoRA of rank 16: against a conversion that changes nothing, and against the product and the sum alone.
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>
#include <ballast/ballast.hpp>
#include <ballast/merge.hpp>

#include "benchmarks.hpp"
#include "generate.hpp"
#include "kernels/linear/gemm.hpp"

namespace ballast::bench {
namespace {

constexpr std::uint64_t kRank = 16, kRows = 8192, kColumns = 4096, kMatrixBytes = kRows * kColumns * 2;

Tensor small_values(Shape shape) {
  std::vector<float> values(*shape.numel());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) / 64 - 0.125F;
  return Tensor::from_values<float>(DType::f32, std::move(shape), values);
}

Adapter lora(std::uint64_t matrices, std::uint64_t rows, std::uint64_t columns) {
  Adapter adapter;
  adapter.config.fields = Json::parse(R"({"peft_type": "LORA", "r": 16, "lora_alpha": 32})");
  for (std::uint64_t i = 0; i < matrices; ++i) {
    adapter.tensors.insert(fmt::format("base_model.model.w{}.lora_A.weight", i), small_values({kRank, columns}));
    adapter.tensors.insert(fmt::format("base_model.model.w{}.lora_B.weight", i), small_values({rows, kRank}));
  }
  return adapter;
}

// Writes this many matrices of BF16. The data are a hole in the file.
void write_base(const std::string& path, std::uint64_t matrices) {
  std::string header;
  for (std::uint64_t i = 0; i < matrices; ++i)
    header += fmt::format(R"({}"w{}.weight":{{"dtype":"BF16","shape":[{},{}],"data_offsets":[{},{}]}})",
                          i == 0 ? "{" : ",", i, kRows, kColumns, i * kMatrixBytes, (i + 1) * kMatrixBytes);
  header += "}";
  const std::uint64_t length = header.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), 8) << header;
  file.close();
  std::filesystem::resize_file(path, 8 + header.size() + matrices * kMatrixBytes);
}

Checkpoint merged(const std::string& path, std::uint64_t matrices) {
  return merge(ballast::open(path), {lora(matrices, kRows, kColumns)});
}

// Casts to F32 and back: every byte is read, and none is changed.
Checkpoint unchanged(const std::string& path) {
  Checkpoint checkpoint = ballast::open(path);
  StateDict tensors;
  for (const auto& [name, tensor] : checkpoint) tensors.insert(name, tensor.to(DType::f32).to(DType::bf16));
  checkpoint.tensors = std::move(tensors);
  return checkpoint;
}

void compare_with_conversion(Report& report) {
  const std::string row = "LoRA of rank 16 merged into BF16 / a cast that changes nothing";
  if (!report.wants(row)) return;
  constexpr std::uint64_t kMatrices = 4;
  const std::string from = scratch() + "/base.safetensors", to = scratch() + "/out.safetensors";
  write_base(from, kMatrices);
  const auto remove = [&] { std::filesystem::remove(to); };
  const auto ours = [&] { save(merged(from, kMatrices), to, {.durable = false}); };
  const auto theirs = [&] { save(unchanged(from), to, {.durable = false}); };
  report.add(row, compare({ours, remove}, {theirs, remove}, 15), Goal::speed_at_least, 0.5);
  remove();
  std::filesystem::remove(from);
}

void compare_with_product(Report& report) {
  const std::string row = "LoRA of rank 16 in memory / sgemm and a sum";
  if (!report.wants(row)) return;
  const Tensor weight = small_values({kColumns, kColumns});
  Checkpoint base;
  base.tensors.insert("w0.weight", weight);
  const Adapter adapter = lora(1, kColumns, kColumns);
  const Tensor result = merge(base, {adapter}).at("w0.weight");
  const auto a = adapter.tensors[0].tensor.as<float>(), b = adapter.tensors[1].tensor.as<float>();
  const auto w = weight.as<float>();
  std::vector<float> out(w.size()), product(w.size());
  const auto ours = [&] { result.read(0, std::as_writable_bytes(std::span(out))); };
  const auto theirs = [&] {
    kernels::multiply({b.data(), kColumns, kRank, kRank}, {a.data(), kRank, kColumns, kColumns}, 2, 0, product.data(),
                      kColumns);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = w[i] + product[i];
  };
  report.add(row, compare({ours}, {theirs}), Goal::speed_at_least, 0.9);
}

void measure_memory(Report& report) {
  constexpr std::uint64_t kMatrices = 32;  // 2 GiB, with an adapter of 24 MiB
  const std::string row = "memory of merging a LoRA into 2 GiB, beyond the adapter";
  if (!report.wants(row)) return;
  const std::string from = scratch() + "/base.safetensors", to = scratch() + "/out.safetensors";
  write_base(from, kMatrices);
  const double adapter = static_cast<double>(kMatrices * kRank * (kRows + kColumns) * sizeof(float)) / (1 << 20);
  // The adapter is in memory twice: once here, and once as the factors of the merged tensors.
  const double peak = peak_anonymous([&] { save(merged(from, kMatrices), to, {.durable = false}); });
  report.add_value(row, peak - 2 * adapter, 96, "MiB");
  std::filesystem::remove(to);
  std::filesystem::remove(from);
}

}  // namespace

void bench_merge(Report& report) {
  compare_with_conversion(report);
  compare_with_product(report);
  measure_memory(report);
}

}  // namespace ballast::bench
