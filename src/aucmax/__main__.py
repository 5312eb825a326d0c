"""``python -m aucmax`` is the command ``aucmax``."""

from aucmax.cli.main import main

if __name__ == "__main__":
    main()
