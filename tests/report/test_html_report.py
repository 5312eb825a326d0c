"""The HTML report: what is in the file, and that it is harmless."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.special import expit

from aucmax import goals, report, thresholds
from aucmax.metrics import (
    auc_interval,
    confusion_at,
    net_benefit,
    operating_point,
)
from aucmax.report.summary import explorer, summarise

EVIL = "<script>alert('x')</script>\"&"


def scored_rows(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.15
    return rng, y, 1.4 * y + rng.normal(size=n) - 2.0


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng, y, score = scored_rows()
    path = tmp_path_factory.mktemp("report") / "report.html"
    report.html(
        y,
        {EVIL: score, "other": score + rng.normal(size=y.size)},
        path,
        probability=expit(score),
        group=rng.choice(["a", EVIL], y.size),
        time=np.datetime64("2024-01-01") + rng.integers(0, 300, y.size),
        importances=[(EVIL, 0.1, 0.05, 0.15), ("b", 0.01, -0.01, 0.03)],
        card={EVIL: {EVIL: EVIL}},
        title=EVIL,
        held_out=EVIL,
    )
    return path.read_text(encoding="utf-8")


class Elements(HTMLParser):
    """Collects the elements and attributes of a page, and checks that they close."""

    VOID = ("meta", "input", "br", "line", "circle", "polyline", "polygon")

    def __init__(self, text):
        super().__init__()
        self.open, self.found = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_elements_are_nested_and_ids_are_unique(text):
    page = Elements(text)
    assert page.open == []
    ids = [a["id"] for _, a in page.found if "id" in a]
    assert len(ids) == len(set(ids))
    links = {a["href"][1:] for tag, a in page.found if tag == "a"}
    assert links <= set(ids)


def test_names_from_the_data_are_escaped(text):
    assert EVIL not in text
    assert "<script>alert" not in text
    assert text.count("<script") == 2  # the data and the script of the page


def test_control_characters_are_replaced(tmp_path):
    y = np.arange(60) % 2 == 0
    names = np.array(["a\x1b[31m", "b\u202egnp", "c\u2066", "d\x07\x85"])[
        np.arange(60) % 4
    ]
    scores = np.random.default_rng(0).normal(size=60)
    report.html(y, {"m\x1b\u202e": scores}, tmp_path / "a.html", group=names)
    found = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert not [c for c in found if not c.isprintable() and c not in "\n\t\xa0\u202f"]


def test_nothing_is_loaded_and_only_the_own_script_runs(text):
    page = Elements(text)
    for tag, attrs in page.found:
        assert tag not in ("link", "img", "iframe", "object", "embed")
        assert "src" not in attrs
        assert not any(name.startswith("on") for name in attrs)
        assert "style" not in attrs  # the policy would refuse it
    policy = next(a["content"] for _, a in page.found if "http-equiv" in a)
    assert "default-src 'none'" in policy
    assert len(re.findall("sha256-", policy)) == 2
    assert "unsafe" not in policy


def embedded(text):
    found = re.search(r'id="data">(.*?)</script>', text, re.S)
    return json.loads(found[1])


def test_numbers_of_the_slider_are_those_of_the_measures(text):
    _, y, score = scored_rows()
    data = embedded(text)
    at = data["explorer"]
    assert data["models"][EVIL] == list(auc_interval(y, score)[:3])
    for k in np.linspace(1, len(at["threshold"]) - 1, 12).astype(int):
        found = confusion_at(y, score, at["threshold"][k])
        assert (found.tp, found.fp) == (at["tp"][k], at["fp"][k])
        for name in ("recall", "fpr", "precision"):
            shown = at[name][k], at[f"{name}_low"][k], at[f"{name}_high"][k]
            assert shown == tuple(getattr(found, name))
        p = at["probability"][k]
        assert p == pytest.approx(expit(at["threshold"][k]), rel=1e-12)
        curve = net_benefit(y, expit(score), thresholds=[p])
        assert at["net_benefit"][k] == pytest.approx(curve.net_benefit[0], abs=1e-12)


def test_the_slider_goes_from_no_row_to_all_rows():
    _, y, score = scored_rows()
    at = explorer(summarise(y, {"a": score}))
    called = np.add(at["tp"], at["fp"])
    assert called[0] == 0
    assert called[-1] == y.size
    assert (np.diff(called) > 0).all()
    assert set(range(1, 11)) <= set(called)  # each of the first alerts
    assert "probability" not in at  # scores beyond 0 and 1


@pytest.mark.parametrize("kind", ["ties", "constant", "perfect", "few", "infinite"])
def test_odd_scores_give_a_report(tmp_path, kind):
    _, y, score = scored_rows(200)
    if kind == "ties":
        score = np.round(score)
    elif kind == "constant":
        score = np.zeros(200)
    elif kind == "perfect":
        score = y.astype(float)
    elif kind == "few":
        y, score = np.array([0, 1, 0, 1]), np.array([1.0, 2.0, 3.0, 4.0])
    else:
        score[:3] = -np.inf, np.inf, np.inf
    report.html(y, score, tmp_path / "r.html")
    data = embedded((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert data["rows"] == y.size


def test_goal_and_promise_come_first_and_sort_the_models(tmp_path):
    _, y, score = scored_rows()
    goal = goals.RecallAtFPR(0.05)
    better = score + 0.5 * y
    path = tmp_path / "report.html"
    chosen = thresholds.choose(y, score, "fpr<=0.05")
    report.html(
        y, {"a": score, "b": better}, path, goal="recall@fpr=5%", threshold=chosen
    )
    text = path.read_text(encoding="utf-8")
    lead = text[text.index("<h1>") : text.index("<nav>")]
    assert f"<b>{goal.interval(y, score).value:.3f}</b>" in lead
    assert "promises fpr &lt;= 0.05 with confidence 95 %: <b>kept</b>" in lead
    models = text[text.index('<section id="models">') :]
    assert models.index("<th>b</th>") < models.index("<th>a</th>")
    data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
    at = data["explorer"]["threshold"]
    assert at[data["start"]] == score[score >= chosen.value].min()


def test_net_benefit_needs_probabilities_of_a_model(tmp_path):
    _, y, score = scored_rows()
    goal = goals.NetBenefit(0.1, 0.2)
    columns = {"a": score, "b": score}
    found = summarise(y, columns, probability=expit(score), goal=goal)
    assert found.models[0].goal == pytest.approx(goal.interval(y, score))
    assert found.models[1].goal is None
    assert summarise(y, columns, goal=goal).models[0].goal is None


def test_errors_name_what_is_wrong(tmp_path):
    path = tmp_path / "r.html"
    with pytest.raises(ValueError, match="score of b is NaN at row 1"):
        report.html([0, 1], {"a": [1, 2], "b": [1, np.nan]}, path)
    with pytest.raises(ValueError, match="scores is empty"):
        report.html([0, 1], {}, path)
    with pytest.raises(ValueError, match="one class only"):
        report.html([1, 1], [1, 2], path)
    assert not path.exists()


def test_a_million_rows_stay_small(tmp_path):
    _, y, score = scored_rows(1_000_000)
    report.html(y, {"a": score}, tmp_path / "r.html", probability=expit(score))
    assert (tmp_path / "r.html").stat().st_size < 400_000


def test_printed_thresholds_are_the_best_and_have_the_printed_counts(tmp_path):
    _, y, score = scored_rows(20_000)
    report.html(y, {"a": score}, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    table = text[text.index("Thresholds that people ask for") :]
    lines = re.findall(
        r"<tr><th>([^<]*)</th>(<td>.*?)</tr>", table.split("</table>")[0]
    )
    assert len(lines) == 10
    for name, line in lines:
        shown, *_, tp, fp, _, _ = re.findall("<td>(.*?)</td>", line)
        called = score >= float(shown)
        assert int(tp.replace(",", "")) == np.sum(called & y)
        assert int(fp.replace(",", "")) == np.sum(called & ~y)
        if name.startswith("FPR"):
            rate = float(name.split()[2]) / 100
            assert float(shown) == operating_point(y, score, fpr=rate).threshold
    assert "for a fixed threshold (Wilson)" in table
    cards = text[: text.index("<nav>")]
    assert cards.count(", threshold estimated</small>") == 2
