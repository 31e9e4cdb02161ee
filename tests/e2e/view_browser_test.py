"""ballast view in a real browser: what the page shows, and that nothing else happens. Skipped if there is no Chromium."""

import json
import os
import sys
import time
import unittest

from chromium import BROWSER, Chromium
from support import *
from view_page import HOSTILE, Server


def numbers(count, scale=1.0, seed=1):
    state, values = seed, []
    for _ in range(count):
        state = (state * 1103515245 + 12345) % 2147483648
        values.append((state / 1073741824 - 1) * scale)
    return values


def model(layers=6, change=0.0, broken=True):
    """A small transformer of which layer 3 was never trained, and layer 4 has a NaN."""
    tensors = {"model.embed.weight": ("F32", [40, 16], numbers(640))}
    for i in range(layers):
        up = [0.0] * 512 if broken and i == 3 else numbers(512, 1 + i / 10 + change, i + 2)
        down = numbers(512, 1, i + 50)
        if broken and i == 4:
            down[7] = float("nan")
        tensors[f"model.layers.{i}.mlp.up.weight"] = ("F32", [32, 16], up)
        tensors[f"model.layers.{i}.mlp.down.weight"] = ("F32", [16, 32], down)
        tensors[f"model.layers.{i}.norm.weight"] = ("F16", [16], numbers(16, 0.1, i))
    return tensors


class InTheBrowser(TestCase):
    browser = None

    @classmethod
    def setUpClass(cls):
        cls.browser = Chromium()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()

    def setUp(self):
        super().setUp()
        self.browser.events.clear()

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])
        self.browser.call("Page.navigate", url="about:blank")

    def text(self, selector="body"):
        return self.browser.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def count(self, selector):
        return self.browser.run(f"document.querySelectorAll({json.dumps(selector)}).length")

    def press(self, selector):
        self.browser.run(f"document.querySelector({json.dumps(selector)}).click()")

    def report(self, *words):
        path = self.folder / "report.html"
        self.ballast("view", *words, "--html", path, "--force")
        return path.as_uri()

    def served(self, *words):
        server = Server(*words)
        self.addCleanup(server.__exit__)
        self.browser.open(f"http://127.0.0.1:{server.port}/?token={server.token}")
        return server


