// EventMessage is one of a stream of server-sent events.
export interface EventMessage {
  name: string // "message" for an event without a name
  data: string
}

// EventParser reads server-sent events from a text that comes in pieces, cut anywhere.
export class EventParser {
  #open = '' // a line whose end has not come
  #name = ''
  #data: string[] = []
  #begun = false

  // push returns the events that the piece completes.
  push(piece: string): EventMessage[] {
    if (!this.#begun && piece !== '') {
      this.#begun = true
      if (piece.startsWith('\uFEFF')) piece = piece.slice(1)
    }
    const text = this.#open + piece
    // A carriage return at the end may be half of a line end.
    const whole = text.endsWith('\r') ? text.slice(0, -1) : text
    const lines = whole.split(/\r\n|\r|\n/)
    this.#open = (lines.pop() ?? '') + text.slice(whole.length)
    return lines.map((line) => this.#line(line)).filter((message) => message !== null)
  }

  #line(line: string): EventMessage | null {
    if (line === '') return this.#end()
    const colon = line.indexOf(':')
    if (colon === 0) return null // a comment
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'data') this.#data.push(value)
    if (field === 'event') this.#name = value
    return null
  }

  #end(): EventMessage | null {
    const message = {name: this.#name || 'message', data: this.#data.join('\n')}
    const empty = this.#data.length === 0
    this.#name = ''
    this.#data = []
    return empty ? null : message
  }
}
