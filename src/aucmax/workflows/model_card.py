"""Facts about a model for the model card of a report."""

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from aucmax.blend.blended_model import BlendedModel
from aucmax.tables.column_kinds import column_kinds
from aucmax.workflows.score import Model

_PACKAGES = ("aucmax", "numpy", "scikit-learn", "lightgbm")
_MAX_COLUMNS = 200


def model_card(
    model: Model, name: str, data: Sequence[str]
) -> Mapping[str, Mapping[str, object]]:
    """Return the facts by section; sections without facts are empty."""
    estimator, recipe = model.estimator, model.recipe or {}
    reader, training = recipe.get("input", {}), recipe.get("training") or {}
    about: dict[str, object] = {
        "file": name,
        "class": type(estimator).__name__,
        "positive class": str(model.task()),
        "features": f"{model.width:,}",
    }
    if isinstance(estimator, BlendedModel):
        about["AUC in training"] = estimator.estimate()
    for one in getattr(estimator, "leaderboard_", None) or []:
        about[f"member {one.member}"] = f"weight {one.weight:.3g}, AUC {one.auc:.4f}"
    facts = {str(k).replace("_", " "): v for k, v in training.items() if v is not None}
    roles = (reader.get("roles") or [])[:_MAX_COLUMNS]
    columns = {
        kind.name: f"{kind.kind}, {role['distinct']:,} distinct, "
        f"{100.0 * role['missing'] / max(role['rows'], 1):.3g} % missing"
        for kind, role in zip(column_kinds(roles), roles, strict=True)
    }
    return {
        "Model": about,
        "Parameters": {k: str(v) for k, v in estimator.get_params(deep=False).items()},
        "Training data": facts,
        "Evaluated data": {"files": list(data)},
        "Columns": columns,
        "Versions": {
            "Python": platform.python_version(),
            **{package: version(package) for package in _PACKAGES},
        },
        "Limits": {
            "data": "The figures hold for rows drawn like the evaluated ones. If rows "
            "of the same customer, patient or day are in training and evaluation, or "
            "if the world changes, they are too good.",
            "scores": "Scores rank rows. They do not show what causes the outcome.",
        },
    }
