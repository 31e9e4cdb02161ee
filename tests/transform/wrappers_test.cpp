// Names without what wrappers of training put into them.
#include "transform/wrappers.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::names_of;
using Names = std::vector<std::string>;

Checkpoint named(const Names& names) {
  Checkpoint checkpoint;
  for (const std::string& name : names) checkpoint.tensors.insert(name, test::numbers({1}));
  return checkpoint;
}

Names matched(const Names& names, const Names& wanted) { return names_of(match_wrapped_names(named(names), wanted)); }

TEST(Wrappers, AreTakenOutWhereverTheyStand) {
  EXPECT_EQ(without_wrappers("layers.0._orig_mod.attn._fsdp_wrapped_module.w"), "layers.0.attn.w");
  EXPECT_EQ(without_wrappers("a_orig_mod.w"), "a_orig_mod.w") << "no part of a name";
  EXPECT_EQ(without_wrappers("_orig_mod."), "_orig_mod.") << "nothing would be left";
  EXPECT_EQ(without_wrappers("module.w"), "module.w");
  EXPECT_EQ(without_all_wrappers("module._orig_mod.module.layers.module.0.w"), "layers.0.w");
  EXPECT_EQ(without_all_wrappers("submodule.w"), "submodule.w");
}

TEST(Wrappers, OfSomeNamesAreTakenOutWithANote) {
  const Checkpoint after =
      take_out_wrappers(named({"module._orig_mod.a", "b", "c._checkpoint_wrapped_module.d", "e.module.f"}));
  EXPECT_EQ(names_of(after), (Names{"a", "b", "c.d", "e.module.f"}));
  ASSERT_EQ(after.notes.size(), 1u);
  EXPECT_EQ(after.notes[0].text,
            "wrappers of training put parts into 2 of 4 names: \"module._orig_mod.a\" is taken for \"a\"");
  EXPECT_TRUE(take_out_wrappers(named({"a", "b"})).notes.empty());
}

TEST(Wrappers, StayWhereTwoNamesWouldBecomeTheSame) {
  EXPECT_EQ(names_of(take_out_wrappers(named({"module.a", "_orig_mod.a", "module.b"}))),
            (Names{"module.a", "_orig_mod.a", "b"}));
  EXPECT_EQ(names_of(take_out_wrappers(named({"module.a", "a"}))), (Names{"module.a", "a"}));
}

TEST(Wrappers, AreLookedThroughForTheNamesOfAModel) {
  EXPECT_EQ(matched({"module._orig_mod.a.w", "a.b"}, {"a.w", "a.b"}), (Names{"a.w", "a.b"}));
  EXPECT_EQ(matched({"net.module.a"}, {"net.a"}), Names{"net.a"});
  EXPECT_EQ(matched({"a", "b"}, {"module.a", "_orig_mod.b"}), (Names{"module.a", "_orig_mod.b"})) << "the other way";
  EXPECT_EQ(matched({"module.a", "_orig_mod.a"}, {"a"}), (Names{"module.a", "_orig_mod.a"})) << "which of them?";
  EXPECT_EQ(matched({"module.a", "a"}, {"a"}), (Names{"module.a", "a"}));
  EXPECT_EQ(matched({"a"}, {"module.a", "_orig_mod.a"}), Names{"a"});
  EXPECT_EQ(matched({"module.x"}, {"a"}), Names{"module.x"}) << "nothing is found";
  EXPECT_EQ(matched({"module.x", "module.a"}, {"a"}), (Names{"x", "a"})) << "so that the report is about names";
}

}  // namespace
}  // namespace ballast
