#include "llamacpp/recipe/mixtures.hpp"

namespace ballast::llamacpp {
namespace {

enum Condition : std::uint32_t {
  kShared4 = 1 << 0,     // four heads or more share one of keys and values
  kExperts4 = 1 << 1,    // four experts or more
  kExperts8 = 1 << 2,    // eight experts exactly
  kFalcon = 1 << 3,      // the architecture
  kImportance = 1 << 4,  // there is an importance matrix
  kRagged = 1 << 5,      // rows are not whole blocks of the file's type
  kStacked = 1 << 6,     // a stack of experts
  kFirstTwo = 1 << 7,    // of its role
  kFirstFour = 1 << 8,   // of its role
  kFirst16th = 1 << 9,   // in the first sixteenth of the blocks
  kFirst8th = 1 << 10,   // in the first eighth
  kMiddle = 1 << 11,     // neither in the first nor in the last eighth
  kMoreBits = 1 << 12,   // in the first or the last eighth, or the third of every three between
};

constexpr std::uint32_t bit_of(Role role) { return 1u << static_cast<unsigned>(role); }

struct MixtureRule {
  std::uint32_t roles;
  FileTypes types;
  std::uint32_t needs;
  std::uint32_t lacks;
  DType type;
};

namespace t = types;
constexpr std::uint32_t kAnyRole = ~0u, kOutput = bit_of(Role::output), kEmbedding = bit_of(Role::embedding),
                        kValues = bit_of(Role::attention_values), kKeys = bit_of(Role::attention_keys),
                        kQueries = bit_of(Role::attention_queries), kAttended = bit_of(Role::attention_output),
                        kDown = bit_of(Role::ffn_down), kGateUp = bit_of(Role::ffn_gate) | bit_of(Role::ffn_up);

// The first rule that applies counts; if none does, a tensor gets the file's type.
// clang-format off
constexpr MixtureRule kMixtureRules[] = {
    // roles   file types                                           needs        lacks        type
    {kOutput, t::mxfp4_moe,                                         0,           0,           DType::q8_0},
    {kOutput, t::all,                                               kFalcon,     0,           DType::q8_0},
    {kOutput, t::all,                                               kRagged,     0,           DType::q8_0},
    {kOutput, t::lowest | t::iq3_xxs,                               0,           0,           DType::q5_k},
    {kOutput, ~t::q8_0,                                             0,           0,           DType::q6_k},
    {kAnyRole, t::mxfp4_moe,                                        kStacked,    0,           DType::mxfp4},
    {kAnyRole, t::mxfp4_moe,                                        0,           0,           DType::q8_0},
    {kEmbedding, t::iq2_xxs | t::iq2_xs | t::iq1_s | t::iq1_m,      0,           0,           DType::q2_k},
    {kEmbedding, t::iq2_s | t::iq2_m | t::iq3_xxs,                  0,           0,           DType::iq3_s},
    {kEmbedding, t::tq1_0 | t::tq2_0 | t::q2_0,                     0,           0,           DType::q4_k},

    {kValues, t::lowest,                                            kShared4,    0,           DType::q4_k},
    {kValues, t::lowest,                                            kExperts4,   0,           DType::q4_k},
    {kValues, t::iq2_s | t::iq2_m,                                  0,           0,           DType::iq3_s},
    {kValues, t::lowest,                                            0,           0,           DType::q2_k},
    {kKeys, t::lowest,                                              kExperts8,   0,           DType::q4_k},
    {kDown, t::iq2_s | t::iq2_m,                                    kFirst8th,   0,           DType::iq3_s},
    {kDown, t::lowest & ~(t::iq2_s | t::iq2_m),                     kFirst8th,   0,           DType::q2_k},
    {kAttended, t::lowest,                                          kExperts8,   0,           DType::q5_k},
    {kAttended, t::iq1_s | t::iq1_m,                                0,           0,           DType::iq2_xxs},
    {kAttended, t::iq2_s | t::iq2_m,                                0,           0,           DType::iq3_s},

    {kValues, ~t::lowest,                                           kExperts8,   0,           DType::q8_0},
    {kValues, t::q2_k | t::q2_k_s | t::iq3_xxs | t::iq3_xs | t::iq3_s, kShared4, 0,           DType::q4_k},
    {kValues, t::q2_k,                                              0,           0,           DType::q3_k},
    {kValues, t::iq3_xxs,                                           0,           kImportance, DType::iq3_s},
    {kValues, t::iq3_m,                                             0,           0,           DType::q4_k},
    {kValues, t::q3_k_m,                                            kFirstTwo,   0,           DType::q5_k},
    {kValues, t::q3_k_m,                                            0,           0,           DType::q4_k},
    {kValues, t::q3_k_l,                                            0,           0,           DType::q5_k},
    {kValues, t::iq4_nl | t::iq4_xs,                                kShared4,    0,           DType::q5_k},
    {kValues, t::q4_k_m | t::q5_k_m,                                kMoreBits,   0,           DType::q6_k},
    {kValues, t::q4_k_s,                                            kFirstFour,  0,           DType::q5_k},

    {kKeys, ~t::lowest,                                             kExperts8,   0,           DType::q8_0},
    {kKeys | kQueries, t::iq3_xs,                                   0,           0,           DType::iq3_xxs},
    {kKeys | kQueries, t::iq3_xxs,                                  0,           0,           DType::iq2_s},

    {kDown, t::q2_k,                                                0,           0,           DType::q3_k},
    {kDown, t::q2_k_s,                                              kFirst8th,   0,           DType::q4_k},
    {kDown, t::iq3_xxs,                                             kFirst8th,   kImportance, DType::q4_k},
    {kDown, t::iq3_xxs,                                             0,           kImportance, DType::q3_k},
    {kDown, t::q3_k_m,                                              kFirst16th,  0,           DType::q5_k},
    {kDown, t::q3_k_m,                                              0,           kFalcon,     DType::q4_k},
    {kDown, t::q3_k_m,                                              kMoreBits,   0,           DType::q4_k},
    {kDown, t::iq3_m,                                               kFirst8th,   0,           DType::q4_k},
    {kDown, t::iq3_m,                                 kExperts8 | kMoreBits,     0,           DType::q4_k},
    {kDown, t::q3_k_l,                                              kFalcon,     0,           DType::q4_k},
    {kDown, t::q3_k_l,                                              0,           0,           DType::q5_k},
    {kDown, t::q4_k_m,                                 kFalcon | kFirst16th,     0,           DType::q6_k},
    {kDown, t::q4_k_m,                                  kFalcon | kMoreBits,     0,           DType::q5_k},
    {kDown, t::q4_k_m,                                              kMoreBits,   kFalcon,     DType::q6_k},
    {kDown, t::iq4_nl | t::iq4_xs,                                  kFirst8th,   kImportance, DType::q5_k},
    {kDown, t::q5_k_m,                                              kMoreBits,   0,           DType::q6_k},
    {kDown, t::q4_k_s,                                              kFirst8th,   kFalcon,     DType::q5_k},
    {kDown, t::q4_0,                                  kImportance | kFirst8th,   0,           DType::q4_1},
    {kDown, t::q5_0,                                  kImportance | kFirst8th,   0,           DType::q5_1},

    {kAttended, t::q3_k_l,                                          kFalcon,     0,           DType::q4_k},
    {kAttended, t::q2_k | t::q3_k_s | t::q3_k_m | t::q4_k_s | t::q4_k_m | t::iq3_xxs | t::iq3_xs | t::iq3_s |
                t::iq3_m | t::iq4_nl | t::iq4_xs,                   kExperts8,   kFalcon,     DType::q5_k},
    {kAttended, t::q2_k,                                            0, kExperts8 | kFalcon,   DType::q3_k},
    {kAttended, t::iq3_xxs,                                         0, kExperts8 | kFalcon,   DType::iq3_s},
    {kAttended, t::q3_k_m | t::iq3_m,                               0, kExperts8 | kFalcon,   DType::q4_k},
    {kAttended, t::q3_k_l,                                          0, kExperts8 | kFalcon,   DType::q5_k},

    {kGateUp, t::iq3_xs,                                            kMiddle,     0,           DType::iq3_xxs},
};
// clang-format on

bool is_fed_forward(Role role) { return role == Role::ffn_up || role == Role::ffn_gate || role == Role::ffn_down; }

}  // namespace

Mixture::Place Mixture::take_place(std::string_view name, Role role) {
  const std::uint64_t index = seen_[static_cast<std::size_t>(role)]++;
  if (role == Role::attention_values) return {index, value_tensors_};
  // A block may have several such tensors if it has experts.
  const std::int64_t block = block_of(name);
  const bool goes_by_block = facts_.experts > 1 && (file_type_.bit() & types::lowest) == 0 && block >= 0;
  return {goes_by_block ? static_cast<std::uint64_t>(block) : index, facts_.blocks};
}

std::uint32_t Mixture::conditions(const Shape& shape, Role role, Place place) const {
  const auto [i, n] = place;
  const std::uint64_t first = n / 8, last = n / 8 * 7 + n % 8 * 7 / 8;
  std::uint32_t true_ones = 0;
  const auto say = [&](Condition condition, bool is_true) {
    if (is_true) true_ones |= condition;
  };
  say(kShared4, facts_.heads_per_kv_head() >= 4);
  say(kExperts4, facts_.experts >= 4);
  say(kExperts8, facts_.experts == 8);
  say(kFalcon, facts_.architecture == "falcon");
  say(kImportance, has_importance_);
  say(kRagged, columns_of(shape) % info(file_type_.type).block_elements != 0);
  say(kStacked, matrices_of(shape) > 1 && (facts_.architecture != "bailingmoe3" || is_fed_forward(role)));
  say(kFirstTwo, i < 2);
  say(kFirstFour, i < 4);
  say(kFirst16th, i < n / 16);
  say(kFirst8th, i < first);
  say(kMiddle, i >= first && i < last);
  say(kMoreBits, i < first || i >= last || (i - first) % 3 == 2);
  return true_ones;
}

DType Mixture::next(std::string_view name, const Shape& shape, Role role) {
  const std::uint32_t true_ones = conditions(shape, role, take_place(name, role));
  DType type = file_type_.type;
  for (const MixtureRule& rule : kMixtureRules) {
    if ((rule.roles & bit_of(role)) == 0 || (rule.types & file_type_.bit()) == 0) continue;
    if ((rule.needs & ~true_ones) != 0 || (rule.lacks & true_ones) != 0) continue;
    type = rule.type;
    break;
  }
  // Where many heads share one of keys and values, values are a small part of the model.
  const bool spares = role != Role::attention_values || (file_type_.bit() & types::lowest) != 0 || !facts_.is_70b();
  return !spares && (type == DType::q3_k || type == DType::q4_k) ? DType::q5_k : type;
}

}  // namespace ballast::llamacpp
