import type {Trial} from '../api/schema'
import {type Answer, type PartEvent, readParts, shownAnswer, shownPart} from './parts'

// Ending is how an answer ended.
export type Ending =
  | {kind: 'whole'; answer: Answer}
  | {kind: 'cut'; cause: string}
  | {kind: 'refused'; status: number; cause: string}
  | {kind: 'failed'; text: string}
  | {kind: 'stopped'}

export const longestShown = 200_000 // characters

// PartsAnswer is an answer that is shown as it comes.
export class PartsAnswer {
  running = $state(false)
  text = $state('')
  count = $state(0) // of parts
  firstMicros = $state<number | null>(null)
  totalMicros = $state<number | null>(null)
  ending = $state.raw<Ending | null>(null)
  #stop: AbortController | null = null
  #began = 0

  // ask opens the answer and reads it to its end. It does not throw.
  async ask(open: (signal: AbortSignal) => Promise<Response>): Promise<Ending> {
    const stop = new AbortController()
    this.#begin(stop)
    try {
      this.ending = await this.#read(await open(stop.signal))
    } catch (err) {
      this.ending = stop.signal.aborted ? {kind: 'stopped'} : {kind: 'failed', text: failureOf(err)}
    }
    this.totalMicros = this.#elapsed()
    this.running = false
    this.#stop = null
    return this.ending
  }

  // stop closes the request, which cancels the query in the model.
  stop() {
    this.#stop?.abort()
  }

  #begin(stop: AbortController) {
    this.stop()
    this.#stop = stop
    this.#began = performance.now()
    this.running = true
    this.text = ''
    this.count = 0
    this.firstMicros = null
    this.totalMicros = null
    this.ending = null
  }

  async #read(response: Response): Promise<Ending> {
    if (!response.headers.get('Content-Type')?.startsWith('text/event-stream')) return this.#whole((await response.json()) as Trial)
    if (!response.body) throw new Error('The answer is empty. Try again.')
    for await (const events of readParts(response.body)) {
      const ending = this.#take(events)
      if (ending) return ending
    }
    throw new Error('The connection ended before the answer did. Try again, or look at the log of the gateway.')
  }

  #take(events: PartEvent[]): Ending | undefined {
    let text = ''
    for (const event of events) {
      if (event.kind === 'cut') {
        this.#show(text)
        return event
      }
      if (event.kind === 'end') {
        this.text = shownAnswer(event.answer).slice(0, longestShown)
        return {kind: 'whole', answer: event.answer}
      }
      this.firstMicros ??= this.#elapsed()
      this.count++
      text += shownPart(event.part)
    }
    this.#show(text)
    return undefined
  }

  // An error, or the answer of a gateway that does not answer in parts.
  #whole({status, answer}: Trial): Ending {
    const {error, cause, ...whole} = answer as Answer & {error?: string; cause?: string}
    if (status !== 200) return {kind: 'refused', status, cause: cause ?? error ?? 'The gateway gave no cause.'}
    this.text = shownAnswer(whole).slice(0, longestShown)
    return {kind: 'whole', answer: whole}
  }

  #show(text: string) {
    if (text) this.text = (this.text + text).slice(0, longestShown)
  }

  #elapsed(): number {
    return (performance.now() - this.#began) * 1000
  }
}

function failureOf(err: unknown): string {
  if (err instanceof TypeError) return 'The connection was lost before the answer ended. Try again.' // fetch's word for it
  return err instanceof Error ? err.message : String(err)
}
