"""``python -m dectool``."""

from dectool.cli import main

if __name__ == "__main__":
    main()
