"""``python -m aucmax`` is the command ``aucmax``."""

from aucmax.cli.main import app

if __name__ == "__main__":
    app(prog_name="aucmax")
