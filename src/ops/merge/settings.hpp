// Settings: what a rule asks of adapter_config.json, each value as what it must be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/adapter.hpp>

namespace ballast::merging {

class Settings {
 public:
  explicit Settings(const AdapterConfig& config) : config_(config) {}  // which must outlive it
  explicit Settings(AdapterConfig&&) = delete;

  // Null and missing are the same. Each throws Errc::malformed, naming the field, where it is something else.
  const Json* find(std::string_view key) const;
  bool flag(std::string_view key, bool otherwise = false) const;
  double number(std::string_view key) const;
  double number(std::string_view key, double otherwise) const;
  std::uint64_t count(std::string_view key) const;
  std::uint64_t count(std::string_view key, std::uint64_t otherwise) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  std::vector<std::string> names(std::string_view key) const;  // one of them may stand alone

  // The value of the first key of `patterns` that a module's name matches, as PEFT matches them, or of `key`.
  double number_for(std::string_view module, std::string_view key, std::string_view patterns) const;
  std::uint64_t count_for(std::string_view module, std::string_view key, std::string_view patterns) const;

  // Whether `key` (a list of endings of names, or an expression) chooses the module.
  bool matches(std::string_view key, std::string_view module) const;

 private:
  const Json& at(std::string_view key) const;
  const Json& at_for(std::string_view module, std::string_view key, std::string_view patterns) const;

  const AdapterConfig& config_;
};

// alpha / r, or alpha / sqrt(r) where use_rslora says so. Errc::mismatch for a scaling that is no number, or 0.
double lora_scaling(const Settings& settings, std::string_view module, std::string_view alpha_key);

}  // namespace ballast::merging
