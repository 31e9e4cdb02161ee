"""ballast.gguf: what programs that were written for gguf-py find."""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest

import ballast
from ballast.gguf import (
    GGML_QUANT_SIZES,
    GGMLQuantizationType,
    GGUFEndian,
    GGUFReader,
    GGUFValueType,
    QuantError,
    ReaderField,
    dequantize,
    quant_shape_from_byte_shape,
    quant_shape_to_byte_shape,
    quantize,
)

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "vectors" / "gguf"
GGML = VECTORS.with_name("ggml")
SOUND = sorted(path for path in VECTORS.glob("*.gguf") if not path.name.startswith(("bad_", "version1")))
PLAIN = ("F32", "F16", "F64", "I8", "I16", "I32", "I64")
NOT_ENCODED = ("Q8_1", "IQ1_S", "IQ2_XXS", "IQ2_XS", "I8", "I16", "I32", "I64")


def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(raw)) + raw


def key(name, type, value):
    return text(name) + struct.pack("<I", type) + value


def tensor(name="w", shape=(4,), type=0, offset=0):
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, type, offset)


def gguf(keys=(), tensors=(), data=bytes(64), version=3, counts=None):
    head = b"GGUF" + struct.pack("<IQQ", version, *(counts or (len(tensors), len(keys))))
    head += b"".join(keys) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + data


@pytest.fixture
def write(tmp_path):
    def write(*args, **options):
        path = tmp_path / "made.gguf"
        path.write_bytes(gguf(*args, **options))
        return path

    return write


# Fields.


def test_the_first_fields_are_the_version_and_the_counts(write):
    reader = GGUFReader(write([key("a", 4, struct.pack("<I", 7))], [tensor()]))
    assert list(reader.fields) == ["GGUF.version", "GGUF.tensor_count", "GGUF.kv_count", "a"]
    assert [field.contents() for field in reader.fields.values()] == [3, 1, 1, 7]
    assert [field.offset for field in reader.fields.values()] == [4, 8, 16, 24]
    version = reader.fields["GGUF.version"]
    assert (len(version.parts), version.data, version.types) == (1, [0], [GGUFValueType.UINT32])


def test_a_text_has_its_length_key_type_length_and_bytes_as_parts(write):
    field = GGUFReader(write([key("name", 8, text("tiny"))])).get_field("name")
    assert [part.tobytes() for part in field.parts] == [
        struct.pack("<Q", 4), b"name", struct.pack("<I", 8), struct.pack("<Q", 4), b"tiny",
    ]  # fmt: skip
    assert (field.data, field.types, field.contents()) == ([4], [GGUFValueType.STRING], "tiny")
    assert [part.dtype for part in field.parts] == ["u8", "u1", "u4", "u8", "u1"]


def test_a_field_of_strings_has_one_part_for_each(write):
    words = struct.pack("<IQ", 8, 3) + text("a") + text("") + text("ccc")
    field = GGUFReader(write([key("words", 9, words)])).get_field("words")
    assert field.types == [GGUFValueType.ARRAY, GGUFValueType.STRING]
    assert (len(field.parts), field.data) == (11, [6, 8, 10])
    assert [field.parts[i].tobytes() for i in field.data] == [b"a", b"", b"ccc"]
    assert [int(field.parts[i - 1][0]) for i in field.data] == [1, 0, 3]
    assert field.contents() == ["a", "", "ccc"]
    assert (field.contents(2), field.contents(-3), field.contents(slice(1, None))) == ("ccc", "a", ["", "ccc"])


def test_a_field_of_numbers_has_one_part_for_each(write):
    numbers = struct.pack("<IQ3h", 3, 3, -1, 2, 3)
    field = GGUFReader(write([key("n", 9, numbers)])).get_field("n")
    assert field.types == [GGUFValueType.ARRAY, GGUFValueType.INT16]
    assert (len(field.parts), field.data) == (8, [5, 6, 7])
    assert [part.tolist() for part in field.parts[5:]] == [[-1], [2], [3]]
    assert (field.contents(), field.contents(0), field.contents(slice(None, None, -1))) == ([-1, 2, 3], -1, [3, 2, -1])


def test_arrays_of_arrays_are_flat(write):
    inner = struct.pack("<IQ2B", 0, 2, 1, 2) + struct.pack("<IQ1B", 0, 1, 3)
    field = GGUFReader(write([key("n", 9, struct.pack("<IQ", 9, 2) + inner)])).get_field("n")
    assert field.types == [GGUFValueType.ARRAY, GGUFValueType.ARRAY, GGUFValueType.UINT8]
    assert (field.contents(), field.data) == ([1, 2, 3], [7, 8, 11])
    assert [field.parts[i].tolist() for i in field.data] == [[1], [2], [3]]


