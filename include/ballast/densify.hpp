// densify: tensors that a file stores in parts, as the one dense tensor that the parts make up.
//
// densify() may be called from several threads at once, and so may reads of its result. The result shares the storages
// of the parts and keeps them alive.
#pragma once

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>

namespace ballast {

// Every sparse tensor (COO, CSR, CSC, BSR, BSC) becomes its dense form, and every quantized tensor its F32 values,
// under the composite's own name instead of the parts, with the bits that torch's to_dense() and dequantize() give.
// Entries with the same indices are added up in the file's order. Nested tensors, and composites of which a part is
// missing, stay.
//
// Lazy: the indices are read and checked (Errc::malformed, naming the tensor) by prepare() or when the first byte is
// read, and are kept, 16 bytes an entry; the dense form is never in memory as a whole. The bytes that it adds to the
// bytes of the parts must keep to limits.max_expansion_bytes or limits.max_expansion_ratio, whichever is more.
Checkpoint densify(Checkpoint checkpoint, const Limits& limits = {});

}  // namespace ballast
