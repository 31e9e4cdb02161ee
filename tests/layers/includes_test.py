"""Reads every #include of the sources and fails on one that the layers do not allow.

The tables below are the layers of src/README.md as data, and a test compares the two. A new layer, public header or
third-party library is one line here.
"""

import functools
import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(os.environ.get("BALLAST_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))

# layer (a folder of src/) -> the layers that it may use, besides itself. In order: a layer uses only those above it.
BELOW_FORMATS = {"core", "io", "kernels", "device", "tensor"}
UNDER_FORMATS = {"formats/archive", "formats/pickle"}
# Every other folder in formats/ is a format.
FORMATS = {f"formats/{p.name}" for p in (ROOT / "src/formats").iterdir() if p.is_dir()} - UNDER_FORMATS
ALL_FORMATS = FORMATS | UNDER_FORMATS | {"formats/format", "formats/all"}
BELOW_CHECKPOINT = BELOW_FORMATS | ALL_FORMATS | {"save"}
UP_TO_CACHE = BELOW_CHECKPOINT | {"checkpoint", "cache", "fetch", "net", "stores"}
LAYERS = {
    "core": set(),
    "io": {"core"},
    "kernels": {"core"},
    "device": {"core"},
    "tensor": {"core", "io", "kernels", "device"},
    # Formats never see each other; zip, tar and pickle lie under the formats that use them. The definition of a format
    # (format.hpp) lies under them as well, and the table of all formats (all.cpp) above.
    "formats/archive": BELOW_FORMATS,
    "formats/pickle": BELOW_FORMATS,
    "formats/format": BELOW_FORMATS | UNDER_FORMATS,
    **{layer: BELOW_FORMATS | UNDER_FORMATS | {"formats/format"} for layer in sorted(FORMATS)},
    "formats/all": BELOW_FORMATS | UNDER_FORMATS | FORMATS | {"formats/format"},
    "save": BELOW_FORMATS | ALL_FORMATS,
    "net": BELOW_FORMATS,
    "stores": BELOW_FORMATS | {"net"},
    "checkpoint": BELOW_CHECKPOINT | {"net", "stores"},
    "fetch": BELOW_CHECKPOINT | {"checkpoint", "net", "stores"},
    "cache": BELOW_CHECKPOINT | {"checkpoint", "fetch", "net", "stores"},
    "inspect": UP_TO_CACHE,
    "transform": UP_TO_CACHE | {"inspect"},
    "layout": UP_TO_CACHE | {"inspect", "transform"},
    "llamacpp": UP_TO_CACHE | {"inspect", "transform", "layout"},
    "load": UP_TO_CACHE | {"inspect", "transform", "layout", "llamacpp"},
    "peft": UP_TO_CACHE | {"inspect", "transform", "layout", "llamacpp", "load"},
    "check": UP_TO_CACHE | {"inspect", "transform", "layout", "llamacpp", "load", "peft"},
}

# public header -> the layer that it belongs to
PUBLIC_HEADERS = {
    "error": "core",
    "remedy": "core",
    "text": "core",
    "json": "core",
    "suggest": "core",
    "limits": "core",
    "overflows": "core",
    "progress": "core",
    "team": "core",
    "range": "core",
    "source": "io",
    "remote": "net",
    "fetch": "fetch",
    "dtype": "core",
    "float16": "core",
    "shape": "core",
    "slice": "tensor",
    "storage": "tensor",
    "tensor": "tensor",
    "private_maps": "tensor",
    "state_dict": "tensor",
    "global": "core",
    "checkpoint": "tensor",
    "provenance": "tensor",
    "device": "device",
    "bind": "tensor",
    "open_options": "tensor",
    "save_plan": "tensor",
    "open": "cache",
    "cache": "cache",
    "save": "save",
    "quantize": "transform",
    "transform": "transform",
    "weight_map": "layout",
    "conversions": "layout",
    "rank_plan": "layout",
    "manifest": "inspect",
    "load": "load",
    "load_state_dict": "load",
    "hash": "inspect",
    "stats": "inspect",
    "singular_values": "inspect",
    "problems": "inspect",
    "diff": "inspect",
    "verify": "inspect",
    "summary": "inspect",
    "check": "check",
    "model_info": "inspect",
    "duplicates": "inspect",
    "listing": "inspect",
    "tree": "inspect",
    "scan": "checkpoint",
    "densify": "checkpoint",
    "dequantize": "checkpoint",
    "training": "transform",
    "sidecars": "checkpoint",
    "adapter": "peft",
    "adapter_changes": "peft",
    "merge": "peft",
    "names": "llamacpp",
    "align": "llamacpp",
    "gguf_model": "llamacpp",
    "typed_metadata": "tensor",
    "metadata": "inspect",
    "metadata_text": "tensor",
    "diff_adapters": "peft",
    "from_diff": "peft",
    "importance": "llamacpp",
    "recipe": "llamacpp",
    "ballast": "everything",
    "mpi": "mpi",
}

# folder -> the third-party headers that may be included there
THIRD_PARTY = {
    "include": r"(?!)",
    "cli": r"CLI/.+|fmt/.+|hwy/.+|zlib\.h",
    "mpi": r"fmt/.+|mpi\.h",
    "src": r"curl/curl\.h|fmt/.+|hwy/.+|libdeflate\.h|openssl/.+|re2/.+|xxhash\.h|zlib\.h|zstd\.h",
}

# The standard library (no extension), and the system's headers that have no C++ name.
SYSTEM = re.compile(r"[a-z_0-9]+|(arpa|linux|netinet|sys)/[a-z_]+\.h|(dirent|dlfcn|fcntl|pthread|sched|setjmp|signal|spawn|ucontext|unistd)\.h")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


def layer_of(path):
    """The layer of a file in src/, given relative to it; None if there is no such layer."""
    parts = pathlib.PurePosixPath(path).parts
    if parts[0] == "formats" and len(parts) == 2:
        parts = ("formats", pathlib.PurePosixPath(path).stem, parts[1])  # a file between the folders is a layer
    depth = 2 if parts[0] == "formats" else 1
    layer = "/".join(parts[:depth])
    return layer if layer in LAYERS and len(parts) > depth else None


def allowed(user, used):
    return used == user or used in LAYERS[user]


# The folders of apps, which see the public headers, their own files, and those of the apps beside them: ballast-mpi does
# verbs of the command.
APPS = {"cli": {"cli"}, "mpi": {"mpi", "cli"}}

# The one public header that includes another library's, since it takes a communicator: ballast.hpp does not include it.
MPI_HEADER = "mpi"


def complaint(area, layer, name, in_src, in_app):
    """Why a file of `area` (and of `layer`, in src and include) may not include `name`; None if it may.

    in_src(name) says whether `name` is a file of src/, and in_app(name) whether it is one of an app that it may see.
    """
    if name.startswith("ballast/"):
        header = name.removeprefix("ballast/").removesuffix(".hpp")
        if header not in PUBLIC_HEADERS:
            return "is a public header of no layer: name its layer in PUBLIC_HEADERS"
        if header == MPI_HEADER and area != "mpi":
            return "needs MPI, which only mpi/ may"
        if area in APPS or layer in ("everything", "mpi"):
            return None
        used = PUBLIC_HEADERS[header]
        return None if allowed(layer, used) else f"belongs to {used}, which {layer} may not use"
    if area in APPS and in_app(name):
        return None
    if area == "src" and in_src(name):
        used = layer_of(name)
        return None if allowed(layer, used) else f"belongs to {used}, which {layer} may not use"
    if area == "include" and layer == "mpi" and name == "mpi.h":
        return None
    if SYSTEM.fullmatch(name) or re.fullmatch(THIRD_PARTY[area], name):
        return None
    return f"is nothing that {area}/ may include"


def complaints_about(path):
    """Every include of one file of the repository that is not allowed, as lines for people."""
    area = path.relative_to(ROOT).parts[0]
    layer = None
    if area == "src":
        layer = layer_of(path.relative_to(ROOT / "src").as_posix())
        if layer is None:
            return [f"{path.relative_to(ROOT)}: lies in no layer: name its folder in LAYERS"]
    if area == "include":
        layer = PUBLIC_HEADERS.get(path.stem)
        if layer is None:
            return [f"{path.relative_to(ROOT)}: is a public header of no layer: name its layer in PUBLIC_HEADERS"]

    def in_src(name):
        return (ROOT / "src" / name).is_file()

    def in_app(name):
        beside = (path.parent / name).resolve()
        return beside.is_file() and any((ROOT / app).resolve() in beside.parents for app in APPS.get(area, ()))

    text = path.read_text(encoding="utf-8")
    found = []
    for match in INCLUDE.finditer(text):
        name = match.group(2)
        why = complaint(area, layer, name, in_src, in_app)
        if why:
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path.relative_to(ROOT)}:{line}: {name} {why}")
    return found


def sources():
    for area in THIRD_PARTY:
        yield from sorted(p for p in (ROOT / area).rglob("*") if p.suffix in {".hpp", ".cpp", ".h"})


class TheSources(unittest.TestCase):
    def test_include_only_what_their_layer_may_use(self):
        found = [line for path in sources() for line in complaints_about(path)]
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_are_found_at_all(self):
        self.assertGreater(len(list(sources())), 10)


ALGORITHMS = ("any_of|all_of|none_of|find|find_if|find_if_not|sort|stable_sort|count|count_if|copy|fill|equal|max_element|min_element|"
              "transform|lower_bound|upper_bound|for_each|reverse|binary_search|unique|search|mismatch|partition|remove_if|rotate|"
              "is_sorted|clamp")


class ThePrecompiledHeaders(unittest.TestCase):
    """A precompiled header hides an include that a file forgot, until another compiler comes that has none."""

    NAMES = {
        "algorithm": rf"std::(ranges::)?({ALGORITHMS})\(",
        "array": r"std::array\b",
        "charconv": r"std::(from_chars|to_chars)\b",
        "complex": r"std::complex\b",
        "fmt/format.h": r"fmt::(format|print|join)\b",
        "functional": r"std::function<",
        "map": r"std::(multi)?map<",
        "memory": r"std::(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared)\b",
        "mutex": r"std::(mutex|lock_guard|unique_lock|scoped_lock)\b",
        "optional": r"std::(optional|nullopt)\b",
        "set": r"std::set<",
        "span": r"std::(span<|as_bytes)",
        "string": r"std::(string|to_string)\b",
        "unordered_map": r"std::unordered_map<",
        "variant": r"std::(variant<|visit\()",
        "vector": r"std::vector<",
    }

    def test_bring_nothing_that_a_file_and_our_headers_do_not_include(self):
        texts = {path.resolve(): path.read_text(encoding="utf-8") for path in sources()}
        names = {path: [match[2] for match in INCLUDE.finditer(text)] for path, text in texts.items()}
        folders = [(ROOT / area).resolve() for area in ("include", "src", "cli", "mpi")]

        @functools.cache
        def ours(folder, name):
            places = (pathlib.Path(os.path.normpath(place / name)) for place in [folder, *folders])
            return next((place for place in places if place in texts), None)

        def brought(path):
            seen, others, waiting = set(), set(), [path]
            while waiting:
                here = waiting.pop()
                if here in seen:
                    continue
                seen.add(here)
                others.update(names[here])
                waiting.extend(file for name in names[here] if (file := ours(here.parent, name)))
            return others

        missing = []
        for path, text in texts.items():
            code = re.sub(r"//.*", "", text)
            there = brought(path)
            missing += [f"{path.relative_to(ROOT.resolve())}: {header}" for header, words in self.NAMES.items()
                        if header not in there and re.search(words, code)]
        self.assertEqual(missing, [], "\n" + "\n".join(missing))


class TheTypes(unittest.TestCase):
    """Two types of one name in one namespace are one type for the linker, which keeps the functions of either."""

    BLOCK = re.compile(r"^namespace ([\w:]*) ?\{|^\}  // namespace", re.MULTILINE)
    TYPE = re.compile(r"^(?:struct|class|union|enum|enum class) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: : [^;{]+)? \{", re.MULTILINE)

    def types_in(self, text):
        """The types that are defined in namespaces, but for those in unnamed ones."""
        events = sorted([*self.BLOCK.finditer(text), *self.TYPE.finditer(text)], key=lambda match: match.start())
        names = []
        for event in events:
            if event.re is self.TYPE:
                if names and "" not in names:
                    yield "::".join([*names, event[1]])
            elif event[1] is None:
                names.pop()
            else:
                names.append(event[1])

    def test_of_one_namespace_have_names_of_their_own(self):
        places = {}
        for path in [*sources(), *sorted((ROOT / "python").rglob("*.[ch]pp"))]:
            for name in self.types_in(path.read_text(encoding="utf-8")):
                places.setdefault(name, []).append(str(path.relative_to(ROOT)))
        self.assertGreater(len(places), 500)
        self.assertEqual({name: found for name, found in places.items() if len(found) > 1}, {})

    def test_are_found_where_they_are(self):
        text = ("namespace ballast::cli {\nnamespace {\nstruct A {\n}  // namespace\n"
                "class B final : public C {\n};\nstruct D;\nstruct E::F {\n};\n}  // namespace ballast::cli\n")
        self.assertEqual(list(self.types_in(text)), ["ballast::cli::B"])


class TheMessages(unittest.TestCase):
    """A program that links the library has no flags: what its messages suggest is a Remedy, which the command words."""

    FLAG = re.compile(r'"(?:[^"\\\n]|\\.)*?(?<![\w-])--[a-z][a-z-]+')
    VERB = re.compile(r'"(?:[^"\\\n]|\\.)*?(?:\bballast [a-z]+|\b(?:same|the|this) command\b)')

    def found_in_the_library(self, words):
        return [f"{path.relative_to(ROOT)}: {match.group()}" for path in sources()
                if path.relative_to(ROOT).parts[0] not in APPS
                for match in words.finditer(re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8")))]

    def test_of_the_library_name_no_flag_of_the_command(self):
        found = self.found_in_the_library(self.FLAG)
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_of_the_library_name_no_verb_of_the_command(self):
        found = self.found_in_the_library(self.VERB)
        self.assertEqual(found, [], "\n" + "\n".join(found))


class TheTables(unittest.TestCase):
    def test_have_no_cycle(self):
        seen = set()
        for layer, uses in LAYERS.items():
            self.assertLessEqual(uses, seen, f"{layer} uses a layer that stands below it in LAYERS")
            seen.add(layer)

    def test_name_public_headers_that_exist(self):
        for header in PUBLIC_HEADERS:
            self.assertTrue((ROOT / "include/ballast" / f"{header}.hpp").is_file(), header)


class TheReadme(unittest.TestCase):
    def test_has_the_layers_of_this_file_and_what_each_may_use(self):
        readme = (ROOT / "src/README.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| `([a-z]+)` \|.*\| ([^|]*) \|$", readme, re.MULTILINE)
        folder = {layer: layer.split("/")[0] for layer in LAYERS}
        self.assertEqual([layer for layer, _ in rows], list(dict.fromkeys(folder.values())))
        for i, (layer, may_use) in enumerate(rows):
            above = {other for other, _ in rows[:i]}
            said = above if may_use == "all above" else set(re.findall(r"`([a-z]+)`", may_use))
            used = {folder[other] for name in LAYERS if folder[name] == layer for other in LAYERS[name]}
            self.assertEqual(said, used - {layer}, layer)

    def test_names_folders_and_files_that_are_there(self):
        for layer in LAYERS:
            here = ROOT / "src" / layer
            self.assertTrue(here.is_dir() or here.with_suffix(".hpp").is_file(), layer)

    def test_has_a_sentence_for_every_file_and_for_no_other(self):
        readme = (ROOT / "src/README.md").read_text(encoding="utf-8")
        said = set(re.findall(r"^\* `([a-z_0-9/]+)`: ", readme, re.MULTILINE))
        here = {p.relative_to(ROOT / "src").with_suffix("").as_posix() for p in sources() if (ROOT / "src") in p.parents}
        self.assertEqual(sorted(here - said), [], "src/README.md says nothing about these")
        self.assertEqual(sorted(said - here), [], "src/README.md speaks of these, which are gone")


class TheRecipe(unittest.TestCase):
    """CONTRIBUTING.md lists the files that a new format has to change: they are few, and all of them exist."""

    def test_names_at_most_eight_files_that_exist(self):
        text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
        recipe = text.split("Existing files that have to change")[1].split("\n## ")[0]
        files = re.findall(r"`([\w/]+\.\w+)`", recipe)
        self.assertLessEqual(len(set(files)), 8)
        self.assertIn("src/formats/all.cpp", files)
        for file in files:
            self.assertTrue((ROOT / file).is_file(), file)


class TheCheck(unittest.TestCase):
    """The check itself, on includes that must and must not pass: a check that always passes would be useless."""

    def check(self, area, layer, name):
        return complaint(area, layer, name, lambda n: layer_of(n) is not None, lambda n: n == "print.hpp")

    def test_allows_lower_layers_and_the_system(self):
        for layer, name in [
            ("io", "core/checked.hpp"),
            ("formats/torch", "formats/archive/zip.hpp"),
            ("inspect", "ballast/open.hpp"),
            ("io", "sys/mman.h"),
            ("core", "vector"),
            ("kernels", "hwy/foreach_target.h"),
        ]:
            self.assertIsNone(self.check("src", layer, name), (layer, name))

    def test_refuses_higher_layers(self):
        for layer, name in [
            ("core", "io/section.hpp"),
            ("kernels", "io/section.hpp"),
            ("tensor", "formats/safetensors/reader.hpp"),
            ("save", "ballast/open.hpp"),
            ("io", "tensor/source_storage.hpp"),
            ("inspect", "ballast/adapter.hpp"),
        ]:
            self.assertIsNotNone(self.check("src", layer, name), (layer, name))

    def test_refuses_formats_that_see_each_other(self):
        self.assertIsNotNone(self.check("src", "formats/npy", "formats/safetensors/header.hpp"))
        self.assertIsNotNone(self.check("src", "formats/npy", "formats/all.hpp"))
        self.assertIsNone(self.check("src", "formats/npy", "formats/format.hpp"))
        self.assertIsNone(self.check("src", "formats/all", "formats/npy/format.hpp"))

    def test_keeps_the_command_to_the_public_headers(self):
        for name in ["ballast/open.hpp", "print.hpp", "CLI/CLI.hpp", "fmt/format.h", "unistd.h"]:
            self.assertIsNone(self.check("cli", None, name), name)
        for name in ["io/sink.hpp", "simdjson.h", "../src/io/sink.hpp"]:
            self.assertIsNotNone(self.check("cli", None, name), name)

    def test_keeps_what_is_for_several_machines_to_the_public_headers_too(self):
        for name in ["ballast/open.hpp", "print.hpp", "mpi.h", "fmt/format.h", "sys/mman.h"]:
            self.assertIsNone(self.check("mpi", None, name), name)
        for name in ["io/sink.hpp", "CLI/CLI.hpp", "../src/io/sink.hpp"]:
            self.assertIsNotNone(self.check("mpi", None, name), name)

    def test_keeps_mpi_out_of_everything_else(self):
        for area, layer in [("src", "load"), ("cli", None), ("include", "load"), ("include", "everything")]:
            self.assertIsNotNone(self.check(area, layer, "mpi.h"), area)
            self.assertIsNotNone(self.check(area, layer, "ballast/mpi.hpp"), area)
        self.assertIsNone(self.check("include", "mpi", "mpi.h"))

    def test_keeps_third_parties_out_of_the_public_headers(self):
        for name in ["fmt/format.h", "simdjson.h", "core/checked.hpp"]:
            self.assertIsNotNone(self.check("include", "core", name), name)


if __name__ == "__main__":
    unittest.main()