def test_an_empty_array_has_no_type_of_elements(write):
    field = GGUFReader(write([key("n", 9, struct.pack("<IQ", 77, 0))])).get_field("n")
    assert (field.types, field.data, field.contents(), len(field.parts)) == ([GGUFValueType.ARRAY], [], [], 5)


@pytest.mark.parametrize(
    "type, letter, value",
    [(0, "B", 200), (1, "b", -3), (2, "H", 60000), (3, "h", -300), (4, "I", 2**32 - 1), (5, "i", -5), (6, "f", 1.5),
     (7, "?", True), (10, "Q", 2**64 - 1), (11, "q", -(2**63)), (12, "d", 0.1)],
)  # fmt: skip
def test_a_value_of_each_type_is_what_python_has(write, type, letter, value):
    field = GGUFReader(write([key("k", type, struct.pack("<" + letter, value))])).get_field("k")
    assert field.contents() == value and isinstance(field.contents(), bool) == (letter == "?")
    assert field.types == [GGUFValueType(type)]
    assert field.parts[-1].dtype == GGUFReader.gguf_scalar_to_np[field.types[0]]


def test_parts_behave_as_a_list(write):
    parts = GGUFReader(write([key("name", 8, text("tiny"))])).get_field("name").parts
    assert parts[-1].tobytes() == b"tiny" and len(parts[1:3]) == 2 and len(parts + [1]) == 6
    assert [part.tobytes() for part in reversed(parts)][0] == b"tiny"
    for index in (5, -6):
        with pytest.raises(IndexError):
            parts[index]


def test_a_text_that_is_no_utf8_is_an_error_only_when_it_is_read(write):
    field = GGUFReader(write([key("k", 8, text(b"\xff"))])).get_field("k")
    assert field.parts[-1].tolist() == [255]
    with pytest.raises(UnicodeDecodeError):
        field.contents()


def test_a_field_that_is_not_there_is_none(write):
    assert GGUFReader(write()).get_field("general.name") is None


def test_a_field_without_types_has_no_contents():
    assert ReaderField(0, "x").contents() is None
    assert ReaderField(0, "x") == (0, "x", [], [-1], [])


# Tensors.


@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.name)
def test_tensors_and_fields_are_those_that_the_vector_promises(path):
    expected = json.loads(path.with_name(path.name + ".expected.json").read_text())
    reader = GGUFReader(path)
    assert [tensor.name for tensor in reader.tensors] == [tensor["name"] for tensor in expected["tensors"]]
    assert len(reader.fields) == 3 + reader.fields["GGUF.kv_count"].contents()
    for tensor in reader.tensors:
        assert tensor.data.nbytes == tensor.n_bytes and tensor.n_elements == int(np.prod(tensor.shape))
        assert path.read_bytes()[tensor.data_offset :][: tensor.n_bytes] == tensor.data.tobytes()
        assert tensor.data_offset % reader.alignment == 0 or path.name.startswith("offsets")


@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.name)
def test_values_are_those_that_ballast_itself_reads(path):
    reader = GGUFReader(path, whole=True)
    with ballast.open(path, cache="ignore") as checkpoint:
        assert {tensor.name for tensor in reader.tensors} == set(checkpoint)
        for tensor in reader.tensors:
            values = checkpoint[tensor.name].to("F32").numpy()
            mine = reader.dequantize(tensor)
            assert mine.dtype == np.float32 and mine.shape == values.shape
            assert mine.tobytes() == values.tobytes(), tensor.name


def test_a_tensor_says_what_gguf_py_says(write):
    data = np.arange(6, dtype="<f4").tobytes()
    path = write([], [tensor("w", (3, 2))], data)
    reader = GGUFReader(path)
    found = reader.get_tensor(0)
    assert found is reader.tensors[0] and found._fields[:3] == ("name", "tensor_type", "shape")
    assert (found.name, found.tensor_type, found.n_elements, found.n_bytes) == ("w", GGMLQuantizationType.F32, 6, 24)
    assert found.data_offset == reader.data_offset and found.shape.tolist() == [3, 2] and found.shape.dtype == np.uint64
    assert found.data.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert [part.tolist() for part in found.field.parts] == [[1], [ord("w")], [2], [3, 2], [0], [0]]
    assert (found.field.data, found.field.types, found.field.contents()) == ([1, 3, 4, 5], [], None)


