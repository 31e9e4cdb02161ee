// Tensors that a file stores in parts, as the one dense tensor that they make up.
#pragma once

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>

namespace ballast {

// Every sparse tensor (COO, CSR, CSC, BSR, BSC) becomes its dense form, and every quantized one its F32 values, under
// the composite's own name in place of the parts, with the bits that torch's to_dense() and dequantize() give. Entries
// of one place are added up in the file's order. Nested tensors, and composites of which a part is missing, stay.
//
// Lazy: the indices are read and checked (Errc::malformed, naming the tensor) when the first byte is, or by prepare(),
// and kept, 16 bytes an entry; the dense form is never in memory as a whole. What it adds to the bytes of the parts
// must keep to limits.max_expansion_bytes or limits.max_expansion_ratio, whichever is more.
Checkpoint densify(Checkpoint checkpoint, const Limits& limits = {});

}  // namespace ballast
