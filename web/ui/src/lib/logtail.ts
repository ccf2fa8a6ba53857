const most = 5000
const longest = 4000

// LogTail keeps the last lines of a text that comes in pieces.
export class LogTail {
  #lines: string[] = []
  #open = '' // a line whose end has not come

  add(piece: string) {
    const parts = (this.#open + piece).split('\n')
    this.#open = (parts.pop() ?? '').slice(0, longest)
    for (const part of parts) this.#lines.push(part.slice(0, longest))
    if (this.#lines.length > most) this.#lines = this.#lines.slice(-most)
  }

  lines(): readonly string[] {
    return this.#open === '' ? [...this.#lines] : [...this.#lines, this.#open]
  }
}
