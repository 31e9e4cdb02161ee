// The names that are known, for which uses, with which arguments, and why calling them is harmless. This is a table,
// not code: whoever wants a name to be known adds a row and says why.
//
// A row is decided by what its name stands for in the releases of its package that are in use. The name must neither
// import by a name, nor run text or byte code, nor write a file, nor reach the network, nor hand bytes to a loader,
// with whatever arguments its rule lets pass; and honest programs must write it, since every row is a way in. A row is
// a judgement about somebody else's code, and a later release may make it wrong: when in doubt, leave the name out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace ballast::pickle {

// What a pickle may do with a name of the allowlist. To name it in plain lists and dicts is always allowed, unless
// `given` says what calling it depends on. In arguments and attributes a name may stand only with kHandedOver: Python
// calls attributes of what it is given, such as keys() and items(), so whatever stands there may be called.
enum Uses : std::uint8_t {
  kNamed = 0,
  kCalled = 1,
  kBuilt = 2,         // an instance without its constructor: NEWOBJ
  kState = 4,         // an instance gets its attributes: BUILD
  kItems = 8,         // something is appended to it
  kPairs = 16,        // something is stored in it by a key
  kWeightsOnly = 32,  // torch.load(weights_only=True) accepts it, too
  kHandedOver = 64,   // it may stand in arguments and attributes: calling it with anything known is harmless
};

// What the arguments must be for a call to be known.
enum class Given : std::uint8_t {
  anything,             // they are data to it; globals among them must be known themselves, and there are no keywords
  literals,             // numbers, texts and bytes that stand in the file
  literal_text,         // one text or number that stands in the file, or nothing
  literal_bytes,        // bytes that stand in the file: _codecs.encode(text, "latin1") is how protocol 2 writes them
  latin1,               // a text that stands in the file, and "latin1"
  plain_bytes,          // nothing, literal bytes, or a text that stands in the file and "latin-1"
  one_value,            // exactly one
  class_first,          // a class that may be built comes first
  class_and_base,       // a class that may be built, a base that is one of Python's own types, and its value
  class_and_arguments,  // a class that may be built, the arguments for it, and no keywords
  calls_first,          // a function, a class, the arguments of the function, a state
  nested_class,         // a class, and the name of a class inside it
  named_ufunc,          // the name of a module of NumPy or SciPy, and of a function there
};

// For documents: "literals", "literal bytes", ...; empty for anything.
std::string_view text(Given given) noexcept;

struct Allowed {
  std::string_view path;
  std::uint8_t uses;
  Given given;
  std::string_view why;
};

constexpr std::string_view kCopies = "keeps what it is given";
constexpr std::string_view kNumber = "a number or a range of numbers";
constexpr std::string_view kText = "text";
constexpr std::string_view kBytes = "bytes";
constexpr std::string_view kEmpty = "an empty object";
constexpr std::string_view kConstant = "a constant: naming it does nothing";
constexpr std::string_view kNested = "how Python names a class inside of a class";
constexpr std::string_view kAttributes = "an object that keeps its attributes";
constexpr std::string_view kEnum = "a member of an enumeration, by its value";
constexpr std::string_view kScalar = "a number of NumPy's";
constexpr std::string_view kArray = "an array of NumPy's";
constexpr std::string_view kRandom = "the state of a generator of random numbers";
constexpr std::string_view kTensor = "a tensor of bytes that are there already";
constexpr std::string_view kModule = "a layer, which keeps its attributes; its code runs when the model does";
constexpr std::string_view kRecord = "a record of settings";
constexpr std::string_view kTable = "a table of arrays";

