// Reads unified diffs. In: the text of a diff. Out: its files with their lines.

export type LineKind = "added" | "removed" | "hunk" | "same" | "note";

export interface DiffLine {
  kind: LineKind;
  text: string;
}

export interface DiffFile {
  path: string;
  lines: DiffLine[];
  added: number;
  removed: number;
}

const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;

export function parseDiff(text: string): DiffFile[] {
  const files: DiffFile[] = [];
  // The lines of the old and the new text that the current hunk still has: they tell its lines from headings.
  let [old, fresh] = [0, 0];
  const begin = (path: string): DiffFile => {
    const file = { path, lines: [], added: 0, removed: 0 };
    files.push(file);
    return file;
  };
  for (const line of text.replace(/\n$/, "").split("\n")) {
    let file = files.at(-1);
    if (old > 0 || fresh > 0) {
      file ??= begin("");
      const kind = readKind(line);
      file.lines.push({ kind, text: line });
      if (kind === "added") file.added += 1;
      if (kind === "removed") file.removed += 1;
      if (kind === "removed" || kind === "same") old -= 1;
      if (kind === "added" || kind === "same") fresh -= 1;
      continue;
    }
    const hunk = HUNK.exec(line);
    if (hunk) {
      [old, fresh] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)];
      (file ?? begin("")).lines.push({ kind: "hunk", text: line });
    } else if (line.startsWith("diff ")) begin(/ b\/(.+)$/.exec(line)?.[1] ?? line.slice("diff ".length));
    else if (line.startsWith("--- ")) {
      if (!file || file.lines.some(({ kind }) => kind === "hunk")) begin(cutPath(line));
    } else if (line.startsWith("+++ ") && file) {
      if (cutPath(line) !== "/dev/null") file.path = cutPath(line);
    } else (file ?? begin("")).lines.push({ kind: "note", text: line });
  }
  return files;
}

function readKind(line: string): LineKind {
  if (line.startsWith("+")) return "added";
  if (line.startsWith("-")) return "removed";
  return line.startsWith("\\") ? "note" : "same";
}

function cutPath(line: string): string {
  return (
    line
      .slice(4)
      .split("\t")[0]
      ?.replace(/^[ab]\//, "") ?? ""
  );
}