def test_blocks_and_bf16_are_bytes_and_other_types_numbers():
    tensors = GGUFReader(VECTORS / "tensors_all_types.gguf").tensors
    assert len({tensor.tensor_type for tensor in tensors}) > 25
    for found in tensors:
        shape = tuple(reversed(found.shape.tolist()))
        if found.tensor_type.name in PLAIN:
            assert found.data.shape == shape
            assert found.data.dtype.name.replace("float", "F").replace("int", "I") == found.tensor_type.name
        else:
            assert found.data.dtype == np.uint8
            assert found.data.shape == quant_shape_to_byte_shape(shape, found.tensor_type)
            assert quant_shape_from_byte_shape(found.data.shape, found.tensor_type) == shape


def test_the_alignment_is_that_of_the_file(write):
    assert GGUFReader(VECTORS / "alignment_64.gguf").alignment == 64
    assert GGUFReader(VECTORS / "alignment_8.gguf").alignment == 8
    assert GGUFReader(write()).alignment == 32


# Maps.


def test_arrays_are_read_only_maps_of_the_file(write):
    reader = GGUFReader(write([], [tensor()]))
    assert isinstance(reader.data, np.memmap) and np.shares_memory(reader.data, reader.tensors[0].data)
    assert not reader.tensors[0].data.flags.writeable
    with pytest.raises(ValueError):
        reader.fields["GGUF.version"].parts[0][0] = 2


def test_arrays_live_on_without_the_reader_and_the_file(write):
    path = write([], [tensor()], np.arange(4, dtype="<f4").tobytes())
    data = GGUFReader(path).tensors[0].data
    path.unlink()
    assert data.tolist() == [0, 1, 2, 3]


def test_a_file_is_edited_in_place(write):
    path = write([key("n", 4, struct.pack("<I", 1)), key("s", 8, text("old"))], [tensor()])
    reader = GGUFReader(path, "r+")
    field = reader.get_field("n")
    field.parts[field.data[0]][0] = 5
    reader.get_field("s").parts[-1][:] = np.frombuffer(b"new", np.uint8)
    reader.tensors[0].data[1] = 2.5
    assert field.contents() == 5
    reader.data.flush()
    again = GGUFReader(path)
    assert (again.get_field("n").contents(), again.get_field("s").contents()) == (5, "new")
    assert again.tensors[0].data.tolist() == [0, 2.5, 0, 0]


def test_changes_to_a_private_copy_stay_in_memory(write):
    path = write([], [tensor()])
    before = path.read_bytes()
    GGUFReader(path, "c").tensors[0].data[:] = 1
    assert path.read_bytes() == before


# The other byte order, and split files.


def test_a_big_endian_file_has_the_values_of_its_twin():
    big, little = (GGUFReader(VECTORS / name) for name in ("big_endian_quant.gguf", "little_endian_twin.gguf"))
    assert (big.byte_order, big.endianess) == ("S", GGUFEndian.BIG)
    assert (little.byte_order, little.endianess) == ("I", GGUFEndian.LITTLE)
    assert [field.contents() for field in big.fields.values()] == [field.contents() for field in little.fields.values()]
    for found, twin in zip(big.tensors, little.tensors):
        assert (found.name, found.shape.tolist()) == (twin.name, twin.shape.tolist())
        np.testing.assert_array_equal(big.dequantize(found), little.dequantize(twin))
        if found.tensor_type.name in PLAIN:
            np.testing.assert_array_equal(found.data, twin.data)
            np.testing.assert_array_equal(dequantize(found.data, found.tensor_type), twin.data.astype(np.float32))


def test_a_part_of_a_split_file_is_read_by_itself_or_with_the_others():
    parts = sorted(VECTORS.glob("split_by_tensors-*.gguf"))
    names = [tensor.name for path in parts for tensor in GGUFReader(path).tensors]
    assert len(names) > len(GGUFReader(parts[0]).tensors)
    for path in parts:
        whole = GGUFReader(path, whole=True)
        assert [tensor.name for tensor in whole.tensors] == names and len(whole.splits) == len(parts) - 1
        assert list(whole.fields) == list(GGUFReader(parts[0]).fields)


