// The text of a file of a run, by pieces, so that a file of any size never blocks the page. In: a run and the path of a
// file. Out: its first 64 KiB and a button for more.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, readFile } from "../api.ts";
import { formatBytes, formatJson } from "../format.ts";

const PIECE = 64 * 1024;

interface Props {
  run: string;
  /** The path by which the server gives it. */
  path: string;
  label: string;
  /** Whether it is JSON, which is shown with indents where it is short enough to be read at once. */
  json?: boolean;
}

interface Reading {
  pieces: string[];
  read: number;
  total: number;
  error: string | null;
}

export function FileText({ run, path, label, json = false }: Props): JSX.Element {
  const [reading, setReading] = useState<Reading>({ pieces: [], read: 0, total: -1, error: null });
  const [decoder, setDecoder] = useState(() => new TextDecoder());

  const readPiece = async (after: Reading, decode: TextDecoder, abort?: AbortSignal): Promise<void> => {
    try {
      const part = await readFile(run, path, after.read, PIECE, abort);
      const read = part.from + part.bytes.length;
      const piece = decode.decode(part.bytes, { stream: read < part.total });
      setReading({ pieces: [...after.pieces, piece], read, total: part.total, error: null });
    } catch (error) {
      if (abort?.aborted) return;
      setReading({ ...after, error: error instanceof ApiError ? error.message : String(error) });
    }
  };

  useEffect(() => {
    const abort = new AbortController();
    const decode = new TextDecoder();
    setDecoder(decode);
    void readPiece({ pieces: [], read: 0, total: -1, error: null }, decode, abort.signal);
    return () => abort.abort();
  }, [run, path]);

  const { pieces, read, total, error } = reading;
  if (error) return <p class="empty">{error}</p>;
  if (total < 0) return <p class="empty loading">Loading…</p>;
  return (
    <div class="file-text">
      <PieceText pieces={json && read >= total ? [formatJson(pieces.join(""))] : pieces} label={label} />
      {read < total && (
        <p class="more">
          <button type="button" onClick={() => void readPiece(reading, decoder)}>
            More
          </button>
          <span class="muted">
            {formatBytes(read)} of {formatBytes(total)}
          </span>
        </p>
      )}
    </div>
  );
}

/** Text in several elements: the browser lays out each by itself. */
function PieceText({ pieces, label }: { pieces: string[]; label: string }): JSX.Element {
  return (
    <div class="text" tabIndex={0} role="region" aria-label={label}>
      {pieces.map((piece, at) => (
        <pre key={at}>{piece}</pre>
      ))}
    </div>
  );
}

/** A text that is there as a whole. */
export function PlainText({ text, label }: { text: string; label: string }): JSX.Element {
  const [shown, setShown] = useState(PIECE);
  const pieces: string[] = [];
  for (let at = 0; at < Math.min(shown, text.length); at += PIECE) pieces.push(text.slice(at, at + PIECE));
  return (
    <div class="file-text">
      <PieceText pieces={pieces} label={label} />
      {shown < text.length && (
        <p class="more">
          <button type="button" onClick={() => setShown(shown + PIECE)}>
            More
          </button>
        </p>
      )}
    </div>
  );
}

/** Where the files of a run are. */
export interface RunFolders {
  folder: string;
  outputs: string;
}

/** The path by which the server gives a file of a run, or null where the file is none. */
export function pathInRun({ folder, outputs }: RunFolders, path: string | null | undefined): string | null {
  if (path?.startsWith(`${folder}/`)) return path.slice(folder.length + 1);
  if (path?.startsWith(`${outputs}/`)) return `outputs/${path.slice(outputs.length + 1)}`;
  return null;
}
