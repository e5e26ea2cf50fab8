"""`python -m jobtrack.cli`: the command without its console script."""

from jobtrack.cli import main

if __name__ == "__main__":
    main(prog_name="jobtrack")
