// What wrappers put into names while a model is trained: "module._orig_mod.layers.0._fsdp_wrapped_module.weight" is
// "layers.0.weight" wrapped by DistributedDataParallel, torch.compile and FSDP. Some of the names may have them, at any
// place.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <ballast/checkpoint.hpp>

namespace ballast {

// What can stand before all names of a model, with its dot: "module.", "_orig_mod.".
std::span<const std::string_view> wrappers_before_names();

// The name without the parts that torch.compile, FSDP and checkpointing put anywhere into it. A name that is nothing
// else stays.
std::string without_wrappers(std::string_view name);

// The same without any "module.", too, which DistributedDataParallel and DataParallel put into names. It may be the
// name of a module of the model, so something else must confirm that it is none.
std::string without_all_wrappers(std::string_view name);

// Every name without wrappers and without a "module." at its beginning, with a note of how many there were. Names that
// would become the same stay.
Checkpoint take_out_wrappers(Checkpoint checkpoint);

// Names that are not `wanted` become the wanted names that differ from them in wrappers only, if no other tensor has or
// gets this name. The other names lose their first wrappers if any name was changed. A note says how many were changed.
Checkpoint match_wrapped_names(Checkpoint checkpoint, std::span<const std::string> wanted);

}  // namespace ballast
