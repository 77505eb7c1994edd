"""`python -m tsallax` is `tsallax`."""

from tsallax.cli.app import main

if __name__ == "__main__":
    main()