class ThePage(InTheBrowser):
    def test_opens_and_loses_the_token(self):
        server = self.served(TINY)
        self.assertEqual(self.browser.run("location.href"), f"http://127.0.0.1:{server.port}/")
        self.assertEqual(self.browser.run("document.cookie"), "")  # HttpOnly
        self.assertIn("12 tensors", self.text("#head").replace("\u00a0", " "))
        for name in self.browser.requests():
            self.assertTrue(name.startswith((f"http://127.0.0.1:{server.port}/", "about:", "data:")), name)

    def test_shows_every_view_by_its_key(self):
        self.served(self.write("m.safetensors", model()))
        for key, view in (("2", "table"), ("3", "layers"), ("4", "file"), ("1", "map")):
            self.browser.key(key, key)
            self.browser.wait(f"document.body.dataset.view === '{view}'")
        self.assertEqual(self.browser.run("location.hash"), "")

    def test_leaves_the_focus_where_it_was(self):
        self.served(self.write("m.safetensors", model()))
        for press in ("#tab-layers", "[aria-label=Measure] button:nth-child(3)", "#tab-table", ".c-bytes button"):
            self.browser.run(f"document.querySelector('{press}').focus(); document.querySelector('{press}').click()")
            self.assertTrue(self.browser.run(f"document.activeElement === document.querySelector('{press}')"), press)

    def test_takes_no_nonsense_from_its_address(self):
        address = self.report(self.write("m.safetensors", model()))
        for words in ("view=constructor", "view=layers&metric=__proto__", "color=toString", "sort=valueOf&view=table", "tensor=nobody", "prefix=%E2%80%AE&dtypes=X", "color=change", "%%%"):
            self.browser.call("Page.navigate", url="about:blank")
            self.browser.open(address + "#" + words)
            self.browser.wait("document.querySelector('#main').childElementCount > 0")

    def test_goes_back(self):
        self.served(self.write("m.safetensors", model()))
        self.press("#tab-layers")
        self.press("#tab-file")
        self.browser.run("history.back()")
        self.browser.wait("document.body.dataset.view === 'layers'")

    def test_searches_and_sorts(self):
        self.served(self.write("m.safetensors", model()))
        self.press("#tab-table")
        self.browser.run("document.querySelector('[aria-label=Rows] button:last-child').click()")
        self.browser.key("/", "/")
        for letter in "*.up.weight":
            self.browser.key(letter, letter)
        self.browser.wait("document.querySelectorAll('.row').length === 6")
        self.press(".c-max button")
        self.browser.wait("document.querySelector('.c-max[role=columnheader]').getAttribute('aria-sort') === 'descending' && !document.querySelector('.row .c-max').innerText.includes('–')")
        names = self.browser.run("[...document.querySelectorAll('.row')].sort((a, b) => parseInt(a.style.top) - parseInt(b.style.top)).map((row) => row.querySelector('.name').innerText)")
        self.assertEqual(names[0], "model.layers.5.mlp.up.weight")
        self.assertEqual(names[-1], "model.layers.3.mlp.up.weight")  # all zeros

    def test_unfolds_a_pattern_by_the_keyboard(self):
        self.served(self.write("m.safetensors", model(layers=20)))
        self.press("#tab-table")
        self.browser.run("document.querySelector('.grid').focus()")
        before = self.count(".row")
        for key in ("ArrowDown", "ArrowRight"):
            self.browser.key(key)
        self.browser.wait(f"document.querySelectorAll('.row').length > {before}")
        self.browser.key("ArrowDown")
        self.browser.key("Enter")
        self.browser.wait("!document.querySelector('aside').hidden")
        self.assertIn("model.layers.0.mlp.down.weight", self.text("aside"))
        self.browser.key("Escape")
        self.browser.wait("document.querySelector('aside').hidden")

    def test_points_out_the_layer_that_was_never_trained(self):
        self.served(self.write("m.safetensors", model()))
        self.press("#tab-layers")
        self.browser.wait("document.querySelectorAll('.mark-at.odd').length > 0")
        odd = self.browser.run("[...document.querySelectorAll('.mark-at.odd')].map((mark) => mark.getAttribute('aria-label'))")
        self.assertEqual(len(odd), 1, odd)
        self.assertIn("up.weight, layer 3: 0", odd[0])
        self.browser.run("document.querySelector('[aria-label=Measure] button:last-child').click()")
        self.browser.wait("document.querySelectorAll('.mark-at.odd').length === 1 && document.querySelector('.mark-at.odd').getAttribute('aria-label').includes('down.weight, layer 4')")

    def test_shows_one_tensor_with_its_heat_map_and_singular_values(self):
        self.served(self.write("m.safetensors", model()))
        self.browser.run("location.hash = '#view=table&tensor=model.layers.1.mlp.up.weight'")
        self.browser.run("dispatchEvent(new PopStateEvent('popstate'))")
        self.browser.wait("document.querySelector('.numbers') && document.querySelector('.heat-box .hint').innerText.includes('every value')")
        self.browser.wait("document.querySelector('.values').innerText.startsWith('[[')")
        colors = self.browser.run("(() => { const c = document.querySelector('.heat'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; const s = new Set(); for (let i = 0; i < d.length; i += 400) s.add(d[i] * 65536 + d[i + 1] * 256 + d[i + 2]); return s.size; })()")
        self.assertGreater(colors, 20)
        self.press(".spectrum button")
        self.browser.wait("document.querySelector('.spectrum').innerText.includes('16 of 16') || document.querySelector('.spectrum').innerText.includes('LAPACK')")
        code = self.browser.run("[...document.querySelectorAll('.code code')].map((c) => c.innerText)")
        self.assertIn(f"ballast cat {self.folder}/m.safetensors model.layers.1.mlp.up.weight", code)

    def test_shows_the_value_under_the_pointer(self):
        self.served(self.write("m.safetensors", {"w": ("F32", [2, 2], [1, 2, 3, 4.5])}))
        self.browser.run("location.hash = '#tensor=w'; dispatchEvent(new PopStateEvent('popstate'))")
        self.browser.wait("document.querySelector('.heat-box .hint') && document.querySelector('.heat-box .hint').innerText.includes('every value')")
        x, y, w, height = self.browser.run("(() => { const e = document.querySelector('.heat'); e.scrollIntoView(); const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()")
        self.browser.mouse("mouseMoved", x + 0.75 * w, y + 0.75 * height)
        self.browser.wait("!document.querySelector('#tip').hidden")
        tip = self.text("#tip")
        self.assertTrue(tip.startswith("4.5"), tip)
        self.assertIn("this value", tip)

    def test_zooms_the_map_and_walks_it_by_keys(self):
        self.served(self.write("m.safetensors", model()))
        self.browser.wait("mapIsThere = document.querySelector('.stage canvas')")
        self.browser.run("document.querySelector('.stage canvas').focus()")
        self.browser.key("ArrowRight")
        self.browser.wait("document.querySelector('#said').innerText.includes('tensor')")
        self.browser.key("Enter")
        self.browser.wait("document.querySelector('#crumbs').innerText.includes('model')")
        self.browser.key("Backspace")
        self.browser.wait("!document.querySelector('#crumbs').innerText.includes('model')")
        x, y, w, height = self.browser.run("(() => { const b = document.querySelector('.stage canvas').getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()")
        self.browser.click(x + w / 2, y + 8)
        self.browser.wait("document.querySelector('#crumbs').innerText.includes('model')")

    def test_compares_two(self):
        self.served(self.write("a.safetensors", model()), self.write("b.safetensors", model(change=0.5, broken=False) | {"new": ("F32", [1], [1])}))
        self.press("#tab-difference")
        self.browser.wait("document.querySelector('.worst')")
        first = self.text(".worst li")
        self.assertIn("model.layers.3.mlp.up.weight", first)
        self.assertIn("from zero", first)
        self.assertIn("Only in B: 1", self.text("main"))
        self.press(".worst li:nth-child(2) button")
        self.browser.wait("document.querySelectorAll('aside .bins').length === 2")
        self.assertIn("‖A−B‖ / ‖A‖", self.text("aside"))

    def test_shows_an_adapter(self):
        config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q"], "base_model_name_or_path": "x"}
        (self.folder / "adapter_config.json").write_text(json.dumps(config))
        tensors = {}
        for i in range(4):
            tensors[f"base_model.model.l.{i}.q.lora_A.weight"] = ("F32", [2, 8], numbers(16))
            tensors[f"base_model.model.l.{i}.q.lora_B.weight"] = ("F32", [8, 2], numbers(16, i + 1))
        self.write("adapter_model.safetensors", tensors)
        self.served(self.folder)
        self.browser.wait("document.querySelectorAll('.bar-up').length === 4")
        self.assertIn("LORA", self.text("main"))

    def test_takes_hostile_names_as_text(self):
        names = [HOSTILE, "a\u202eb\u0000c", "<b>x</b>.weight", "x" * 5000, "\n\r\t", "javascript:alert(1)", "__proto__", "constructor.prototype.0", "#&tensor=x"]
        path = self.write("h.safetensors", {name: ("F32", [2, 2], [1, 2, 3, 4]) for name in names}, {HOSTILE: HOSTILE})
        self.served(path)
        for view in ("map", "table", "layers", "file"):
            self.press("#tab-" + view)
            self.browser.wait(f"document.body.dataset.view === '{view}'")
            time.sleep(0.2)
        self.assertIn("</script>", self.text("main"))
        self.press("#tab-table")
        for i in range(len(names)):
            self.browser.run(f"document.querySelectorAll('.row')[{i}].click()")
            self.browser.wait("document.querySelector('aside .numbers')")
        self.assertEqual(self.count("main img, main b x, aside img, main script, aside script"), 0)
        self.assertNotIn("\u202e", self.browser.run("document.body.innerText"))

    def test_has_a_name_for_everything_that_can_be_pressed(self):
        self.served(self.write("m.safetensors", model()))
        unnamed = """[...document.querySelectorAll('button, input, select, [tabindex="0"], [role=img]')].filter((e) =>
          !e.closest('[hidden]') && !(e.innerText || '').trim() && !e.getAttribute('aria-label') && !e.labels?.length && !e.getAttribute('aria-labelledby')).map((e) => e.outerHTML)"""
        for view in ("map", "table", "layers", "file"):
            self.press("#tab-" + view)
            self.browser.wait(f"document.body.dataset.view === '{view}'")
            self.assertEqual(self.browser.run(unnamed), [], view)

    def test_is_readable_in_light_and_dark(self):
        """Text against its background, as WCAG counts it."""
        self.served(self.write("m.safetensors", model()))
        contrast = """(() => {
          const light = ([r, g, b]) => { const f = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
          const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
          const under = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] > 0.99) return c; } return [255, 255, 255]; };
          const bad = [];
          for (const e of document.querySelectorAll('body *')) {
            if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || e.closest('[hidden], .away, #said, noscript, script, style, svg, .skip') || !e.getClientRects().length) continue;
            const [a, b] = [light(rgb(getComputedStyle(e).color)), light(under(e))].sort((x, y) => y - x);
            const ratio = (a + 0.05) / (b + 0.05);
            if (ratio < 4.5) bad.push(e.className + ' ' + e.innerText.slice(0, 30) + ' ' + ratio.toFixed(2));
          }
          return bad;
        })()"""
        self.browser.run("location.hash = '#tensor=model.layers.1.mlp.up.weight'; dispatchEvent(new PopStateEvent('popstate'))")
        self.browser.wait("document.querySelector('aside .numbers')")
        for dark in (False, True):
            self.browser.theme(dark)
            for view in ("map", "table", "layers", "file"):
                self.press("#tab-" + view)
                self.browser.wait(f"document.body.dataset.view === '{view}'")
                time.sleep(0.2)
                self.assertEqual(self.browser.run(contrast), [], (view, dark))
        self.browser.theme(False)


