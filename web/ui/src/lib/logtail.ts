const most = 5000
const longest = 4000

// Wanted is which lines of a replica's output a person wants; an empty stage is all of them.
export interface Wanted {
  stream: string
  stage: string
}

// outputOf is what the API is asked for it. Only a cluster has several streams, and a sidecar has no stages.
export function outputOf({stream, stage}: Wanted, streams: boolean): Record<string, string> {
  return {...(streams ? {stream} : {}), ...(stage && stream !== 'sidecar' ? {stage} : {})}
}

// linesFor is how many of the last lines are read first. Where a log is followed they are those of all stages.
export function linesFor(output: Record<string, string>, follow: boolean): number {
  return output['stage'] && follow ? 10_000 : 500
}

// stageNames are the stages of a replica, as it has measured them and as its version declares them.
export function stageNames(measured: readonly {stage: string}[] = [], declared: readonly {name: string}[] = []): string[] {
  return [...new Set([...measured.map(({stage}) => stage), ...declared.map(({name}) => name)])]
}

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
