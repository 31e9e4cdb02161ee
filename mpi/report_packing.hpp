// A LoadReport as bytes: every rank throws the same StateDictError.
#pragma once

#include <ballast/load_state_dict.hpp>

#include "packing.hpp"

namespace ballast::mpi {

void pack_report(Packer& out, const LoadReport& report);
LoadReport unpack_report(Unpacker& in);

}  // namespace ballast::mpi
