"""A terminal's screen, as `tmux capture-pane -e -p` writes it, as SVG."""
import re
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT, PAD = 8.4, 19, 14
INK, PAPER = "#d6deeb", "#10151f"

def colour(parts):
    return "#%02x%02x%02x" % tuple(int(part) for part in parts)

def apply(state, codes):
    codes = codes.split(";") if codes else ["0"]
    while codes:
        code = codes.pop(0)
        if code == "0":
            state = dict(ink=None, paper=None, bold=False, inverse=False)
        elif code == "1":
            state["bold"] = True
        elif code == "7":
            state["inverse"] = True
        elif code in ("38", "48"):
            assert codes.pop(0) == "2", "colours are whole ones"
            state["ink" if code == "38" else "paper"] = colour(codes[:3])
            del codes[:3]
        elif code == "39":
            state["ink"] = None
        elif code == "49":
            state["paper"] = None
    return state

def runs(text):
    state = dict(ink=None, paper=None, bold=False, inverse=False)
    for row, line in enumerate(text.rstrip("\n").split("\n")):
        column = 0
        for part in re.split(r"(\x1b\[[0-9;]*m)", line):
            if match := re.fullmatch(r"\x1b\[([0-9;]*)m", part):
                state = apply(dict(state), match[1])
            elif part:
                yield row, column, part, dict(state)
                column += len(part)

found = list(runs(sys.stdin.read()))
columns, rows = int(sys.argv[1]), max(run[0] for run in found) + 1
w, h = columns * WIDTH + 2 * PAD, rows * HEIGHT + 2 * PAD
out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:g} {h:g}" width="{w:g}" height="{h:g}" '
       'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="14">',
       f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>']
for row, column, text, state in found:
    ink, paper = state["ink"] or INK, state["paper"]
    if state["inverse"]:
        ink, paper = paper or PAPER, ink
    x, y = PAD + column * WIDTH, PAD + row * HEIGHT
    if paper:
        out.append(f'<rect x="{x:g}" y="{y:g}" width="{len(text) * WIDTH:g}" height="{HEIGHT}" fill="{paper}"/>')
    if text.strip():
        shown = text.rstrip()
        lead = len(shown) - len(shown.lstrip())
        shown = shown.lstrip()
        bold = ' font-weight="bold"' if state["bold"] else ""
        out.append(f'<text x="{x + lead * WIDTH:g}" y="{y + 14:g}" textLength="{len(shown) * WIDTH:g}" fill="{ink}"{bold} '
                   f'xml:space="preserve">{escape(shown)}</text>')
print("\n".join(out) + "\n</svg>")
