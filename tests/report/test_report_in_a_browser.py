"""The report in Chromium: numbers, keyboard, themes, widths, without JavaScript."""

import shutil
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

from aucmax import report
from aucmax.metrics import confusion_at

webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
DRIVER = shutil.which("chromedriver")
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(not (DRIVER and BROWSER), reason="needs chromium"),
    pytest.mark.xdist_group("browser"),  # one browser at a time
]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    y = rng.random(4000) < 0.1
    return y, 1.5 * y + rng.normal(size=4000) - 2.5


@pytest.fixture(scope="module")
def page(rows, tmp_path_factory):
    y, score = rows
    path = tmp_path_factory.mktemp("browser") / "report.html"
    group = np.where(
        np.arange(y.size) % 3, "a", "<script>document.title = 'x'</script>"
    )
    report.html(
        y, {"a": score, "b": -score}, path, probability=expit(score), group=group
    )
    return f"file://{path}"


@pytest.fixture
def browser(request):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--lang=en-US"):
        options.add_argument(flag)
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    options.add_experimental_option("prefs", getattr(request, "param", {}))
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def weekly(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("weekly") / "report.html"
    weeks = 7 * (np.arange(rows[0].size) % 30)
    report.html(*rows, path, time=np.datetime64("2017-02-13") + weeks)
    return f"file://{path}"


def text(browser, name):
    return browser.find_element("id", f"at-{name}").text


def percent(share):
    return f"{100 * share:.{2 if share < 0.0995 else 1}f} %"


def test_it_loads_alone_and_without_complaints(browser, page):
    browser.get(page)
    assert browser.get_log("browser") == []
    asked = [
        line["message"]
        for line in browser.get_log("performance")
        if '"Network.requestWillBeSent"' in line["message"]
    ]
    assert len(asked) == 1  # the file itself
    assert browser.title == "How well the scores rank"


def test_the_slider_shows_what_python_computes(browser, page, rows):
    y, score = rows
    browser.get(page)
    data = browser.execute_script(
        "return JSON.parse(document.getElementById('data').textContent)"
    )
    last = int(browser.find_element("id", "slider").get_attribute("max"))
    for k in np.linspace(1, last, 10).astype(int).tolist():
        browser.execute_script(
            "const s = document.getElementById('slider'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('input'))",
            k,
        )
        found = confusion_at(y, score, data["explorer"]["threshold"][k])
        assert text(browser, "tp") == f"{found.tp:,.0f}"
        assert text(browser, "fp") == f"{found.fp:,.0f}"
        assert text(browser, "fn") == f"{found.fn:,.0f}"
        assert text(browser, "tn") == f"{found.tn:,.0f}"
        for name in ("recall", "precision", "fpr"):
            rate = getattr(found, name)
            assert text(browser, name) == percent(rate.value)
            limits = f"95 % CI {percent(rate.low)} to {percent(rate.high)}"
            assert text(browser, f"{name}-range") == limits
        money = 10 * found.tp - found.fp  # as many rows per day as in the data
        assert text(browser, "money").replace(",", "") == f"{money:.0f}"
        assert browser.find_element("css selector", "#chart-roc .marker").is_displayed()


def test_keyboard_and_the_address_that_keeps_the_position(browser, page):
    browser.get(page)
    slider = browser.find_element("id", "slider")
    before = text(browser, "threshold")
    slider.send_keys("\ue014\ue014\ue014")  # arrow right
    after = text(browser, "threshold")
    assert float(after) < float(before)
    shared = browser.current_url
    assert "t=" in shared
    browser.get("about:blank")
    browser.get(shared)
    assert text(browser, "threshold") == after


def test_typing_alerts_per_day_or_a_recall_moves_the_slider(browser, page):
    browser.get(page)
    rows_per_day = browser.find_element("id", "rows-per-day")
    rows_per_day.clear()
    rows_per_day.send_keys("40000")
    alerts = browser.find_element("id", "most-alerts")
    alerts.send_keys("200\ue007")
    assert text(browser, "alerts") == "200"
    recall = browser.find_element("id", "least-recall")
    recall.send_keys("80\ue007")
    assert 80.0 <= float(text(browser, "recall").split()[0]) < 81.5


@pytest.mark.parametrize("width", [400, 1600])
def test_no_page_is_wider_than_the_screen(browser, page, width):
    for theme in ("light", "dark"):
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
        )
        feature = {"name": "prefers-color-scheme", "value": theme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        browser.get(page)
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= width
        colour = browser.execute_script(
            "return getComputedStyle(document.body).backgroundColor"
        )
        assert (
            colour == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 28)"}[theme]
        )


@pytest.mark.parametrize("width", [400, 1400])
def test_names_of_periods_do_not_overlap(browser, weekly, width):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    browser.get(weekly)
    boxes = browser.execute_script(
        "return [...document.querySelectorAll('#chart-time .tick')]"
        ".filter(one => one.textContent.startsWith('2017-'))"
        ".map(one => one.getBoundingClientRect()).map(box => [box.left, box.right])"
    )
    assert len(boxes) >= 4
    assert all(a[1] < b[0] for a, b in pairwise(boxes))
    chart = browser.find_element("id", "chart-time").rect
    assert boxes[0][0] >= chart["x"]
    assert boxes[-1][1] <= chart["x"] + chart["width"]


@pytest.mark.parametrize(
    "browser",
    [{"profile.managed_default_content_settings.javascript": 2}],
    indirect=True,
)
def test_without_javascript_charts_and_tables_are_there(browser, page):
    browser.get(page)
    assert not browser.find_element("css selector", ".explorer").is_displayed()
    assert browser.find_element("id", "chart-roc").is_displayed()
    assert "FPR ≤ 1 %" in browser.find_element("id", "threshold").text
