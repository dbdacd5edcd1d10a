// The end of a text that grows. In: pieces of bytes. Out: its last lines, as blocks that the page can keep as they are.

/** How many lines are kept. */
export const MOST_LINES = 2000;
/** How many lines a block has before the next one begins. */
const BLOCK_LINES = 100;

interface Block {
  id: number;
  text: string;
  lines: number;
}

export class TailText {
  blocks: Block[] = [];
  #decoder = new TextDecoder();
  #nextId = 0;

  /** Adds bytes; where they begin in the middle of a file, what is before the first line break is left out. */
  add(bytes: Uint8Array, atStart: boolean): void {
    let text = this.#decoder.decode(bytes, { stream: true });
    if (!atStart) text = text.slice(text.indexOf("\n") + 1);
    while (text !== "") {
      const last = this.#openBlock();
      const end = cutLines(text, BLOCK_LINES - last.lines);
      const piece = text.slice(0, end);
      this.blocks[this.blocks.length - 1] = { ...last, text: last.text + piece, lines: last.lines + countLines(piece) };
      text = text.slice(end);
    }
    this.#dropOld();
  }

  clear(): void {
    this.blocks = [];
    this.#decoder = new TextDecoder();
  }

  #openBlock(): Block {
    const last = this.blocks.at(-1);
    if (last && last.lines < BLOCK_LINES) return last;
    const block = { id: this.#nextId, text: "", lines: 0 };
    this.#nextId += 1;
    this.blocks.push(block);
    return block;
  }

  #dropOld(): void {
    let lines = this.blocks.reduce((sum, block) => sum + block.lines, 0);
    while (this.blocks.length > 1 && lines > MOST_LINES) lines -= this.blocks.shift()?.lines ?? 0;
  }
}

/** Where the text ends after at most `most` lines. */
function cutLines(text: string, most: number): number {
  let end = 0;
  for (let line = 0; line < most; line += 1) {
    const at = text.indexOf("\n", end);
    if (at < 0) return text.length;
    end = at + 1;
  }
  return end;
}

function countLines(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}
