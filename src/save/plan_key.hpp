// The key of a plan: a digest of what the plan will make of which bytes of which files, as 16 hexadecimal digits.
//
// Two runs with the same key write the same bytes. So the key covers everything that the bytes depend on: the files
// that are read, as they are now, what is done to which of their bytes, and where the results go.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <ballast/save.hpp>

#include "tensor/same_sources.hpp"

namespace ballast {

// Empty if a tensor comes from anything but `sources`: then nobody can say whether it is still the same.
std::string plan_key(const SavePlan& plan, std::span<const CheckpointFile> sources);

// What the plan reads.
SourceList sources_of(const SavePlan& plan);

// A digest of which files the plan writes, what is where in them, and how it is made of its sources: plans that differ
// here would not write the same. On all machines that see the same files, the same plan has the same digest.
std::uint64_t plan_digest(const SavePlan& plan, const SourceList& sources);

}  // namespace ballast
