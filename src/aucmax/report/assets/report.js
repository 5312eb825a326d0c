"use strict";
// Moves the threshold: reads the numbers that Python computed, and computes no measure.
(function () {
  const page = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = data.explorer;
  const last = at.threshold.length - 1;
  const find = (id) => document.getElementById(id);
  const slider = find("slider");
  const setting = { rows: find("rows-per-day"), gain: find("gain"), cost: find("cost") };
  page.classList.add("script");

  const percent = (share) => (100 * share).toFixed(share < 0.0995 ? 2 : 1) + " %";
  const count = (number) => number.toLocaleString("en-US", { maximumFractionDigits: number < 100 ? 1 : 0 });
  const short = (number) => Number(number.toPrecision(6)).toString();
  const range = (name, k) => {
    const low = at[name + "_low"][k], high = at[name + "_high"][k];
    return low === null ? "" : data.level + " CI " + percent(low) + " to " + percent(high);
  };
  const put = (id, text) => { find("at-" + id).textContent = text; };

  function place(name, x, y) {
    const scale = data.charts[name], chart = find("chart-" + name);
    if (!scale || !chart) return;
    const [left, top, width, height] = scale.box;
    const known = x !== null && x !== undefined && x >= scale.x[0] && x <= scale.x[1];
    const across = left + (x - scale.x[0]) / (scale.x[1] - scale.x[0]) * width;
    const dot = chart.querySelector(".marker"), line = chart.querySelector(".marker-line");
    const shown = known && y !== null && y !== undefined;
    dot.toggleAttribute("hidden", !shown);
    line.toggleAttribute("hidden", !(known && y === undefined));
    if (shown) {
      const inside = Math.min(Math.max(y, scale.y[0]), scale.y[1]);
      dot.setAttribute("cx", across);
      dot.setAttribute("cy", top + height - (inside - scale.y[0]) / (scale.y[1] - scale.y[0]) * height);
    } else if (known) {
      line.setAttribute("x1", across);
      line.setAttribute("x2", across);
    }
  }

  function show(k, write) {
    const called = at.tp[k] + at.fp[k];
    const rows = Number(setting.rows.value), gain = Number(setting.gain.value), cost = Number(setting.cost.value);
    slider.value = k;
    put("threshold", at.threshold[k] === null ? "above all scores" : short(at.threshold[k]));
    put("probability", at.probability && at.probability[k] !== null ? "probability " + percent(at.probability[k]) : "");
    put("alerts", count(rows * called / data.rows));
    put("alert-share", percent(called / data.rows) + " of the rows");
    for (const name of ["recall", "fpr", "precision"]) {
      put(name, at[name][k] === null ? "–" : percent(at[name][k]));
      put(name + "-range", range(name, k));
    }
    put("per-hit", at.tp[k] > 0 ? count(called / at.tp[k]) + " alerts per positive found" : "");
    const money = (at.tp[k] * gain - at.fp[k] * cost) / data.rows * rows;
    put("money", money.toLocaleString("en-US", { maximumFractionDigits: 2 }));
    put("tp", count(at.tp[k])); put("fp", count(at.fp[k]));
    put("fn", count(data.positives - at.tp[k])); put("tn", count(data.rows - data.positives - at.fp[k]));
    slider.setAttribute("aria-valuetext", "threshold " + find("at-threshold").textContent + ", recall " + find("at-recall").textContent + ", precision " + find("at-precision").textContent);
    const probability = at.probability ? at.probability[k] : null;
    place("roc", at.fpr[k], at.recall[k]);
    place("precision-recall", at.recall[k], at.precision[k]);
    place("gains", called / data.rows, at.recall[k]);
    place("calibration", probability);
    place("decision", probability, at.net_benefit ? at.net_benefit[k] : null);
    place("scores", at.threshold[k]);
    if (write) {
      const state = new URLSearchParams({ t: String(at.threshold[k]), rows: setting.rows.value, gain: setting.gain.value, cost: setting.cost.value });
      history.replaceState(null, "", "#" + state);
    }
  }

  function nearest(wanted) {
    let best = 0;
    for (let k = 0; k <= last; k++) {
      const value = at.threshold[k] === null ? Infinity : at.threshold[k];
      const old = at.threshold[best] === null ? Infinity : at.threshold[best];
      if (Math.abs(value - wanted) < Math.abs(old - wanted) || old === Infinity) best = k;
    }
    return best;
  }

  function restore() {
    const state = new URLSearchParams(location.hash.slice(1));
    for (const name of Object.keys(setting)) {
      if (state.has(name) && Number.isFinite(Number(state.get(name)))) setting[name].value = state.get(name);
    }
    const wanted = state.get("t");
    if (wanted === "null") return 0;
    return wanted !== null && Number.isFinite(Number(wanted)) ? nearest(Number(wanted)) : data.start;
  }

  slider.max = last;
  slider.addEventListener("input", () => show(Number(slider.value), true));
  for (const field of Object.values(setting)) field.addEventListener("input", () => show(Number(slider.value), true));
  find("most-alerts").addEventListener("change", (event) => {
    const most = Number(event.target.value) / Number(setting.rows.value) * data.rows;
    let k = 0;
    while (k < last && at.tp[k + 1] + at.fp[k + 1] <= most) k++;
    show(k, true);
  });
  find("least-recall").addEventListener("change", (event) => {
    let k = 0;
    while (k < last && at.recall[k] < Number(event.target.value) / 100 - 1e-12) k++;
    show(k, true);
  });
  window.addEventListener("hashchange", () => show(restore(), false));
  show(restore(), false);
})();
