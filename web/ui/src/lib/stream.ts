// The stream of events, kept open. A browser reconnects by itself after some failures
// and gives up after others; here every failure is met the same way, with growing pauses.

export const eventNames = ['hello', 'catalog', 'replicas', 'traffic', 'decision', 'audit', 'cluster'] as const
export type EventName = (typeof eventNames)[number]

// Source is what is used of an EventSource.
export interface Source {
  onerror: ((event: Event) => unknown) | null
  addEventListener(name: string, listener: (event: MessageEvent<string>) => void): void
  close(): void
}

export interface Listener {
  event(name: EventName, data: unknown): void
  lost(): void
  found(): void
}

export interface Timing {
  firstPauseMs: number
  longestPauseMs: number
  silenceMs: number // after which a silent stream counts as broken; traffic comes every second
}

const usual: Timing = {firstPauseMs: 500, longestPauseMs: 15_000, silenceMs: 20_000}

export class Stream {
  readonly #open: () => Source
  readonly #listener: Listener
  readonly #timing: Timing
  #source: Source | null = null
  #failures = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #watchdog: ReturnType<typeof setTimeout> | undefined

  constructor(open: () => Source, listener: Listener, timing: Timing = usual) {
    this.#open = open
    this.#listener = listener
    this.#timing = timing
  }

  start() {
    this.stop()
    this.#connect()
  }

  stop() {
    clearTimeout(this.#timer)
    clearTimeout(this.#watchdog)
    this.#source?.close()
    this.#source = null
    this.#failures = 0
  }

  // retry connects at once, for a person who does not want to wait.
  retry() {
    if (this.#source) return
    clearTimeout(this.#timer)
    this.#connect()
  }

  #connect() {
    const source = this.#open()
    this.#source = source
    source.onerror = () => this.#broken(source)
    for (const name of eventNames) {
      source.addEventListener(name, (message) => this.#take(source, name, message.data))
    }
    this.#expectSomething(source)
  }

  #take(source: Source, name: EventName, text: string) {
    if (source !== this.#source) return
    this.#expectSomething(source)
    let data: unknown
    try {
      data = JSON.parse(text)
    } catch {
      return this.#broken(source) // the stream was cut in the middle of an event
    }
    if (name === 'hello') {
      this.#failures = 0
      this.#listener.found()
    }
    this.#listener.event(name, data)
  }

  #expectSomething(source: Source) {
    clearTimeout(this.#watchdog)
    this.#watchdog = setTimeout(() => this.#broken(source), this.#timing.silenceMs)
  }

  #broken(source: Source) {
    if (source !== this.#source) return
    clearTimeout(this.#watchdog)
    source.close()
    this.#source = null
    this.#listener.lost()
    this.#timer = setTimeout(() => this.#connect(), pause(this.#failures++, this.#timing))
  }
}

// pause doubles with every failure. Half of it is random, so that many pages do not
// come back at the same moment.
export function pause(failures: number, timing: Timing, random: () => number = Math.random): number {
  const whole = Math.min(timing.longestPauseMs, timing.firstPauseMs * 2 ** failures)
  return whole / 2 + (random() * whole) / 2
}
