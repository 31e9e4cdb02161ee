"""Keys and values beside tensors read as Python's own repr() writes them, whichever protocol wrote the pickle."""

import datetime
import decimal
import fractions
import json
import pathlib
import pickle
import unittest

from support import *

OBJECTS = [
    None, True, 0, -7, 2**40, -2**70, 0.0, -0.0, 1.0, 1e16, 1e22, 123456789012345680.0, 1e-5, 5e-324, float("inf"), float("nan"),
    "it's", 'say "x"', "both ' and \"", "tab\tnew\nback\\", "ünï", b"", b"\x00\xff'", b"a" * 20,
    (), (1,), (1, "a"), ((1,), ((), None)), frozenset(), frozenset({1}), frozenset({"a"}), frozenset({(1, 2)}), frozenset({frozenset({3})}),
    1j, 1 + 2j, complex(-0.0, 2), complex(1.5, -0.0), complex("nan+infj"), range(3), range(1, 9, 2), Ellipsis, NotImplemented,
    int, str, type(None), type(Ellipsis), datetime.date(2020, 2, 29), datetime.datetime(2020, 2, 29, 1, 2),
    datetime.datetime(2020, 2, 29, 1, 2, 3), datetime.datetime(2020, 2, 29, 1, 2, 0, 5), datetime.time(1, 2, 3),
    datetime.timedelta(0), datetime.timedelta(days=-1, microseconds=5), decimal.Decimal("1.50"), fractions.Fraction(1, 2),
    fractions.Fraction(3), pathlib.PurePosixPath("/a/b"), pathlib.PurePosixPath("a"), pathlib.PurePosixPath(),
]
VALUES = [set(), {1}, {(1, 2)}, bytearray(), bytearray(b"\x00a"), slice(1, None, 2), [], {}]


class PythonText(TestCase):
    def values_of(self, things, protocol):
        """What `info` says about each of the things."""
        (self.folder / "x.pkl").write_bytes(pickle.dumps(things, protocol=protocol))
        values = json.loads(self.ballast("info", "x.pkl", "--json").out)["values"]
        found = [[] for _ in things]
        for value in values:
            place, _, path = value["path"].partition(".")
            found[int(place)].append((path, value["value"]))
        return zip(things, found)

    def test_keys_are_named_by_their_repr(self):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            keys = OBJECTS + [(thing, 1) for thing in OBJECTS]
            for thing, found in self.values_of([{key: 1} for key in keys], protocol):
                key, = thing
                with self.subTest(key=key, protocol=protocol):
                    self.assertEqual(found, [(key if isinstance(key, str) else repr(key), 1)])

    def test_values_that_json_has_no_word_for_are_shown_by_their_repr(self):
        plain = (type(None), bool, int, float, str, tuple)
        values = [thing for thing in OBJECTS if not isinstance(thing, plain)] + VALUES
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            for thing, found in self.values_of(values, protocol):
                with self.subTest(value=thing, protocol=protocol):
                    self.assertEqual(found, [("", repr(thing))])


if __name__ == "__main__":
    unittest.main()