// clang-format off
constexpr Allowed kAllowlist[] = {
    {"_codecs.encode", kCalled | kWeightsOnly, Given::latin1, "how protocol 2 writes bytes: text whose characters are the bytes"},
    {"accelerate.state.AcceleratorState", kBuilt | kState, Given::anything, kRecord},
    {"accelerate.state.PartialState", kBuilt | kState, Given::anything, kRecord},
    {"accelerate.utils.dataclasses.DeepSpeedPlugin", kBuilt | kState, Given::anything, kRecord},
    {"accelerate.utils.dataclasses.DistributedType", kCalled | kHandedOver, Given::literals, kEnum},
    {"accelerate.utils.dataclasses.DynamoBackend", kCalled | kHandedOver, Given::literals, kEnum},
    {"accelerate.utils.dataclasses.LoggerType", kCalled | kHandedOver, Given::literals, kEnum},
    {"accelerate.utils.dataclasses.PrecisionType", kCalled | kHandedOver, Given::literals, kEnum},
    {"accelerate.utils.dataclasses.RNGType", kCalled | kHandedOver, Given::literals, kEnum},
    {"accelerate.utils.dataclasses.SageMakerDistributedType", kCalled | kHandedOver, Given::literals, kEnum},
    {"argparse.Namespace", kCalled | kBuilt | kState, Given::anything, kAttributes},
    {"builtins.Ellipsis", kHandedOver, Given::anything, kConstant},
    {"builtins.NotImplemented", kHandedOver, Given::anything, kConstant},
    {"builtins.bool", kCalled | kBuilt | kHandedOver, Given::literals, kNumber},
    {"builtins.bytearray", kCalled | kBuilt | kWeightsOnly, Given::plain_bytes, kBytes},
    {"builtins.bytes", kCalled | kBuilt, Given::plain_bytes, kBytes},
    {"builtins.complex", kCalled | kBuilt | kWeightsOnly | kHandedOver, Given::literals, kNumber},
    {"builtins.dict", kCalled | kBuilt | kState | kPairs | kHandedOver, Given::anything, kCopies},
    {"builtins.float", kCalled | kBuilt | kHandedOver, Given::literals, kNumber},
    {"builtins.frozenset", kCalled | kBuilt | kHandedOver, Given::anything, kCopies},
    {"builtins.getattr", kCalled, Given::nested_class, kNested},
    {"builtins.int", kCalled | kBuilt | kHandedOver, Given::literals, kNumber},
    {"builtins.list", kCalled | kBuilt | kItems | kHandedOver, Given::anything, kCopies},
    {"builtins.long", kCalled | kBuilt | kHandedOver, Given::literals, kNumber},
    {"builtins.object", kCalled | kBuilt | kState | kHandedOver, Given::anything, kEmpty},
    {"builtins.range", kCalled | kBuilt | kHandedOver, Given::literals, kNumber},
    {"builtins.set", kCalled | kBuilt | kItems | kWeightsOnly | kHandedOver, Given::anything, kCopies},
    {"builtins.slice", kCalled | kBuilt | kHandedOver, Given::literals, kNumber},
    {"builtins.str", kCalled | kBuilt | kHandedOver, Given::literal_text, kText},
    {"builtins.tuple", kCalled | kBuilt | kHandedOver, Given::anything, kCopies},
    {"builtins.type", kCalled, Given::one_value, "the class of one value"},
    {"builtins.unicode", kCalled | kBuilt | kHandedOver, Given::literal_text, kText},
    {"builtins.xrange", kCalled | kBuilt | kHandedOver, Given::literals, kNumber},
    {"collections.Counter", kCalled | kBuilt | kPairs | kWeightsOnly | kHandedOver, Given::anything, kCopies},
    {"collections.OrderedDict", kCalled | kBuilt | kState | kPairs | kWeightsOnly | kHandedOver, Given::anything, kCopies},
    {"collections.defaultdict", kCalled | kBuilt | kPairs | kHandedOver, Given::anything, "keeps what it is given, and its factory must be known"},
    {"collections.deque", kCalled | kBuilt | kItems | kHandedOver, Given::anything, kCopies},
    {"copyreg.__newobj__", kCalled | kState | kItems | kPairs, Given::class_first, "makes an empty instance of its first argument, which must be known"},
    {"copyreg.__newobj_ex__", kCalled | kState | kItems | kPairs, Given::class_and_arguments, "makes an empty instance of its first argument, which must be known"},
    {"copyreg._reconstructor", kCalled | kState | kItems | kPairs, Given::class_and_base, "makes an empty instance of its first argument, which must be known, by the constructor of one of Python's own types"},
    {"datetime.date", kCalled | kBuilt, Given::anything, "a date or a time"},
    {"datetime.datetime", kCalled | kBuilt, Given::anything, "a date or a time"},
    {"datetime.time", kCalled | kBuilt, Given::anything, "a date or a time"},
    {"datetime.timedelta", kCalled | kBuilt, Given::anything, "a date or a time"},
    {"datetime.timezone", kCalled | kBuilt, Given::anything, "a date or a time"},
    {"decimal.Decimal", kCalled | kBuilt | kHandedOver, Given::literals, kNumber},
    {"deepspeed.runtime.fp16.loss_scaler.DynamicLossScaler", kBuilt | kState, Given::anything, kRecord},
    {"deepspeed.runtime.fp16.loss_scaler.LossScaler", kBuilt | kState, Given::anything, kRecord},
    {"deepspeed.runtime.zero.config.ZeroStageEnum", kCalled | kHandedOver, Given::literals, kEnum},
    {"deepspeed.runtime.zero.offload_config.OffloadDeviceEnum", kCalled | kHandedOver, Given::literals, kEnum},
    {"deepspeed.utils.tensor_fragment.fragment_address", kBuilt | kState, Given::anything, kRecord},
    {"fairseq.data.dictionary.Dictionary", kBuilt | kState, Given::anything, kAttributes},
    {"fairseq.file_io.PathManager", kHandedOver, Given::anything, kConstant},
    {"fairseq.logging.meters.AverageMeter", kCalled | kBuilt | kState | kPairs, Given::anything, kAttributes},
    {"fairseq.logging.meters.MetersDict", kCalled | kBuilt | kState | kPairs, Given::anything, kAttributes},
    {"fairseq.logging.meters.StopwatchMeter", kCalled | kBuilt | kState | kPairs, Given::anything, kAttributes},
    {"fairseq.logging.meters.SumMeter", kCalled | kBuilt | kState | kPairs, Given::anything, kAttributes},
    {"fairseq.logging.meters.TimeMeter", kCalled | kBuilt | kState | kPairs, Given::anything, kAttributes},
    {"fairseq.meters.AverageMeter", kCalled | kBuilt | kState | kPairs, Given::anything, kAttributes},
    {"fairseq.meters.MetersDict", kCalled | kBuilt | kState | kPairs, Given::anything, kAttributes},
    {"fairseq.meters.StopwatchMeter", kCalled | kBuilt | kState | kPairs, Given::anything, kAttributes},
    {"fairseq.meters.TimeMeter", kCalled | kBuilt | kState | kPairs, Given::anything, kAttributes},
    {"fractions.Fraction", kCalled | kBuilt | kHandedOver, Given::literals, kNumber},
    {"functools.partial", kCalled | kBuilt | kState, Given::anything, "keeps a function and arguments, and calls nothing; the function must be known"},
    {"gym.spaces.box.Box", kBuilt | kState, Given::anything, kAttributes},
    {"gymnasium.spaces.box.Box", kBuilt | kState, Given::anything, kAttributes},
    {"joblib.numpy_pickle.NumpyArrayWrapper", kBuilt | kState | kItems, Given::anything, "says what the raw array behind it is"},
    {"lightning.fabric.utilities.data.AttributeDict", kCalled | kBuilt | kState | kPairs, Given::anything, kCopies},
    {"lightning.pytorch.utilities.parsing.AttributeDict", kCalled | kBuilt | kState | kPairs, Given::anything, kCopies},
    {"lightning_fabric.utilities.data.AttributeDict", kCalled | kBuilt | kState | kPairs, Given::anything, kCopies},
    {"numpy._core._multiarray_umath._reconstruct", kCalled | kState, Given::class_first, "an empty array, which gets its numbers as a state"},
    {"numpy._core._multiarray_umath.scalar", kCalled | kHandedOver, Given::anything, kScalar},
    {"numpy._core._ufunc_reconstruct", kCalled, Given::named_ufunc, "a function of NumPy, by a name that stands in the file and is judged in its turn"},
    {"numpy._core.multiarray._reconstruct", kCalled | kState, Given::class_first, "an empty array, which gets its numbers as a state"},
    {"numpy._core.multiarray.scalar", kCalled | kHandedOver, Given::anything, kScalar},
    {"numpy._core.numeric._frombuffer", kCalled, Given::anything, kArray},
    {"numpy.bool", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.bool_", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.bytes_", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.complex128", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.complex64", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.core._multiarray_umath._reconstruct", kCalled | kState, Given::class_first, "an empty array, which gets its numbers as a state"},
    {"numpy.core._multiarray_umath.scalar", kCalled | kHandedOver, Given::anything, kScalar},
    {"numpy.core._ufunc_reconstruct", kCalled, Given::named_ufunc, "a function of NumPy, by a name that stands in the file and is judged in its turn"},
    {"numpy.core.multiarray._reconstruct", kCalled | kState, Given::class_first, "an empty array, which gets its numbers as a state"},
    {"numpy.core.multiarray.scalar", kCalled | kHandedOver, Given::anything, kScalar},
    {"numpy.core.numeric._frombuffer", kCalled, Given::anything, kArray},
    {"numpy.datetime64", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.dtype", kCalled | kBuilt | kState | kHandedOver, Given::anything, "an element type"},
    {"numpy.float128", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.float16", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.float32", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.float64", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.floating", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.generic", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.int16", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.int32", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.int64", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.int8", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.integer", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.longdouble", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.ma.MaskedArray", kBuilt | kState, Given::anything, kArray},
    {"numpy.ma.core.MaskedArray", kBuilt | kState, Given::anything, kArray},
    {"numpy.ma.core._mareconstruct", kCalled | kState, Given::class_first, "an empty masked array"},
    {"numpy.matrix", kBuilt | kState, Given::anything, kArray},
    {"numpy.matrixlib.defmatrix.matrix", kBuilt | kState, Given::anything, kArray},
    {"numpy.ndarray", kBuilt | kState | kHandedOver, Given::anything, kArray},
    {"numpy.number", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.object_", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.random.__RandomState_ctor", kCalled | kState, Given::anything, kRandom},
    {"numpy.random._generator.Generator", kCalled | kBuilt | kState, Given::anything, kRandom},
    {"numpy.random._mt19937.MT19937", kCalled | kBuilt | kState | kHandedOver, Given::anything, kRandom},
    {"numpy.random._pcg64.PCG64", kCalled | kBuilt | kState | kHandedOver, Given::anything, kRandom},
    {"numpy.random._pcg64.PCG64DXSM", kCalled | kBuilt | kState | kHandedOver, Given::anything, kRandom},
    {"numpy.random._philox.Philox", kCalled | kBuilt | kState | kHandedOver, Given::anything, kRandom},
    {"numpy.random._pickle.__bit_generator_ctor", kCalled | kState | kHandedOver, Given::anything, kRandom},
    {"numpy.random._pickle.__generator_ctor", kCalled | kState, Given::anything, kRandom},
    {"numpy.random._pickle.__randomstate_ctor", kCalled | kState, Given::anything, kRandom},
    {"numpy.random._sfc64.SFC64", kCalled | kBuilt | kState | kHandedOver, Given::anything, kRandom},
    {"numpy.random.bit_generator.SeedSequence", kBuilt | kState, Given::anything, kRandom},
    {"numpy.random.bit_generator.__pyx_unpickle_SeedSequence", kCalled | kState, Given::anything, kRandom},
    {"numpy.random.mtrand.RandomState", kCalled | kBuilt | kState, Given::anything, kRandom},
    {"numpy.rec.recarray", kBuilt | kState, Given::anything, kArray},
    {"numpy.recarray", kBuilt | kState, Given::anything, kArray},
    {"numpy.str_", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.timedelta64", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.uint16", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.uint32", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.uint64", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.uint8", kCalled | kHandedOver, Given::literals, kScalar},
    {"numpy.void", kCalled | kHandedOver, Given::literals, kScalar},
    {"omegaconf.base.ContainerMetadata", kBuilt | kState, Given::anything, kRecord},
    {"omegaconf.base.Metadata", kBuilt | kState, Given::anything, kRecord},
    {"omegaconf.base.SCMode", kCalled | kHandedOver, Given::literals, kEnum},
    {"omegaconf.dictconfig.DictConfig", kBuilt | kState, Given::anything, kRecord},
    {"omegaconf.listconfig.ListConfig", kBuilt | kState, Given::anything, kRecord},
    {"omegaconf.nodes.AnyNode", kBuilt | kState, Given::anything, kRecord},
    {"omegaconf.nodes.BooleanNode", kBuilt | kState, Given::anything, kRecord},
    {"omegaconf.nodes.BytesNode", kBuilt | kState, Given::anything, kRecord},
    {"omegaconf.nodes.EnumNode", kBuilt | kState, Given::anything, kRecord},
    {"omegaconf.nodes.FloatNode", kBuilt | kState, Given::anything, kRecord},
    {"omegaconf.nodes.IntegerNode", kBuilt | kState, Given::anything, kRecord},
    {"omegaconf.nodes.InterpolationResultNode", kBuilt | kState, Given::anything, kRecord},
    {"omegaconf.nodes.PathNode", kBuilt | kState, Given::anything, kRecord},
    {"omegaconf.nodes.StringNode", kBuilt | kState, Given::anything, kRecord},
    {"omegaconf.nodes.ValueNode", kBuilt | kState, Given::anything, kRecord},
    {"optparse.Values", kBuilt | kState, Given::anything, kAttributes},
    {"pandas._libs.internals._unpickle_block", kCalled, Given::anything, kTable},
    {"pandas.core.frame.DataFrame", kBuilt | kState, Given::anything, kTable},
    {"pandas.core.indexes.base.Index", kBuilt | kState, Given::anything, kTable},
    {"pandas.core.indexes.base._new_Index", kCalled, Given::class_first, "makes an index of the class that it is given, which must be known"},
    {"pandas.core.indexes.category.CategoricalIndex", kBuilt | kState, Given::anything, kTable},
    {"pandas.core.indexes.datetimes.DatetimeIndex", kBuilt | kState, Given::anything, kTable},
    {"pandas.core.indexes.multi.MultiIndex", kBuilt | kState, Given::anything, kTable},
    {"pandas.core.indexes.numeric.Float64Index", kBuilt | kState, Given::anything, kTable},
    {"pandas.core.indexes.numeric.Int64Index", kBuilt | kState, Given::anything, kTable},
    {"pandas.core.indexes.numeric.UInt64Index", kBuilt | kState, Given::anything, kTable},
    {"pandas.core.indexes.range.RangeIndex", kBuilt | kState, Given::anything, kTable},
    {"pandas.core.internals.managers.BlockManager", kCalled | kBuilt | kState, Given::anything, kTable},
    {"pandas.core.internals.managers.SingleBlockManager", kCalled | kBuilt | kState, Given::anything, kTable},
    {"pandas.core.series.Series", kBuilt | kState, Given::anything, kTable},
    {"pathlib.Path", kCalled | kBuilt, Given::literals, "a path as text; making one touches no file"},
    {"pathlib.PosixPath", kCalled | kBuilt, Given::literals, "a path as text; making one touches no file"},
    {"pathlib.PurePath", kCalled | kBuilt, Given::literals, "a path as text; making one touches no file"},
    {"pathlib.PurePosixPath", kCalled | kBuilt, Given::literals, "a path as text; making one touches no file"},
    {"pathlib.PureWindowsPath", kCalled | kBuilt, Given::literals, "a path as text; making one touches no file"},
    {"pathlib.WindowsPath", kCalled | kBuilt, Given::literals, "a path as text; making one touches no file"},
    {"pathlib._local.Path", kCalled | kBuilt, Given::literals, "a path as text; making one touches no file"},
    {"pathlib._local.PosixPath", kCalled | kBuilt, Given::literals, "a path as text; making one touches no file"},
    {"pathlib._local.PurePath", kCalled | kBuilt, Given::literals, "a path as text; making one touches no file"},
    {"pathlib._local.PurePosixPath", kCalled | kBuilt, Given::literals, "a path as text; making one touches no file"},
    {"pathlib._local.PureWindowsPath", kCalled | kBuilt, Given::literals, "a path as text; making one touches no file"},
    {"pathlib._local.WindowsPath", kCalled | kBuilt, Given::literals, "a path as text; making one touches no file"},
    {"pytorch_lightning.utilities.parsing.AttributeDict", kCalled | kBuilt | kState | kPairs, Given::anything, kCopies},
    {"re._compile", kCalled, Given::literals, "compiles a regular expression that stands in the file"},
    {"torch.Generator", kCalled | kBuilt | kState, Given::anything, kRandom},
    {"torch.Size", kCalled | kBuilt | kWeightsOnly | kHandedOver, Given::anything, kCopies},
    {"torch.Tensor", kCalled | kBuilt | kState | kWeightsOnly, Given::anything, kTensor},
    {"torch.UntypedStorage", kCalled | kBuilt | kState, Given::anything, kTensor},
    {"torch._C.Generator", kCalled | kBuilt | kState, Given::anything, kRandom},
    {"torch._UntypedStorage", kCalled | kBuilt | kState, Given::anything, kTensor},
    {"torch._tensor.Tensor", kCalled | kBuilt | kState, Given::anything, kTensor},
    {"torch._tensor._rebuild_from_type", kCalled | kState, Given::calls_first, "calls its first argument, which must be known for what it is given"},
    {"torch._tensor._rebuild_from_type_v2", kCalled | kState | kWeightsOnly, Given::calls_first, "calls its first argument, which must be known for what it is given"},
    {"torch._utils._rebuild_device_tensor_from_cpu_tensor", kCalled | kState | kWeightsOnly, Given::anything, kTensor},
    {"torch._utils._rebuild_device_tensor_from_numpy", kCalled | kState | kWeightsOnly, Given::anything, kTensor},
    {"torch._utils._rebuild_meta_tensor_no_storage", kCalled | kState | kWeightsOnly, Given::anything, kTensor},
    {"torch._utils._rebuild_nested_tensor", kCalled | kState | kWeightsOnly, Given::anything, kTensor},
    {"torch._utils._rebuild_parameter", kCalled | kState | kWeightsOnly, Given::anything, kTensor},
    {"torch._utils._rebuild_parameter_with_state", kCalled | kState | kWeightsOnly, Given::anything, kTensor},
    {"torch._utils._rebuild_qtensor", kCalled | kState | kWeightsOnly, Given::anything, kTensor},
    {"torch._utils._rebuild_sparse_csr_tensor", kCalled | kState, Given::anything, kTensor},
    {"torch._utils._rebuild_sparse_tensor", kCalled | kState | kWeightsOnly, Given::anything, kTensor},
    {"torch._utils._rebuild_tensor", kCalled | kState | kWeightsOnly, Given::anything, kTensor},
    {"torch._utils._rebuild_tensor_v2", kCalled | kState | kWeightsOnly, Given::anything, kTensor},
    {"torch._utils._rebuild_tensor_v3", kCalled | kState | kWeightsOnly, Given::anything, kTensor},
    {"torch._utils._rebuild_wrapper_subclass", kCalled | kState | kWeightsOnly, Given::class_first, "a tensor of the class that it is given, which must be known"},
    {"torch._utils._rebuild_xla_tensor", kCalled | kState | kWeightsOnly, Given::anything, kTensor},
    {"torch.amp.grad_scaler.GradScaler", kBuilt | kState, Given::anything, kAttributes},
    {"torch.amp.grad_scaler.OptState", kCalled | kHandedOver, Given::literals, kEnum},
    {"torch.amp.grad_scaler._refresh_per_optimizer_state", kHandedOver, Given::anything, "makes a small dict, for a defaultdict"},
    {"torch.autograd.variable.Variable", kCalled | kBuilt | kState, Given::anything, kTensor},
    {"torch.channels_last", kHandedOver, Given::anything, kConstant},
    {"torch.channels_last_3d", kHandedOver, Given::anything, kConstant},
    {"torch.contiguous_format", kHandedOver, Given::anything, kConstant},
    {"torch.cuda.amp.grad_scaler.GradScaler", kBuilt | kState, Given::anything, kAttributes},
    {"torch.cuda.amp.grad_scaler.OptState", kCalled | kHandedOver, Given::literals, kEnum},
    {"torch.cuda.amp.grad_scaler._refresh_per_optimizer_state", kHandedOver, Given::anything, "makes a small dict, for a defaultdict"},
    {"torch.device", kCalled | kBuilt | kWeightsOnly, Given::literals, "a device's name"},
    {"torch.distributed._shard.metadata.ShardMetadata", kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed._shard.sharded_tensor.metadata.MEM_FORMAT_ENCODING", kCalled | kHandedOver, Given::literals, kEnum},
    {"torch.distributed._shard.sharded_tensor.metadata.ShardedTensorMetadata", kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed._shard.sharded_tensor.metadata.TensorProperties", kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed._tensor.placement_types.DTensorSpec", kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed._tensor.placement_types.Partial", kCalled | kBuilt | kState, Given::literals, kRecord},
    {"torch.distributed._tensor.placement_types.Replicate", kCalled | kBuilt | kState, Given::literals, kRecord},
    {"torch.distributed._tensor.placement_types.Shard", kCalled | kBuilt | kState, Given::literals, kRecord},
    {"torch.distributed._tensor.placement_types.TensorMeta", kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed._tensor.placement_types._StridedShard", kCalled | kBuilt | kState, Given::literals, kRecord},
    {"torch.distributed.checkpoint.filesystem._StorageInfo", kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed.checkpoint.filesystem._StoragePrefix", kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed.checkpoint.metadata.BytesStorageMetadata", kCalled | kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed.checkpoint.metadata.ChunkStorageMetadata", kCalled | kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed.checkpoint.metadata.Metadata", kCalled | kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed.checkpoint.metadata.MetadataIndex", kCalled | kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed.checkpoint.metadata.StorageMeta", kCalled | kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed.checkpoint.metadata.TensorProperties", kCalled | kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed.checkpoint.metadata.TensorStorageMetadata", kCalled | kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING", kCalled | kHandedOver, Given::literals, kEnum},
    {"torch.distributed.checkpoint.planner.SavePlan", kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed.checkpoint.planner.TensorWriteData", kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed.checkpoint.planner.WriteItem", kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed.checkpoint.planner.WriteItemType", kCalled | kHandedOver, Given::literals, kEnum},
    {"torch.distributed.checkpoint.storage.WriteResult", kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed.tensor._dtensor_spec.DTensorSpec", kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed.tensor._dtensor_spec.TensorMeta", kBuilt | kState, Given::anything, kRecord},
    {"torch.distributed.tensor.placement_types.Partial", kCalled | kBuilt | kState, Given::literals, kRecord},
    {"torch.distributed.tensor.placement_types.Replicate", kCalled | kBuilt | kState, Given::literals, kRecord},
    {"torch.distributed.tensor.placement_types.Shard", kCalled | kBuilt | kState, Given::literals, kRecord},
    {"torch.distributed.tensor.placement_types._StridedShard", kCalled | kBuilt | kState, Given::literals, kRecord},
    {"torch.jit._pickle.build_boollist", kCalled, Given::anything, kCopies},
    {"torch.jit._pickle.build_doublelist", kCalled, Given::anything, kCopies},
    {"torch.jit._pickle.build_intlist", kCalled, Given::anything, kCopies},
    {"torch.jit._pickle.build_tensor_from_id", kCalled, Given::anything, kCopies},
    {"torch.jit._pickle.build_tensorlist", kCalled, Given::anything, kCopies},
    {"torch.jit._pickle.restore_type_tag", kCalled, Given::anything, "gives back its first argument"},
    {"torch.nn.backends.thnn._get_thnn_function_backend", kCalled, Given::literals, "gives back a table of torch 0.3"},
    {"torch.nn.parameter.Buffer", kCalled | kBuilt | kState, Given::anything, kTensor},
    {"torch.nn.parameter.Parameter", kCalled | kBuilt | kState | kWeightsOnly, Given::anything, kTensor},
    {"torch.nn.parameter.UninitializedBuffer", kCalled | kBuilt | kState, Given::anything, kTensor},
    {"torch.nn.parameter.UninitializedParameter", kCalled | kBuilt | kState, Given::anything, kTensor},
    {"torch.per_channel_affine", kWeightsOnly | kHandedOver, Given::anything, kConstant},
    {"torch.per_channel_affine_float_qparams", kWeightsOnly | kHandedOver, Given::anything, kConstant},
    {"torch.per_channel_symmetric", kWeightsOnly | kHandedOver, Given::anything, kConstant},
    {"torch.per_tensor_affine", kWeightsOnly | kHandedOver, Given::anything, kConstant},
    {"torch.per_tensor_symmetric", kWeightsOnly | kHandedOver, Given::anything, kConstant},
    {"torch.preserve_format", kHandedOver, Given::anything, kConstant},
    {"torch.serialization._get_layout", kCalled | kWeightsOnly, Given::literals, "looks a layout up by its name"},
    {"torch.sparse_coo", kHandedOver, Given::anything, kConstant},
    {"torch.sparse_csr", kHandedOver, Given::anything, kConstant},
    {"torch.storage.TypedStorage", kCalled | kBuilt | kState | kWeightsOnly, Given::anything, kTensor},
    {"torch.storage.UntypedStorage", kCalled | kBuilt | kState | kWeightsOnly, Given::anything, kTensor},
    {"torch.storage._TypedStorage", kCalled | kBuilt | kState, Given::anything, kTensor},
    {"torch.storage._UntypedStorage", kCalled | kBuilt | kState, Given::anything, kTensor},
    {"torch.storage._load_from_bytes", kCalled, Given::literal_bytes, "loads a file that stands in the pickle as it is and is looked into"},
    {"torch.strided", kHandedOver, Given::anything, kConstant},
    {"torch.utils.hooks.RemovableHandle", kBuilt | kState, Given::anything, kAttributes},
    {"torch.utils.hooks.unserializable_hook", kHandedOver, Given::anything, kConstant},
    {"torch.utils.hooks.warn_if_has_hooks", kHandedOver, Given::anything, kConstant},
    {"transformers.deepspeed.HfTrainerDeepSpeedConfig", kBuilt | kState, Given::anything, kRecord},
    {"transformers.generation.configuration_utils.GenerationConfig", kBuilt | kState, Given::anything, kRecord},
    {"transformers.integrations.deepspeed.HfDeepSpeedConfig", kBuilt | kState, Given::anything, kRecord},
    {"transformers.integrations.deepspeed.HfTrainerDeepSpeedConfig", kBuilt | kState, Given::anything, kRecord},
    {"transformers.trainer_callback.TrainerState", kBuilt | kState, Given::anything, kRecord},
    {"transformers.trainer_pt_utils.AcceleratorConfig", kBuilt | kState, Given::anything, kRecord},
    {"transformers.trainer_utils.EvaluationStrategy", kCalled | kHandedOver, Given::literals, kEnum},
    {"transformers.trainer_utils.FSDPOption", kCalled | kHandedOver, Given::literals, kEnum},
    {"transformers.trainer_utils.HubStrategy", kCalled | kHandedOver, Given::literals, kEnum},
    {"transformers.trainer_utils.IntervalStrategy", kCalled | kHandedOver, Given::literals, kEnum},
    {"transformers.trainer_utils.SaveStrategy", kCalled | kHandedOver, Given::literals, kEnum},
    {"transformers.trainer_utils.SchedulerType", kCalled | kHandedOver, Given::literals, kEnum},
    {"transformers.trainer_utils.ShardedDDPOption", kCalled | kHandedOver, Given::literals, kEnum},
    {"transformers.training_args.OptimizerNames", kCalled | kHandedOver, Given::literals, kEnum},
    {"transformers.training_args.ParallelMode", kCalled | kHandedOver, Given::literals, kEnum},
    {"transformers.training_args.TrainingArguments", kBuilt | kState, Given::anything, kRecord},
    {"transformers.training_args_seq2seq.Seq2SeqTrainingArguments", kBuilt | kState, Given::anything, kRecord},
    {"types.SimpleNamespace", kCalled | kBuilt | kState, Given::anything, kAttributes},
    {"ultralytics.utils.IterableSimpleNamespace", kCalled | kBuilt | kState, Given::anything, kAttributes},
    {"ultralytics.yolo.utils.IterableSimpleNamespace", kCalled | kBuilt | kState, Given::anything, kAttributes},
    {"uuid.SafeUUID", kCalled | kHandedOver, Given::literals, kEnum},
    {"uuid.UUID", kBuilt | kState, Given::anything, kAttributes},
};
// clang-format on

// The classes of a package's modules, by the beginning of the module and the end of the name. Only classes are known
// this way: a name with a small first letter is a function's, and a dot leads elsewhere.
struct Family {
  std::string_view module;
  std::string_view name_end;
  Allowed row;
};

// clang-format off
constexpr Family kFamilies[] = {
    {"__torch__.", "", {"__torch__.*", kBuilt | kState, Given::anything, "TorchScript's own classes, which its loader makes and Python does not know"}},
    {"gym.spaces.", "", {"gym.spaces.*", kBuilt | kState, Given::anything, kAttributes}},
    {"gymnasium.spaces.", "", {"gymnasium.spaces.*", kBuilt | kState, Given::anything, kAttributes}},
    {"lightning.pytorch.callbacks.", "Checkpoint", {"lightning.pytorch.callbacks.*Checkpoint", kBuilt | kState, Given::anything, kAttributes}},
    {"lightning.pytorch.callbacks.", "Stopping", {"lightning.pytorch.callbacks.*Stopping", kBuilt | kState, Given::anything, kAttributes}},
    {"lightning.pytorch.callbacks.", "Monitor", {"lightning.pytorch.callbacks.*Monitor", kBuilt | kState, Given::anything, kAttributes}},
    {"pytorch_lightning.callbacks.", "Checkpoint", {"pytorch_lightning.callbacks.*Checkpoint", kBuilt | kState, Given::anything, kAttributes}},
    {"pytorch_lightning.callbacks.", "Stopping", {"pytorch_lightning.callbacks.*Stopping", kBuilt | kState, Given::anything, kAttributes}},
    {"pytorch_lightning.callbacks.", "Monitor", {"pytorch_lightning.callbacks.*Monitor", kBuilt | kState, Given::anything, kAttributes}},
    {"timm.layers.", "", {"timm.layers.*", kBuilt | kState | kHandedOver, Given::anything, kModule}},
    {"timm.models.", "", {"timm.models.*", kBuilt | kState, Given::anything, kModule}},
    {"torch.distributions.", "", {"torch.distributions.*", kBuilt | kState, Given::anything, kAttributes}},
    {"torch.nn.modules.", "", {"torch.nn.modules.*", kBuilt | kState | kHandedOver, Given::anything, kModule}},
    {"torch.optim.", "", {"torch.optim.*", kBuilt | kState, Given::anything, kAttributes}},
    {"torchvision.models.", "", {"torchvision.models.*", kBuilt | kState, Given::anything, kModule}},
    {"torchvision.ops.", "", {"torchvision.ops.*", kBuilt | kState | kHandedOver, Given::anything, kModule}},
    {"torchvision.transforms.", "", {"torchvision.transforms.*", kBuilt | kState, Given::anything, kAttributes}},
    {"transformers.models.", "Config", {"transformers.models.*Config", kBuilt | kState, Given::anything, kRecord}},
    {"ultralytics.nn.", "", {"ultralytics.nn.*", kBuilt | kState, Given::anything, kModule}},
};
// clang-format on

// For names in torch's own tables of element types.
constexpr Allowed kDType = {"torch.DTYPE", kHandedOver | kWeightsOnly, Given::anything, "an element type"};
constexpr Allowed kElementClass = {"torch.TYPETensor, torch.TYPEStorage", kCalled | kBuilt | kState | kWeightsOnly,
                                   Given::anything, kTensor};

static_assert(std::ranges::is_sorted(kAllowlist, {}, &Allowed::path));

}  // namespace ballast::pickle
