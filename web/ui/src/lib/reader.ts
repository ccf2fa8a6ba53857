const betweenMs = 250
const hiddenMs = 2000
const retryMs = 1000

// Reader reads again after it was asked to: one reading at a time, less often in a tab that is not
// shown, and after a failure until it succeeds or is stopped.
export class Reader {
  readonly #read: () => Promise<void>
  #asked = false
  #stopped = false
  #busy = false
  #pause: ReturnType<typeof setTimeout> | undefined

  constructor(read: () => Promise<void>) {
    this.#read = read
  }

  ask() {
    this.#asked = true
    this.#stopped = false
    if (!this.#busy && this.#pause === undefined) void this.#run()
  }

  // stop forgets what was asked for. A reading that is under way ends.
  stop() {
    this.#asked = false
    this.#stopped = true
  }

  async #run() {
    this.#asked = false
    this.#busy = true
    let failed = false
    try {
      await this.#read()
    } catch {
      failed = true // the stream of events tells people when nothing can be reached
      this.#asked = !this.#stopped
    }
    this.#busy = false
    const wait = failed ? retryMs : document.visibilityState === 'visible' ? betweenMs : hiddenMs
    this.#pause = setTimeout(() => {
      this.#pause = undefined
      if (this.#asked) void this.#run()
    }, wait)
  }
}
