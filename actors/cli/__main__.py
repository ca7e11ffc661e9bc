"""``python -m playbill.actors.cli`` is the console script."""

from . import main

main()
