"""Interface of the encoder that a model fitted on a table owns."""

from typing import Any, Protocol


class Encoder(Protocol):
    """Encoder of data frames; see ``aucmax.tables.encoder``."""

    schema: Any

    def transform(self, frame: Any, warn_unknown: bool = True) -> Any:
        """Return the feature rows of a data frame."""
        ...

    @property
    def column_of_feature(self) -> list[str]:
        """Name of the column of each feature."""
        ...

    @property
    def category_of_feature(self) -> Any:
        """Number of the category of each one-hot feature; -1 for other features."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return the encoder as values that JSON can hold."""
        ...
