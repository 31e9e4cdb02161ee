// What the globals of a pickle mean for a checkpoint: refused, dangerous, or noted as unknown.
#pragma once

#include <ballast/checkpoint.hpp>
#include <ballast/global.hpp>

#include "formats/pickle/graph.hpp"

namespace ballast::torch {

// Throws Errc::unsafe if `safety` is strict and torch's weights_only would refuse a global.
void check_globals(const pickle::Graph& graph, Safety safety, const std::string& member, Checkpoint& checkpoint);

}  // namespace ballast::torch
