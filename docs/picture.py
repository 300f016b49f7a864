#!/usr/bin/env python3
"""Runs a command and draws its standard output as a terminal, in SVG: the picture at the head of README.md.

    docs/picture.py docs/demo.svg make demo

Invariant: the text in the picture is the command line and the command's own output, nothing else. If the command fails,
no picture is drawn. Data flow: command -> captured lines -> SVG.
"""

import html
import shlex
import subprocess
import sys

COLUMNS = 84
GLYPH, LINE, MARGIN, BAR = 8.4, 19, 18, 34  # in px: a character's width, a line's height, the border, the title bar
BACK, TEXT, PROMPT, BARS = "#1d2129", "#d7dae0", "#7bc275", "#5fa8e8"


def svg_line(number, line):
    """One line of text; runs of # are bars of a chart."""
    y = BAR + MARGIN + number * LINE
    colour = PROMPT if line.startswith("$ ") else TEXT
    words, bar = (line.rstrip("#"), line[len(line.rstrip("#")) :]) if "##" in line else (line, "")
    span = f'<tspan fill="{BARS}">{"█" * len(bar)}</tspan>' if bar else ""
    return f'<text x="{MARGIN}" y="{y}" fill="{colour}">{html.escape(words)}{span}</text>'


def svg(lines):
    """A terminal with these lines."""
    width = round(2 * MARGIN + COLUMNS * GLYPH)
    height = BAR + 2 * MARGIN + (len(lines) - 1) * LINE
    dots = "".join(
        f'<circle cx="{MARGIN + 4 + 18 * n}" cy="17" r="5.5" fill="{colour}"/>'
        for n, colour in enumerate(("#e0665c", "#dcae4a", "#6fb565"))
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
            f"<title>{html.escape(lines[0][2:])}</title>",
            f'<rect width="{width}" height="{height}" rx="8" fill="{BACK}"/>{dots}',
            '<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" xml:space="preserve">',
            *(svg_line(number, line) for number, line in enumerate(lines)),
            "</g>",
            "</svg>",
            "",
        ]
    )


def main(path, *command):
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"picture.py: {shlex.join(command)} ended with {run.returncode}")
    output = run.stdout.strip("\n").split("\n")
    if longest := max((len(line) for line in output if len(line) > COLUMNS), default=0):
        sys.exit(f"picture.py: a line of {longest} characters does not fit {COLUMNS}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(svg([f"$ {shlex.join(command)}", "", *output]))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
