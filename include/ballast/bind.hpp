// Binding: the tensors inside a C++ object, by the names that a checkpoint gives them.
//
//   struct Linear { ballast::Tensor weight, bias; };
//   BALLAST_FIELDS(Linear, weight, bias)
//   struct Model { std::vector<Linear> layers; std::optional<Linear> head; };
//   BALLAST_FIELDS(Model, layers, head)
//
//   state_dict(model)      layers.0.weight, layers.0.bias, layers.1.weight, ..., head.bias
//
// A type that wants other names, or has private fields, has a member function instead:
//
//   auto fields() { return ballast::fields(ballast::field("q_proj", query_), ballast::field("bias", bias_).optional());
//   }
//
// Vectors, arrays, maps, optionals, pointers, pairs and tuples recurse; an empty one has no fields. To bind a tensor
// type of your own, specialise TensorAccess.
//
// The model owns its memory and must outlive everything that is bound to it. Nothing here locks: only one thread at a
// time may bind a model or fill it. Binding copies no data.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ballast/state_dict.hpp>

namespace ballast {

// One field: its name, a reference to it, and whether it is optional or persistent. An empty name adds nothing to the
// names inside.
template <class T>
struct FieldOf {
  std::string_view name;
  T& value;
  bool is_optional = false, is_persistent = true;

  FieldOf optional() const { return {name, value, true, is_persistent}; }       // may be missing from a checkpoint
  FieldOf not_persistent() const { return {name, value, is_optional, false}; }  // is never in a checkpoint
};
template <class T>
FieldOf<T> field(std::string_view name, T& value) {
  return {name, value};
}
template <class... T>
std::tuple<FieldOf<T>...> fields(FieldOf<T>... all) {
  return {all...};
}

// The functions that a specialisation for your own tensor type must have:
//   static DType dtype(const T&);
//   static std::optional<Shape> shape(const T&);                            empty if any shape will do
//   static std::span<std::byte> prepare(T&, DType, const Shape&);           memory for a tensor of this dtype and shape
//   static std::span<const std::byte> bytes(const T&);                      the bytes of its elements
template <class T>
struct TensorAccess;

namespace binding {

template <class T>
concept Number =
    (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

template <Number T>
constexpr DType number_dtype() {
  if constexpr (std::is_same_v<T, float16>) return DType::f16;
  if constexpr (std::is_same_v<T, bfloat16>) return DType::bf16;
  if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? DType::f32 : DType::f64;
  constexpr DType kUnsigned[] = {DType::u8, DType::u16, DType::u32, DType::u64};
  constexpr DType kSigned[] = {DType::i8, DType::i16, DType::i32, DType::i64};
  constexpr std::size_t kSize = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  return std::is_signed_v<T> ? kSigned[kSize] : kUnsigned[kSize];
}

}  // namespace binding

// A vector of numbers takes any shape; its elements are in row-major order.
template <binding::Number T>
struct TensorAccess<std::vector<T>> {
  static DType dtype(const std::vector<T>&) { return binding::number_dtype<T>(); }
  static std::optional<Shape> shape(const std::vector<T>&) { return std::nullopt; }
  static std::span<std::byte> prepare(std::vector<T>& values, DType, const Shape& shape) {
    values.resize(static_cast<std::size_t>(shape.numel().value_or(0)));
    return std::as_writable_bytes(std::span(values));
  }
  static std::span<const std::byte> bytes(const std::vector<T>& values) { return std::as_bytes(std::span(values)); }
};

template <class T>
concept BoundTensorType = std::is_same_v<T, Tensor> || requires(T& value, const T& constant, const Shape& shape) {
  { TensorAccess<T>::dtype(constant) } -> std::same_as<DType>;
  { TensorAccess<T>::shape(constant) } -> std::same_as<std::optional<Shape>>;
  { TensorAccess<T>::prepare(value, DType::f32, shape) } -> std::same_as<std::span<std::byte>>;
  { TensorAccess<T>::bytes(constant) } -> std::same_as<std::span<const std::byte>>;
};

// One tensor of a model, whatever its type: its present value, and how to give it another.
struct BoundTensor {
  std::string name;
  bool is_optional = false, is_persistent = true;
  std::optional<DType> dtype;  // empty if it takes any
  std::optional<Shape> shape;  // empty if it takes any
  // One of the two is set. `assign` makes the field the given tensor; `prepare` returns the memory to copy a tensor
  // into.
  std::function<void(Tensor)> assign;
  std::function<std::span<std::byte>(DType, const Shape&)> prepare;
  std::function<Tensor()> value;  // the present value; a view of a field's own memory is valid as long as the model
};

namespace binding {

template <class T>
concept HasFieldsMember = requires(T& object) {
  object.fields();
};
template <class T>
concept HasFieldsFunction = requires(T& object) {
  ballast_fields(object);
};
template <class T>
concept PointerLike = requires(T& pointer) {
  static_cast<bool>(pointer);
  *pointer;
}
&&!std::is_array_v<T>;
template <class T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
};
template <class T>
concept MapLike = requires {
  typename T::mapped_type;
};
template <class T>
concept ListLike = requires(T& list) {
  list.begin();
  list.end();
}
&&!MapLike<T>;

template <class T>
inline constexpr bool always_false = false;

inline std::string joined(std::string_view prefix, std::string_view name) {
  if (prefix.empty() || name.empty()) return std::string(prefix) + std::string(name);
  return std::string(prefix) + "." + std::string(name);
}

struct Context {
  std::string name;
  bool is_optional = false, is_persistent = true;