class TheReport(InTheBrowser):
    def test_opens_from_a_file_without_a_network(self):
        address = self.report(self.write("m.safetensors", model()))
        self.browser.offline()
        try:
            self.browser.open(address)
            for view in ("table", "layers", "file", "map"):
                self.press("#tab-" + view)
                self.browser.wait(f"document.body.dataset.view === '{view}'")
            self.press("#tab-layers")
            self.browser.wait("document.querySelectorAll('.mark-at.odd').length === 1")
            self.assertEqual([name for name in self.browser.requests() if not name.startswith(("file:", "data:", "about:"))], [])
        finally:
            self.browser.call("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)

    def test_shows_the_command_where_it_has_no_values(self):
        self.browser.open(self.report(self.write("m.safetensors", model())) + "#tensor=model.layers.1.mlp.up.weight")
        self.browser.wait("document.querySelector('aside .numbers')")
        self.assertIn("ballast view " + str(self.folder), self.text("aside"))
        self.assertEqual(self.count("aside .histogram .bins"), 1)
        self.assertEqual(self.count("aside canvas"), 0)

    def test_lets_no_script_of_a_name_run_even_if_it_were_markup(self):
        self.browser.open(self.report(self.write("m.safetensors", model())))
        self.assertTrue(self.browser.run("""(() => { try { document.body.innerHTML = '<img src=x onerror=alert(1)>'; return false; } catch (e) { return e instanceof TypeError; } })()"""))
        self.browser.events.clear()


class AHundredThousandTensors(InTheBrowser):
    """Medians of 20, at twice what is promised on a quiet machine."""

    def test_are_shown_at_once_and_move_smoothly(self):
        layers, experts = 70, 470
        shape = {"dtype": "BF16", "shape": [2, 2]}
        header, offset = {}, 0
        for layer in range(layers):
            for expert in range(experts):
                for role in ("up", "gate", "down"):
                    header[f"model.layers.{layer}.mlp.experts.{expert}.{role}_proj.weight"] = shape | {"data_offsets": [offset, offset + 8]}
                    offset += 8
            for k in range(20):
                header[f"model.layers.{layer}.part_{k}.weight"] = shape | {"data_offsets": [offset, offset + 8]}
                offset += 8
        self.assertGreaterEqual(len(header), 100_000)
        path = self.write("many.safetensors", with_header(json.dumps(header), bytes(offset)))
        server = Server(path)
        self.addCleanup(server.__exit__)
        start = time.monotonic()
        self.browser.open(f"http://127.0.0.1:{server.port}/?token={server.token}")
        first_paint = time.monotonic() - start
        self.press("[aria-label=Layers] button:last-child")
        median = """(async (act) => {
          const times = [];
          for (let i = 0; i < 20; ++i) {
            const start = performance.now();
            act(i);
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
            times.push(performance.now() - start);
          }
          return times.sort((a, b) => a - b)[10];
        })"""
        wheel = "((i) => { const c = document.querySelector('.stage canvas'), b = c.getBoundingClientRect(); c.dispatchEvent(new WheelEvent('wheel', {deltaY: i < 12 ? -60 : 60, clientX: b.left + 300, clientY: b.top + 200, bubbles: true, cancelable: true})); })"
        zoom = self.browser.run(f"{median}({wheel})")
        self.press("#tab-table")
        scroll = self.browser.run(f"{median}((i) => {{ document.querySelector('.grid').scrollTop = i * 3000; }})")
        print(f"100 000 tensors: first paint {first_paint:.2f} s, a step of the map {zoom:.0f} ms, of the table {scroll:.0f} ms", file=sys.stderr)
        if os.environ.get("BALLAST_SANITIZE"):
            return
        self.assertLess(first_paint, 4)
        self.assertLess(zoom, 100)
        self.assertLess(scroll, 100)


if __name__ == "__main__":
    if BROWSER is None:
        print("skipped: there is no Chromium (apt-get install chromium)")
        sys.exit(77)
    unittest.main()
