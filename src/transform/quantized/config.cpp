#include "transform/quantized/config.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "transform/quantized/fp8_blocks.hpp"

namespace ballast {
namespace {

using Names = std::set<std::string, std::less<>>;

bool has_beginning(const Names& names, const std::string& text) {
  const auto found = names.lower_bound(text);
  return found != names.end() && found->starts_with(text);
}

std::string reversed_text(const std::string& text) { return {text.rbegin(), text.rend()}; }

// transformers takes each entry for a regular expression that a name begins with, and for what a name may end with. So
// an entry that would also keep another module from being loaded is one for the whole name.
Json::List modules_to_not_convert(const QuantizedModules& modules) {
  Names backwards;
  for (const std::string& name : modules.quantized) backwards.insert(reversed_text(name));
  Json::List list;
  for (const std::string& name : modules.left) {
    const bool is_ambiguous = has_beginning(modules.quantized, name) || has_beginning(backwards, reversed_text(name));
    list.emplace_back(is_ambiguous ? "^" + name + "$" : name);
  }
  return list;
}

// The numbers of blocks as "*", so that each kind of module stands there once: gpt-oss is published so.
Json::List patterns_of(const Names& names) {
  Names patterns;
  for (const std::string& name : names) {
    std::string pattern;
    for (std::size_t begin = 0; begin <= name.size();) {
      const std::size_t end = std::min(name.find('.', begin), name.size());
      const std::string word = name.substr(begin, end - begin);
      const bool is_number = !word.empty() && word.find_first_not_of("0123456789") == word.npos;
      pattern += (begin == 0 ? "" : ".") + (is_number ? "*" : word);
      begin = end + 1;
    }
    patterns.insert(std::move(pattern));
  }
  return {patterns.begin(), patterns.end()};
}

Json fp8_config(const QuantizedModules& modules) {
  return Json::Members{{"quant_method", "fp8"},
                       {"fmt", "e4m3"},
                       {"activation_scheme", "dynamic"},
                       {"weight_block_size", Json::List{kFp8Block, kFp8Block}},
                       {"modules_to_not_convert", modules_to_not_convert(modules)}};
}

Json bitsandbytes_config(const QuantizedModules& modules, bool is_double) {
  return Json::Members{{"quant_method", "bitsandbytes"},
                       {"load_in_4bit", true},
                       {"load_in_8bit", false},
                       {"_load_in_4bit", true},
                       {"_load_in_8bit", false},
                       {"bnb_4bit_quant_type", "nf4"},
                       {"bnb_4bit_use_double_quant", is_double},
                       {"bnb_4bit_compute_dtype", info(modules.dtype).torch_name},
                       {"bnb_4bit_quant_storage", "uint8"},
                       {"llm_int8_enable_fp32_cpu_offload", false},
                       {"llm_int8_has_fp16_weight", false},
                       {"llm_int8_threshold", 6.0},
                       {"llm_int8_skip_modules", modules_to_not_convert(modules)}};
}

Json mxfp4_config(const QuantizedModules& modules) {
  return Json::Members{{"quant_method", "mxfp4"}, {"modules_to_not_convert", patterns_of(modules.left)}};
}

Json compressed_tensors_config(const QuantizedModules& modules) {
  const Json weights =
      Json::Members{{"num_bits", 4},    {"type", "float"},  {"symmetric", true},           {"strategy", "group"},
                    {"group_size", 32}, {"dynamic", false}, {"scale_dtype", "torch.uint8"}};
  const Json group = Json::Members{{"targets", Json::List{"Linear"}},
                                   {"weights", weights},
                                   {"input_activations", nullptr},
                                   {"output_activations", nullptr},
                                   {"format", "mxfp4-pack-quantized"}};
  return Json::Members{{"quant_method", "compressed-tensors"},
                       {"format", "mxfp4-pack-quantized"},
                       {"quantization_status", "compressed"},
                       {"kv_cache_scheme", nullptr},
                       {"ignore", Json::List(modules.left.begin(), modules.left.end())},
                       {"config_groups", Json::Members{{"group_0", group}}}};
}

}  // namespace

Json quantization_config(WeightScheme scheme, const QuantizedModules& modules) {
  switch (scheme) {
    case WeightScheme::fp8_block: return fp8_config(modules);
    case WeightScheme::nf4: return bitsandbytes_config(modules, false);
    case WeightScheme::nf4_double: return bitsandbytes_config(modules, true);
    case WeightScheme::mxfp4: break;
  }
  return modules.is_gpt_oss ? mxfp4_config(modules) : compressed_tensors_config(modules);
}

}  // namespace ballast