  Context inside(std::string_view part) const { return {joined(name, part), is_optional, is_persistent}; }
};

BoundTensor bound(Tensor& tensor, const Context& context);  // for a field of type ballast::Tensor

template <class T>
BoundTensor bound_access(T& value, const Context& context) {
  using Access = TensorAccess<T>;
  BoundTensor tensor{
      context.name, context.is_optional, context.is_persistent, Access::dtype(value), Access::shape(value), {}, {}, {}};
  tensor.prepare = [&value](DType dtype, const Shape& shape) { return Access::prepare(value, dtype, shape); };
  tensor.value = [&value] {
    const auto bytes = Access::bytes(value);
    const Shape shape = Access::shape(value).value_or(Shape{bytes.size() / info(Access::dtype(value)).block_bytes});
    return Tensor(Access::dtype(value), shape, memory_storage(bytes, nullptr));
  };
  return tensor;
}

template <class T>
void walk(T& object, const Context& context, std::vector<BoundTensor>& found);

template <class Tuple>
void walk_fields(const Tuple& all, const Context& context, std::vector<BoundTensor>& found) {
  const auto visit = [&](const auto& field) {
    Context inner = context.inside(field.name);
    inner.is_optional = inner.is_optional || field.is_optional;
    inner.is_persistent = inner.is_persistent && field.is_persistent;
    walk(field.value, inner, found);
  };
  std::apply([&](const auto&... field) { (visit(field), ...); }, all);
}

template <class Map>
void walk_map(Map& map, const Context& context, std::vector<BoundTensor>& found) {
  for (auto& [key, value] : map) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(key)>>)
      walk(value, context.inside(std::to_string(key)), found);
    else
      walk(value, context.inside(key), found);
  }
}

template <class T>
void walk(T& object, const Context& context, std::vector<BoundTensor>& found) {
  if constexpr (std::is_same_v<T, Tensor>) {
    found.push_back(bound(object, context));
  } else if constexpr (BoundTensorType<T>) {
    found.push_back(bound_access(object, context));
  } else if constexpr (HasFieldsMember<T>) {
    walk_fields(object.fields(), context, found);
  } else if constexpr (HasFieldsFunction<T>) {
    walk_fields(ballast_fields(object), context, found);
  } else if constexpr (MapLike<T>) {
    walk_map(object, context, found);
  } else if constexpr (ListLike<T>) {
    std::size_t number = 0;
    for (auto& item : object) walk(item, context.inside(std::to_string(number++)), found);
  } else if constexpr (TupleLike<T>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (walk(std::get<I>(object), context.inside(std::to_string(I)), found), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (PointerLike<T>) {
    if (object) walk(*object, context, found);
  } else if constexpr (requires { sizeof(TensorAccess<T>); }) {
    static_assert(
        always_false<T>,
        "ballast::TensorAccess is specialised for this type, but does not have all of dtype, shape, prepare and "
        "bytes with the signatures that <ballast/bind.hpp> says.");
  } else {
    static_assert(always_false<T>,
                  "Ballast does not know what is inside this type. Say it with BALLAST_FIELDS(Type, a, b), with a "
                  "member fields(), or, if it is a tensor, by specialising ballast::TensorAccess.");
  }
}

}  // namespace binding

// Every tensor of the model, in the order of its fields. The model must outlive the result.
template <class Model>
std::vector<BoundTensor> bind(Model& model, std::string_view prefix = {}) {
  std::vector<BoundTensor> found;
  binding::walk(model, {std::string(prefix)}, found);
  return found;
}

// The model's persistent tensors by name. Tensors of other types than ballast::Tensor are views of the model's memory.
template <class Model>
StateDict state_dict(Model& model, std::string_view prefix = {}) {
  StateDict state;
  for (const BoundTensor& tensor : bind(model, prefix)) {
    if (tensor.is_persistent) state.insert(tensor.name, tensor.value());
  }
  return state;
}

template <class Model>
std::vector<Tensor> parameters(Model& model) {
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : state_dict(model)) tensors.push_back(tensor);
  return tensors;
}

}  // namespace ballast

// Declares the fields of a type; use it in the scope of the type. The fields have the names of the members.
#define BALLAST_FIELDS(Type, ...)                                 \
  template <class BallastSelf>                                    \
  requires std::is_same_v<std::remove_const_t<BallastSelf>, Type> \
  auto ballast_fields(BallastSelf& self) { return ::ballast::fields(BALLAST_FOR_EACH(BALLAST_ONE_FIELD, __VA_ARGS__)); }
#define BALLAST_ONE_FIELD(member) ::ballast::field(#member, self.member)

// Expands the macro for each member, with commas between: 256 rescans, so at most 256 members.
#define BALLAST_EXPAND(...) BALLAST_EXPAND3(BALLAST_EXPAND3(BALLAST_EXPAND3(BALLAST_EXPAND3(__VA_ARGS__))))
#define BALLAST_EXPAND3(...) BALLAST_EXPAND2(BALLAST_EXPAND2(BALLAST_EXPAND2(BALLAST_EXPAND2(__VA_ARGS__))))
#define BALLAST_EXPAND2(...) BALLAST_EXPAND1(BALLAST_EXPAND1(BALLAST_EXPAND1(BALLAST_EXPAND1(__VA_ARGS__))))
#define BALLAST_EXPAND1(...) __VA_ARGS__
#define BALLAST_PARENTHESES ()
#define BALLAST_FOR_EACH(macro, ...) __VA_OPT__(BALLAST_EXPAND(BALLAST_FOR_EACH_HELPER(macro, __VA_ARGS__)))
#define BALLAST_FOR_EACH_HELPER(macro, first, ...) \
  macro(first) __VA_OPT__(, BALLAST_FOR_EACH_AGAIN BALLAST_PARENTHESES(macro, __VA_ARGS__))
#define BALLAST_FOR_EACH_AGAIN() BALLAST_FOR_EACH_HELPER
