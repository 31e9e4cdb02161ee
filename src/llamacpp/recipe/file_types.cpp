#include "llamacpp/recipe/file_types.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>
#include <vector>

#include <ballast/error.hpp>
#include <ballast/recipe.hpp>
#include <ballast/suggest.hpp>

#include "core/text.hpp"

namespace ballast {
namespace llamacpp {
namespace {

// A name stands before its aliases, which have the same number.
constexpr std::array kFileTypes = {
    FileType{"F32", 0, DType::f32},        FileType{"F16", 1, DType::f16},
    FileType{"BF16", 32, DType::bf16},     FileType{"Q8_0", 7, DType::q8_0},
    FileType{"Q6_K", 18, DType::q6_k},     FileType{"Q5_K_M", 17, DType::q5_k},
    FileType{"Q5_K", 17, DType::q5_k},     FileType{"Q5_K_S", 16, DType::q5_k},
    FileType{"Q5_1", 9, DType::q5_1},      FileType{"Q5_0", 8, DType::q5_0},
    FileType{"Q4_K_M", 15, DType::q4_k},   FileType{"Q4_K", 15, DType::q4_k},
    FileType{"Q4_K_S", 14, DType::q4_k},   FileType{"IQ4_NL", 25, DType::iq4_nl},
    FileType{"IQ4_XS", 30, DType::iq4_xs}, FileType{"Q4_1", 3, DType::q4_1},
    FileType{"Q4_0", 2, DType::q4_0},      FileType{"MXFP4_MOE", 38, DType::mxfp4},
    FileType{"Q3_K_L", 13, DType::q3_k},   FileType{"Q3_K_M", 12, DType::q3_k},
    FileType{"Q3_K", 12, DType::q3_k},     FileType{"Q3_K_S", 11, DType::q3_k},
    FileType{"IQ3_M", 27, DType::iq3_s},   FileType{"IQ3_S", 26, DType::iq3_s},
    FileType{"IQ3_XS", 22, DType::iq3_s},  FileType{"IQ3_XXS", 23, DType::iq3_xxs},
    FileType{"Q2_K", 10, DType::q2_k},     FileType{"Q2_K_S", 21, DType::q2_k},
    FileType{"IQ2_M", 29, DType::iq2_s},   FileType{"IQ2_S", 28, DType::iq2_xs},
    FileType{"IQ2_XS", 20, DType::iq2_xs}, FileType{"IQ2_XXS", 19, DType::iq2_xxs},
    FileType{"Q2_0", 41, DType::q2_0},     FileType{"TQ2_0", 37, DType::tq2_0},
    FileType{"TQ1_0", 36, DType::tq1_0},   FileType{"IQ1_M", 31, DType::iq1_m},
    FileType{"IQ1_S", 24, DType::iq1_s},   FileType{"Q1_0", 40, DType::q1_0},
};

std::string in_upper_case(std::string_view text) {
  std::string upper(text);
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper;
}

}  // namespace

std::span<const FileType> file_types() noexcept { return kFileTypes; }

const FileType& file_type(std::string_view name) {
  std::uint32_t number = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_number = failed == std::errc() && end == name.data() + name.size();
  for (const FileType& row : kFileTypes) {
    if (is_number ? row.number == number : lower_case(row.name) == lower_case(name)) return row;
  }
  Error error(Errc::invalid_argument, "there is no file type " + quote(name));
  const auto meant = nearest(in_upper_case(name), file_type_names());
  throw error.hint(meant ? "did you mean " + *meant + "?" : "Q4_K_M, Q5_K_M, Q6_K and Q8_0 are usual ones");
}

}  // namespace llamacpp

std::vector<std::string_view> file_type_names() {
  std::vector<std::string_view> names = {"auto"};
  for (const llamacpp::FileType& row : llamacpp::file_types()) names.push_back(row.name);
  names.emplace_back("COPY");
  return names;
}

std::string_view file_type_of(const Checkpoint& checkpoint) {
  const auto number = checkpoint.typed_metadata.find_uint("general.file_type");
  for (const llamacpp::FileType& row : llamacpp::file_types()) {
    if (number == row.number) return row.name;
  }
  return {};
}

}  // namespace ballast
