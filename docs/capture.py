"""Draws the pictures of the real program: `python docs/capture.py`. With `--check` it only says which are stale.

Needs the extra `docs`. A picture is stale when the program's screen, normalised, has another text than the one it was made
from; colours are not compared.
"""

from __future__ import annotations

import difflib
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.picture import described, picture, text_of
from tools.scenes import SCENES

PICTURES = Path(__file__).resolve().parent / "pictures"


def main(arguments: list[str]) -> int:
    """Run the command.

    Args:
        arguments: nothing, or `--check`; then names of pictures, without any all.
    """
    check = arguments[:1] == ["--check"]
    names = arguments[check:] or list(SCENES)
    unknown = [name for name in names if name not in SCENES]
    if unknown:
        print(
            f"usage: python docs/capture.py [--check] [NAME…]; the pictures are: {', '.join(SCENES)}", file=sys.stderr
        )
        return 2
    wrong = 0
    # The programs mostly wait: all at once.
    with ThreadPoolExecutor(len(names)) as pool:
        shots = {name: pool.submit(SCENES[name].shoot) for name in names}
    for name, shot in shots.items():
        path, scene = PICTURES / f"{name}.svg", SCENES[name]
        before = described(path.read_text("utf-8")) if path.exists() else ""
        try:
            screen = shot.result()
        except (OSError, RuntimeError) as error:
            print(f"docs/pictures/{name}.svg cannot be made: {error}", file=sys.stderr)
            wrong = 1
            continue
        now = text_of(screen)
        if not check:
            path.write_text(picture(screen, title=scene.title, columns=scene.columns), "utf-8")
            print(f"docs/pictures/{name}.svg {'is as it was' if now == before else 'is new'}")
        elif now != before:
            wrong = 1
            print("pictures are stale: run python docs/capture.py", file=sys.stderr)
            changed = difflib.unified_diff(
                before.splitlines(),
                now.splitlines(),
                f"docs/pictures/{name}.svg",
                f"{scene.title}, now",
                lineterm="",
                n=1,
            )
            print("\n".join(changed), file=sys.stderr)
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
