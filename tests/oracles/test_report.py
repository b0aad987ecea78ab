"""The page of mimus report in a real browser: run by ci/browser.sh."""

import base64
import os
import pathlib
import re

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

pytestmark = pytest.mark.browser
HEADS = (5, 2, 3)
PICTURES = os.environ.get("MIMUS_PICTURES")  # a folder for what the tests have seen

# How many of a canvas's pixels are painted, and in how many colours.
PAINTED = """return [...document.querySelectorAll("canvas")].map((canvas) => {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height), seen = new Set();
  let painted = 0;
  for (let i = 0; i < data.length; i += 4)
    if (data[i + 3] > 0) { painted++; seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]); }
  return {title: canvas.getAttribute("aria-label"), painted, colours: seen.size};
})"""

# Elements that stick out of the page, but for what scrolls by itself.
OUTSIDE = """return [...document.querySelectorAll("main *")].filter((each) => !each.closest(".wide") &&
  (each.getBoundingClientRect().right > innerWidth + 0.5 || each.getBoundingClientRect().left < -0.5)).map((each) => each.outerHTML.slice(0, 80))"""

# The least contrast of a text with what lies behind it, by WCAG 2.1.
CONTRAST = """
  const parse = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return {rgb: n.slice(0, 3), a: n[3] ?? 1}; };
  const light = (rgb) => rgb.map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (each) => { for (; each; each = each.parentElement) { const c = parse(getComputedStyle(each).backgroundColor);
    if (c.a === 1) return c.rgb; } return [255, 255, 255]; };
  let worst = [99, ""];
  for (const each of document.querySelectorAll("h1, h2, h3, p, td, th, b, span, small, footer")) {
    if (!each.textContent.trim() || each.closest(".matrix td")) continue;
    const [a, b] = [light(parse(getComputedStyle(each).color).rgb), light(behind(each))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < worst[0]) worst = [ratio, each.outerHTML.slice(0, 80)];
  }
  return worst;"""


@pytest.fixture(scope="module")
def browser():
    options = Options()
    options.binary_location = os.environ["MIMUS_BROWSER"]
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(os.environ["MIMUS_CHROMEDRIVER"]))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(mimus, trained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    runs = [trained(6, HEADS, True, *options)[0] for options in ((), ("--hidden", "16"), ("--optimizer", "sgd"))]
    named = []
    for name, run in zip(("base", "<script>alert(1)</script>", "sgd & co"), runs):
        named.append(folder / name.replace("/", "_"))
        named[-1].symlink_to(run)
    mimus("report", named[0], "-o", folder / "one.html")
    mimus("report", *named, "-o", folder / "three.html")
    unfinished = folder / "unfinished"
    unfinished.mkdir()
    for name in ("config.json", "run.json"):
        (unfinished / name).write_bytes((runs[0] / name).read_bytes())
    mimus("report", unfinished, "-o", folder / "empty.html")
    return folder


def look(browser, page, width, scheme):
    """Open it as a screen of that width would, in that colour scheme."""
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.as_uri())
    height = browser.execute_script("return document.documentElement.scrollHeight")
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size | {"height": height})
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    if PICTURES:
        picture = browser.execute_cdp_cmd("Page.captureScreenshot", {})["data"]
        (pathlib.Path(PICTURES) / f"{page.stem}-{width}-{scheme}.png").write_bytes(base64.b64decode(picture))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("page,charts", [("one", 4 + 1 + 3 + 2), ("three", 4 + 1 + 3 + 2)])
def test_a_page_is_drawn(browser, pages, page, charts, width, scheme):
    look(browser, pages / f"{page}.html", width, scheme)
    assert browser.get_log("browser") == []
    painted = browser.execute_script(PAINTED)
    assert len(painted) == charts == int(browser.execute_script("return document.documentElement.dataset.charts"))
    for canvas in painted:
        assert canvas["painted"] > 1000 and canvas["colours"] > 10, canvas
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(OUTSIDE) == []
    ratio, where = browser.execute_script(CONTRAST)
    assert ratio >= 4.5, where


def test_nothing_is_loaded(browser, pages):
    browser.get_log("performance")
    look(browser, pages / "three.html", 1280, "light")
    asked = [entry["message"] for entry in browser.get_log("performance") if '"Network.requestWillBeSent"' in entry["message"]]
    assert len(asked) == 1 and "three.html" in asked[0]


def test_names_are_text(browser, pages):
    look(browser, pages / "three.html", 1280, "light")
    assert browser.get_log("browser") == []
    assert "<script>alert(1)<_script>" in browser.find_element("css selector", "main").text


def test_numbers_are_those_of_the_run(browser, pages, mimus):
    """What the page shows of a head is what mimus compare says."""
    look(browser, pages / "three.html", 1280, "light")
    document = mimus.json("compare", *(pages / name for name in ("base", "<script>alert(1)<_script>", "sgd & co")))
    tables = browser.find_elements("css selector", "table")
    results = next(table for table in tables if "metric" in table.text.split("\n")[0]).text.split("\n")[1:]
    assert len(results) == len(document["metrics"]) == 2 * (len(HEADS) + 1)
    for line, metric in zip(results, document["metrics"]):
        scale, half = (100, 0.0501) if metric["metric"] == "agreement" else (1, 0.0000501)
        shown = [(float(value), float(se)) for value, se in re.findall(r"([\d.]+)%? ± ([\d.]+)", line)]
        for (value, se), want in zip(shown, metric["values"], strict=True):
            assert value == pytest.approx(scale * want["value"], abs=half) and se == pytest.approx(scale * want["se"], abs=half)
        for against in metric["against_first"]:
            assert against["verdict"] in line


def test_another_run_s_matrices_can_be_chosen(browser, pages):
    look(browser, pages / "three.html", 1280, "light")
    before = [matrix.text for matrix in browser.find_elements("css selector", ".matrix")]
    assert len(before) == len(HEADS)
    browser.execute_script("const s = document.querySelector('select'); s.value = 2; s.dispatchEvent(new Event('change'))")
    after = [matrix.text for matrix in browser.find_elements("css selector", ".matrix")]
    assert len(after) == len(HEADS) and after != before


def test_colours_follow_the_scheme(browser, pages):
    """Also when it changes while the page is open."""
    look(browser, pages / "one.html", 1280, "light")
    pixels = "return document.querySelector('canvas').toDataURL()"
    light = browser.execute_script(pixels)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert browser.execute_script(pixels) != light


def test_a_run_without_anything_says_so(browser, pages):
    look(browser, pages / "empty.html", 390, "dark")
    assert browser.get_log("browser") == []
    text = browser.find_element("css selector", "main").text
    assert "No epoch is finished" in text and "training, or killed" in text


def test_the_bench_page_is_drawn_too(browser, mimus, tmp_path):
    page = tmp_path / "bench.html"
    mimus("bench", "--samples", 20000, "--epochs", 2, "-o", page, "-q")
    for width in (390, 1280):
        look(browser, page, width, "dark")
        assert browser.get_log("browser") == []
        assert len(browser.find_elements("css selector", ".bar")) >= 3
        assert browser.execute_script(OUTSIDE) == []