def test_a_part_that_is_missing_is_named(tmp_path):
    for path in VECTORS.glob("split_by_tensors-*.gguf"):
        shutil.copy(path, tmp_path)
    (tmp_path / "split_by_tensors-00002-of-00003.gguf").unlink()
    with pytest.raises(FileNotFoundError, match="00002-of-00003"):
        GGUFReader(tmp_path / "split_by_tensors-00003-of-00003.gguf", whole=True)


# Errors, in the words of gguf-py.


@pytest.mark.parametrize(
    "error, message, made",
    [
        (ValueError, "GGUF magic invalid", b"GGML" + bytes(60)),
        (ValueError, "GGUF magic invalid", b"G"),
        (ValueError, "cannot mmap an empty file", b""),
        (ValueError, "Sorry, file appears to be version 1 which we cannot handle", gguf(version=1)),
        (ValueError, "Sorry, file appears to be version 4 which we cannot handle", gguf(version=4)),
        (ValueError, "Tensor count 2147483648 exceeds maximum 1073741824", gguf(counts=(2**31, 0))),
        (ValueError, "KV count 2147483648 exceeds maximum 1073741824", gguf(counts=(0, 2**31))),
        (ValueError, "Bad type for general.alignment field", gguf([key("general.alignment", 10, bytes(8))])),
        (
            ValueError,
            "Invalid alignment: must be a non-zero power of two",
            gguf([key("general.alignment", 4, struct.pack("<I", 24))]),
        ),
        (ValueError, "13 is not a valid GGUFValueType", gguf([key("k", 13, bytes(8))])),
        (ValueError, "4 is not a valid GGMLQuantizationType", gguf([], [tensor(type=4)])),
        (ValueError, "Found duplicated tensor with name w", gguf([], [tensor(), tensor()])),
        (KeyError, "Duplicate k already in list at offset 38", gguf([key("k", 0, b"1"), key("k", 0, b"1")])),
        (
            ValueError,
            "Tensor dimensions count 1000000 exceeds GGML_MAX_DIMS (4)",
            gguf([], [text("w") + struct.pack("<IQ", 1000000, 1)]),
        ),
        (
            ValueError,
            "String length 2147483648 exceeds maximum 1073741824",
            gguf([key("k", 8, struct.pack("<Q", 2**31))]),
        ),
        (ValueError, "String length 900 exceeds remaining file size", gguf([struct.pack("<Q", 900)], data=b"")),
        (
            ValueError,
            "Array length 2147483648 exceeds maximum 1073741824",
            gguf([key("k", 9, struct.pack("<IQ", 0, 2**31))]),
        ),
        (
            ValueError,
            "Quantized tensor row size (5) is not a multiple of Q8_0 block size (32)",
            gguf([], [tensor(shape=(5,), type=8)]),
        ),
        (ValueError, "the file ends inside", gguf(data=b"", counts=(0, 1))[:24]),
        (ValueError, "but the file ends at byte", gguf([], [tensor(shape=(4194305, 4194305, 211106198978564))])),
        (UnicodeDecodeError, "'utf-8' codec can't decode", gguf([key(b"\xff", 0, b"1")])),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_the_words_of_gguf_py(tmp_path, error, message, made):
    path = tmp_path / "bad.gguf"
    path.write_bytes(made)
    with pytest.raises(error) as caught:
        GGUFReader(path)
    assert message in str(caught.value)


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        GGUFReader(tmp_path / "none.gguf")
    assert caught.value.errno == 2


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(ValueError):
        GGUFReader(tmp_path / "pipe.gguf")


@pytest.mark.parametrize("path", sorted(VECTORS.glob("bad_*.gguf")), ids=lambda path: path.name)
def test_damaged_vectors_are_refused(path):
    with pytest.raises((ValueError, KeyError)):
        GGUFReader(path)


def test_a_file_that_ends_anywhere_in_its_header_is_refused(tmp_path):
    whole = (VECTORS / "nested_array.gguf").read_bytes()
    path = tmp_path / "cut.gguf"
    for size in range(GGUFReader(VECTORS / "nested_array.gguf").data_offset - 32):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError):
            GGUFReader(path)


def test_arrays_inside_each_other_have_a_limit(write):
    with pytest.raises(ValueError, match="too deep"):
        GGUFReader(write([key("k", 9, struct.pack("<IQ", 9, 1) * 10000)]))


# Blocks.


def test_every_type_has_a_number_and_a_size():
    assert set(GGML_QUANT_SIZES) == set(GGMLQuantizationType)
    assert GGML_QUANT_SIZES[GGMLQuantizationType.Q4_K] == (256, 144)


@pytest.mark.parametrize("type", [type for type in GGMLQuantizationType if type.name not in NOT_ENCODED], ids=str)
def test_what_is_quantized_comes_back_nearly_the_same(type):
    values = np.random.default_rng(0).standard_normal((2, 3, 512), dtype=np.float32)
    blocks = quantize(values, type)
    if type.name in PLAIN:
        assert blocks.shape == values.shape and blocks.dtype.kind == "f"
    else:
        assert blocks.dtype == np.uint8 and blocks.shape == quant_shape_to_byte_shape(values.shape, type)
    again = dequantize(blocks, type)
    assert again.dtype == np.float32 and again.shape == values.shape
    assert np.mean((again - values) ** 2) < 0.7
    assert quantize(values[:, ::2], type).tobytes() == blocks[:, ::2].tobytes()


@pytest.mark.parametrize("path", sorted(GGML.glob("*.encode.blocks")), ids=lambda path: path.name)
def test_blocks_are_those_that_ggml_makes(path):
    type = GGMLQuantizationType[path.name.partition(".")[0]]
    about = json.loads((GGML / "index.json").read_text())[type.name]["encode"]
    values = np.fromfile(path.with_name(f"{type.name}.encode.src.f32"), "<f4").reshape(about["nrows"], -1)
    rows = [i for i in range(about["nrows"]) if i not in about["rows_with_undefined_result"]]
    expected = np.fromfile(path, "u1").reshape(about["nrows"], -1)
    assert quantize(values[rows], type).tobytes() == expected[rows].tobytes()


@pytest.mark.parametrize("path", sorted(GGML.glob("*.decode.blocks")), ids=lambda path: path.name)
def test_values_are_those_that_ggml_reads(path):
    type = GGMLQuantizationType[path.name.partition(".")[0]]
    values = np.fromfile(path.with_name(f"{type.name}.decode.f32"), "<f4")
    np.testing.assert_array_equal(dequantize(np.fromfile(path, "u1"), type), values)


@pytest.mark.parametrize("name", NOT_ENCODED)
def test_what_cannot_be_encoded_is_not_implemented(name):
    with pytest.raises(NotImplementedError, match=f"Quantization for {name} is not yet implemented"):
        quantize(np.zeros((1, 256), np.float32), GGMLQuantizationType[name])


def test_rows_that_are_no_whole_blocks_are_refused():
    q8 = GGMLQuantizationType.Q8_0
    with pytest.raises(QuantError, match=r"Can't quantize tensor with shape \(2, 33\) to Q8_0"):
        quantize(np.zeros((2, 33), np.float32), q8)
    with pytest.raises(ValueError, match=r"Quantized tensor row size \(5\) is not a multiple of Q8_0 block size"):
        quant_shape_to_byte_shape((2, 5), q8)
    with pytest.raises(ValueError, match=r"Quantized tensor bytes per row \(5\) is not a multiple of Q8_0 type size"):
        quant_shape_from_byte_shape((2, 5), q8)
    with pytest.raises(ValueError, match="Quantized tensor bytes per row"):
        dequantize(np.zeros((2, 33), np.uint8), q8)


def test_numbers_of_other_types_and_orders_are_quantized_by_their_values():
    values = np.linspace(-1, 1, 64)
    blocks = quantize(values.astype(np.float32), GGMLQuantizationType.Q8_0)
    for dtype in ("<f8", ">f4"):
        assert quantize(values.astype("<f4").astype(dtype), GGMLQuantizationType.Q8_0).tobytes() == blocks.tobytes()


def test_importing_it_needs_no_numpy():
    code = "import sys, ballast.gguf, ballast.gguf.quants; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_model_folder_becomes_a_gguf_that_runs(tmp_path):
    folder = VECTORS.with_name("hf2gguf") / "llama3" / "Llama-3.2-1B-Instruct"
    report = ballast.convert(folder, tmp_path / "model.gguf", type="Q4_K_M")
    reader = GGUFReader(tmp_path / "model.gguf")
    assert report.tensors == len(reader.tensors) == 21
    assert reader.fields["general.architecture"].contents() == "llama"
    assert reader.fields["tokenizer.ggml.pre"].contents() == "llama-bpe"
    assert len(reader.fields["tokenizer.ggml.tokens"].contents()) == reader.fields["llama.vocab_size"].contents()
    with pytest.raises(ValueError, match="type"):
        ballast.convert(folder, tmp_path / "other.gguf", type="Q4_K_XXL")
