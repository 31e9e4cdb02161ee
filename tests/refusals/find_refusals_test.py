"""find_refusals finds what it says, and living.txt lists only changes that still exist."""

import unittest

from change_refusals import find_changes, read_living
from find_refusals import find_sites, rewrite


def changes_in(body, path="a.cpp"):
    sites = find_sites({path: "void f() {\n" + body + "\n}\n"})[path]
    return [f"{site.condition} {change}" for site in sites for change in site.changes]


class FindRefusals(unittest.TestCase):
    def test_a_condition_of_refusing_is_switched_off_part_by_part_and_its_bounds_are_moved(self):
        self.assertEqual(changes_in("if (a || b > 2) throw Error();"), ["a off", "b > 2 off", "b > 2 +1", "b > 2 -1"])
        self.assertEqual(changes_in("if (a && !b) { note(); fail(1); }"), ["a && !b off"])

    def test_a_condition_of_going_on_counts_if_a_refusal_follows(self):
        self.assertEqual(changes_in("if (a && b == 3) return;\nthrow Error();"), ["a off", "b == 3 off", "b == 3 ~1"])
        self.assertEqual(changes_in("if (a) return;\ncount();"), [])
        self.assertEqual(changes_in("if (a) { count(); } else { report.add(1); }"), ["a off"])

    def test_a_size_that_must_be_another_or_must_not_be_reached_is_missed_by_one(self):
        self.assertEqual(changes_in("if (a.size() != b) refuse(a);"), ["a.size() != b off", "a.size() != b ~1"])
        self.assertEqual(changes_in("if (a.size() == most) refuse(a);"), ["a.size() == most off", "a.size() == most +1"])

    def test_a_check_behind_a_name_is_left_out(self):
        self.assertEqual(changes_in("in_.require_room_for(count, 8);"), ["in_.require_room_for(count, 8) off"])

    def test_a_function_that_says_no_counts_if_a_refusal_asks_it(self):
        says_no = "bool is_good(int a) { if (a < 1) return false; return a < 9 && a != 3; }"
        asks = "void f() { if (!is_good(1)) throw Error(); }"
        self.assertEqual(find_sites({"a.cpp": says_no})["a.cpp"], [])
        self.assertEqual(find_sites({"a.cpp": says_no, "b.cpp": asks})["a.cpp"], [])  # another function of that name
        found = find_sites({"a.cpp": says_no, "a.hpp": "bool is_good(int a);", "b.cpp": asks})["a.cpp"]
        self.assertEqual(found, find_sites({"a.cpp": says_no + asks})["a.cpp"][:len(found)])
        self.assertEqual([(site.function, site.condition) for site in found],
                         [("is_good", "a < 1"), ("is_good", "a < 1"), ("is_good", "a < 9"), ("is_good", "a != 3"),
                          ("is_good", "a < 9")])

    def test_templates_texts_and_comments_are_not_comparisons(self):
        self.assertEqual(changes_in('if (f<int>(a) || b == " < ") throw 1;  // if (a < b) throw'),
                         ["f<int>(a) off", 'b == " < " off'])

    def test_what_has_an_address_is_no_size(self):
        self.assertEqual(changes_in("if (a.format == &kFormat) throw 1;"), ["a.format == &kFormat off"])

    def test_a_switch_is_put_around_what_it_changes(self):
        text = "void f() { if (const auto a = g()) throw 1; if (b + 1 < h(c, d)) throw 2; }"
        self.assertEqual(
            rewrite(text, find_sites({"a.cpp": text})["a.cpp"], 7).replace("ballast_refusals::", ""),
            "void f() { if (const auto a = g(); change(7, static_cast<bool>(a), false)) throw 1; "
            "if (change(8, static_cast<bool>(less(9, b + 1 , h(c, d))), false)) throw 2; }")

    def test_every_change_in_living_txt_exists_and_has_a_reason(self):
        keys = {change.key for change in find_changes()[1]}
        for key, reason in read_living().items():
            with self.subTest(key):
                self.assertIn(key, keys)
                self.assertTrue(reason)


if __name__ == "__main__":
    unittest.main()
