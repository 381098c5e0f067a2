"""The thumbnails of the examples: the picture that an example draws, or what it prints.

`python tests/support/example_pictures.py` runs the examples and writes all thumbnails again.
"""

import io
import re
import subprocess
import sys
import tempfile
import textwrap
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/_static/examples"
ARGUMENTS = {
    "digits": ("--plot", "digits.png"),
    "gan": ("--plot", "gan.png"),
    "matmul": ("cpu", "500"),
    "matmul_session": ("gpu", "500"),
    "shapes": ("--plot", "shapes.png"),
    "tumours": ("--folder", "."),
}
_SPEED = re.compile(r" - [\d.]+s - [\d,]+ examples/s \([\d,]+ a replica\)")
_WIDTH, _HEIGHT = 400, 264


def draw(example: str) -> tuple[str, bytes]:
    """Run an example, and return the ending and the content of its thumbnail.

    Args:
        example: The name of its file, without the ending.
    """
    arguments = ARGUMENTS.get(example, ())
    script = ROOT / f"examples/{example}.py"
    env = {"PYTHONPATH": str(ROOT), "MIRRORED_LOG_LEVEL": "WARNING"}
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [sys.executable, script, *arguments],
            cwd=folder,
            env=env,
            check=True,
            capture_output=True,
            text=True,
        )
        for picture in Path(folder).glob("*.png"):
            return "png", panel(picture)
    return "svg", card(" ".join(["$ python", script.name, *arguments]), run.stdout).encode()


def panel(picture: Path) -> bytes:
    """Return a picture on white, in the size of all thumbnails.

    Args:
        picture: The file of the picture.
    """
    from PIL import Image

    width, height = 2 * _WIDTH, 2 * _HEIGHT
    frame = Image.new("RGB", (width, height), "white")
    with Image.open(picture) as image:
        drawn = image.convert("RGBA")
    drawn.thumbnail((width - 40, height - 40))
    frame.paste(drawn, ((width - drawn.width) // 2, (height - drawn.height) // 2), drawn)
    content = io.BytesIO()
    frame.quantize(64).save(content, "png", optimize=True)
    return content.getvalue()


def card(command: str, output: str) -> str:
    """Return a picture of a terminal with a command and the last lines of its output.

    Args:
        command: The command line.
        output: The text that it prints.
    """
    for size in (18, 13):
        width, rows = int(620 / size), int(165 / size)
        lines = [
            piece
            for line in _SPEED.sub("", output).splitlines()
            for piece in textwrap.wrap(line, width, subsequent_indent="  ")
        ]
        if len(lines) < rows:
            break
    texts = "\n".join(
        f'<text x="14" y="{(2 + 1.5 * row) * size:g}">{escape(line)}</text>'
        for row, line in enumerate([command, *lines[1 - rows :]])
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">\n'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="8" fill="#1e2227"/>\n'
        f'<g fill="#d7dae0" font-family="monospace" font-size="{size}" xml:space="preserve">\n'
        f"{texts}\n</g>\n</svg>\n"
    )


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path in sorted((ROOT / "examples").glob("*.py")):
        ending, content = draw(path.stem)
        (FOLDER / f"{path.stem}.{ending}").write_bytes(content)
