"""Training from files on a cluster, compared with one machine."""

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from helpers.parts import apart, table

pytest.importorskip("dask", reason="Dask is not installed: pip install aucmax[cluster]")

from distributed.scheduler import KilledWorker

import aucmax
from aucmax import BAM, LeastSquaresAUC, cluster
from aucmax.cli.main import app
from aucmax.cli.train import _client
from aucmax.cluster import files


@pytest.fixture
def folder(tmp_path):
    """Write a table as three Parquet files of several row groups, one of them empty."""
    X, y = table(600)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(
        target=np.where(y, "yes", "no")
    )
    for name, some in (("0", frame[:10]), ("1", frame[:0]), ("2", frame[10:])):
        some.to_parquet(tmp_path / f"part-{name}.parquet", row_group_size=70)
    return tmp_path, frame


def test_parquet(folder, monkeypatch):
    path, frame = folder
    X, y = frame[list("abcdef")].to_numpy(), frame["target"] == "yes"
    monkeypatch.setattr(files, "_SPAN_BYTES", 8 * 6 * 150)  # two row groups
    for model in (LeastSquaresAUC(), BAM()):
        alone = type(model)().fit(X, y)
        found = cluster.fit_files(model, f"{path}/part-*.parquet", label="target")
        assert found is model
        assert apart(model.coef_, alone.coef_) < 1e-9
        scores = model.decision_function(frame)
        np.testing.assert_allclose(scores, alone.decision_function(X), rtol=1e-9)


def test_other_formats(folder):
    path, frame = folder
    alone = LeastSquaresAUC().fit(frame[list("abcdef")], frame["target"] == "yes")
    for number, some in enumerate((frame[:200], frame[200:])):
        some.to_csv(path / f"{number}.csv", index=False)
        lines = [
            f"{1 if target == 'yes' else -1} "
            + " ".join(f"{j + 1}:{x!r}" for j, x in enumerate(map(float, row)))
            for *row, target in some.to_numpy().tolist()
        ]
        (path / f"{number}.svm").write_text("\n".join(lines) + "\n")
    model = cluster.fit_files(LeastSquaresAUC(), f"{path}/*.csv", label="target")
    assert apart(model.coef_, alone.coef_) < 1e-9
    model = cluster.fit_files(LeastSquaresAUC(), f"{path}/*.svm", n_features=6)
    assert apart(model.coef_, alone.coef_) < 1e-9
    with pytest.raises(ValueError, match="n_features"):
        cluster.fit_files(LeastSquaresAUC(), f"{path}/*.svm")


def test_error_names_the_file_without_labels(folder):
    path, frame = folder
    frame.drop(columns="target").to_parquet(path / "part-3.parquet")
    with pytest.raises(ValueError, match=r"part-3\.parquet has no labels"):
        cluster.fit_files(BAM(), f"{path}/part-*.parquet", label="target")


def test_rows_without_a_label_are_left_out(folder):
    path, frame = folder
    frame.drop(index=7).to_parquet(path / "part-3.parquet")
    expected = cluster.fit_files(BAM(), f"{path}/part-*.parquet", label="target")
    frame["target"] = frame["target"].where(frame.index != 7, None)
    frame.to_parquet(path / "part-3.parquet")
    found = cluster.fit_files(BAM(), f"{path}/part-*.parquet", label="target")
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6)


def test_command_options(folder):
    path, _ = folder
    runner = CliRunner()
    command = [
        "train",
        f"{path}/part-*.parquet",
        "-o",
        f"{path}/m",
        "--label",
        "target",
    ]
    local = ["--cluster", "local:0"]
    assert "number of workers" in runner.invoke(app, [*command, *local]).output
    refused = runner.invoke(app, [*command, "--cluster", "local:1", "--holdout", "0.1"])
    assert "--holdout does not work with --cluster" in refused.output


def test_train_writes_a_model(folder):
    from aucmax.workflows.plan import Plan

    path, frame = folder
    plan = Plan([f"{path}/part-*.parquet"], reader={"label": "target"})
    passes = []
    result = files.train(plan, Path(path / "m"), passes.append)
    assert type(result.estimator).__name__ == "LeastSquaresAUCCV"
    assert (result.progress.rows, passes) == (600, [1, 2])
    assert result.progress.positives == (frame["target"] == "yes").sum()
    model = aucmax.load(path / "m")
    alone = CliRunner().invoke(
        app, ["evaluate", f"{path}/m", f"{path}/part-2.parquet", "--json"]
    )
    found = json.loads(alone.stdout)["auc"]["value"]
    rows = frame[10:]
    assert found == pytest.approx(
        aucmax.metrics.auc(rows["target"] == "yes", model.decision_function(rows))
    )


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Worker 1 has no aucmax"),
        KilledWorker("task", SimpleNamespace(address="tcp://w"), 3),
    ],
)
def test_cluster_errors_are_one_line(error, folder, monkeypatch):
    def fail(*_):
        raise error

    monkeypatch.setattr(files, "train", fail)
    monkeypatch.setattr("aucmax.cli.train._client", lambda where: nullcontext())
    path, _ = folder
    data, output = path / "part-0.parquet", path / "m.aucmax"
    command = ["train", str(data), "-o", str(output), "--label", "target"]
    result = CliRunner().invoke(app, [*command, "--cluster", "tcp://127.0.0.1:1"])
    assert result.exit_code == 1
    text = f"Error: --cluster tcp://127.0.0.1:1: {type(error).__name__}: "
    assert result.output.startswith(text)
    assert len(result.output.splitlines()) == 1


def test_a_scheduler_without_workers_is_reported(monkeypatch, capsys):
    class Client(nullcontext):
        def __init__(self, *_, **__):
            super().__init__(self)

        def wait_for_workers(self, *_, **__):
            raise TimeoutError

    monkeypatch.setattr("distributed.Client", Client)
    with _client("tcp://127.0.0.1:1"):
        pass
    assert "tcp://127.0.0.1:1 has no workers" in capsys.readouterr().err
