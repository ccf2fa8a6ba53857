import {Refusal} from '../api/client'

// Resource is something that is polled as needed. What came last
// stays while the next is under way, or has failed.
export class Resource<T> {
  value = $state.raw<T | undefined>(undefined)
  failure = $state('')
  code = $state('') // of the failure, where the API has one for it
  loading = $state(false)
  at = $state(0) // when the value came, in milliseconds

  readonly #ask: (signal: AbortSignal) => Promise<T>
  #under: AbortController | null = null

  constructor(ask: (signal: AbortSignal) => Promise<T>) {
    this.#ask = ask
  }

  // load asks; an answer to an earlier question is forgotten.
  async load(): Promise<void> {
    this.#under?.abort()
    const under = new AbortController()
    this.#under = under
    this.loading = true
    try {
      const value = await this.#ask(under.signal)
      if (under.signal.aborted) return
      this.value = value
      this.failure = this.code = ''
      this.at = Date.now()
    } catch (err) {
      if (under.signal.aborted) return
      this.failure = err instanceof Error ? err.message : String(err)
      this.code = err instanceof Refusal ? err.code : ''
    } finally {
      if (this.#under === under) this.loading = false
    }
  }

  // poll asks now and then every so often, while the page can be seen, until the function that it
  // returns is called.
  poll(everyMs: number): () => void {
    void this.load()
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible' && !this.loading) void this.load()
    }, everyMs)
    return () => {
      clearInterval(timer)
      this.#under?.abort()
    }
  }

  // forget drops the value, for when something else is asked for from now on.
  forget() {
    this.value = undefined
    this.failure = this.code = ''
  }
}
