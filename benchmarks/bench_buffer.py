"""Time one pass of OAM and CBR on a9a.

``python benchmarks/bench_buffer.py``; a9a is read from $AUCMAX_DATA or ../shared/data.
OAM, with its buffers of 100, against SPAM, which needs none; CBR, with its buffers of
50, against the same steps in plain NumPy, twice. For AUC see ``bench_buffer_auc.py``.
"""

from typing import Any

import numpy as np
from scipy.special import ndtri

from aucmax import CBR, OAM, SPAM
from aucmax.online.engine import feature_table as engine
from bench import Row, best_of, main, shared

SIZE, C, PHI = 50, 0.001, float(ndtri(0.7))


def confidence_weighted(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the weights of CBR after one pass over unit-scale rows, in NumPy."""
    mu, S = np.zeros(X.shape[1]), np.eye(X.shape[1])
    buffers: dict[int, list[np.ndarray]] = {0: [], 1: []}
    seen = [0, 0]
    psi, zeta = 1 + PHI**2 / 2, 1 + PHI**2
    longest = C / np.sqrt(
        2 * np.mean([np.mean(np.sum(X[y == s] ** 2, 1)) for s in (0, 1)])
    )
    for x, label in zip(X, y.tolist(), strict=True):
        for other in buffers[1 - label]:
            z = x - other if label else other - x
            u = S @ z
            v, m = z @ u, mu @ z
            if v > 0 and PHI * np.sqrt(v) > m:
                root = np.sqrt(m * m * PHI**4 / 4 + v * PHI**2 * zeta)
                alpha = min(longest, max(0.0, (root - m * psi) / (v * zeta)))
                part = alpha * v * PHI
                root_u = 0.5 * (np.sqrt(part * part + 4 * v) - part)
                mu += alpha * u
                S -= alpha * PHI / (root_u + part) * np.outer(u, u)
        if seen[label] < SIZE:
            buffers[label].append(x)
        else:
            buffers[label][seen[label] % SIZE] = x
        seen[label] += 1
    return mu


def run(repeat: int) -> list[Row]:
    """Return the seconds of each and the ratios."""
    a9a = shared("a9a.train")
    if a9a is None:
        raise SystemExit("a9a.train is not there.")
    X, y = a9a
    dense = X.toarray()
    results: list[Row] = []

    def compare(data: str, ours: str, rival: str, seconds: dict[str, float]) -> None:
        ratio = seconds[rival] / seconds[ours]
        results.append(
            {
                "data": data,
                "ours": ours,
                "s": seconds[ours],
                "rival": rival,
                "rival's s": seconds[rival],
                "rival / ours": ratio,
            }
        )

    def job(model: Any, X: Any, y: np.ndarray) -> Any:
        model.set_params(max_iter=1).fit(X, y)  # compiles, or loads what was compiled
        return lambda: model.fit(X, y)

    for data, rows in (("a9a, CSR", X), ("a9a, dense", dense)):
        jobs = {
            "SPAM": job(SPAM(), rows, y),
            "OAM": job(OAM(), rows, y),
            "OAM gra": job(OAM(update="gra"), rows, y),
            "CBR diag": job(CBR(covariance="diag"), rows, y),
            "CBR": job(CBR(), rows, y),
        }
        seconds = best_of(repeat, jobs)
        for ours in list(jobs)[1:]:
            compare(data, ours, "SPAM", seconds)

    model = CBR(shuffle=False)
    fit = job(model, dense, y)
    table = model.state_.table
    unit = (dense - table.ref) * np.sqrt(table.feat[engine.D])
    mu = np.zeros(0)

    def slow() -> None:
        nonlocal mu
        mu = confidence_weighted(unit, y)

    # Ours between the long runs, too, so that both see the same machine.
    rounds = [best_of(1, {"NumPy": slow}) | best_of(repeat, {"CBR": fit}) for _ in "ab"]
    seconds = {name: min(one[name] for one in rounds) for name in rounds[0]}
    np.testing.assert_allclose(
        mu, table.feat[engine.W], rtol=1e-6, atol=1e-9 * np.ptp(mu)
    )
    compare("a9a, dense", "CBR", "NumPy", seconds)
    return results


if __name__ == "__main__":
    main("One pass, seconds", run, repeat=3)
