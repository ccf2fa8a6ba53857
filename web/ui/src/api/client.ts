import type {Problem} from './schema'

// Refusal is an answer of the API that is not what was asked for.
export class Refusal extends Error {
  readonly status: number
  readonly code: string

  constructor(problem: Problem) {
    super(problem.detail || problem.title)
    this.name = 'Refusal'
    this.status = problem.status
    this.code = problem.code ?? ''
  }

  // conflict says that the object has changed in between.
  get conflict(): boolean {
    return this.status === 412 || (this.status === 409 && this.code === 'conflict')
  }
}

// Tagged is an object with its version.
export interface Tagged<T> {
  value: T
  etag: string
}

export interface Options {
  query?: Record<string, string | number | boolean | undefined>
  body?: unknown
  accept?: string
  ifMatch?: string
  mergePatch?: boolean
  signal?: AbortSignal
  timeoutMs?: number
}

const patience = 30_000
const json = 'application/json, application/problem+json'

// onUnauthorised is told when the session has ended, so that the page can ask for a key.
export type Unauthorised = () => void

export class Client {
  readonly #base: string
  readonly #fetch: typeof fetch
  onUnauthorised: Unauthorised = () => {}
  revision = 0 // of the catalog that answers have to know, of whichever process they are

  constructor(base = '/api/v1', fetcher: typeof fetch = (...args) => fetch(...args)) {
    this.#base = base
    this.#fetch = fetcher
  }

  async get<T>(path: string, options: Options = {}): Promise<T> {
    return (await this.tagged<T>('GET', path, options)).value
  }

  async send<T>(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, options: Options = {}): Promise<T> {
    return (await this.tagged<T>(method, path, options)).value
  }

  async tagged<T>(method: string, path: string, options: Options = {}): Promise<Tagged<T>> {
    const answer = await this.#ask(method, path, options)
    const value = answer.status === 204 || answer.status === 202 ? undefined : await answer.json()
    return {value: value as T, etag: answer.headers.get('ETag') ?? ''}
  }

  // stream opens an answer that is read while it comes.
  async stream(path: string, options: Options): Promise<ReadableStream<Uint8Array>> {
    const answer = await this.#ask('GET', path, {...options, timeoutMs: 0})
    if (!answer.body) throw new Error('The answer is empty. Try again.')
    return answer.body
  }

  // open asks for an answer in parts, and returns it when it begins. Where there is none, it is a whole one as JSON.
  async open(path: string, options: Options): Promise<Response> {
    return this.#ask('POST', path, {...options, accept: `text/event-stream, ${json}`, timeoutMs: 0})
  }

  url(path: string, query: Options['query'] = {}): string {
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== '') search.set(name, String(value))
    }
    return this.#base + path + (search.size > 0 ? `?${search}` : '')
  }

  async #ask(method: string, path: string, options: Options): Promise<Response> {
    const headers: Record<string, string> = {Accept: options.accept ?? json}
    if (options.body !== undefined) {
      headers['Content-Type'] = options.mergePatch ? 'application/merge-patch+json' : 'application/json'
    }
    if (method === 'GET' && this.revision > 0) headers['Topsail-Revision'] = String(this.revision)
    if (options.ifMatch) headers['If-Match'] = options.ifMatch
    const answer = await this.#reach(this.url(path, options.query), {
      method,
      headers,
      body: options.body === undefined ? null : JSON.stringify(options.body),
      credentials: 'same-origin',
      signal: bounded(options),
    })
    if (answer.ok) return answer
    if (answer.status === 401) this.onUnauthorised()
    throw new Refusal(await problemOf(answer))
  }

  async #reach(url: string, init: RequestInit): Promise<Response> {
    try {
      return await this.#fetch(url, init)
    } catch (err) {
      if (err instanceof DOMException && err.name === 'AbortError') throw err
      if (err instanceof DOMException && err.name === 'TimeoutError') {
        throw new Error('Topsail did not answer in time. Try again, or look at its log.')
      }
      throw new Error('Topsail cannot be reached. Is it running, and is the network there?')
    }
  }
}

// path joins segments, each of which may hold any character.
export function path(...segments: string[]): string {
  return segments.map((segment) => '/' + encodeURIComponent(segment)).join('')
}

// problemOf reads what is wrong, also from answers that are not ours, such as a proxy's page.
export async function problemOf(answer: Response): Promise<Problem> {
  const blank: Problem = {type: 'about:blank', title: answer.statusText, status: answer.status, detail: ''}
  const text = await answer.text().catch(() => '')
  try {
    const problem = JSON.parse(text) as Partial<Problem> | null
    if (typeof problem?.title === 'string') return {...blank, ...problem, status: answer.status}
  } catch {
    // Not JSON; the status has to do.
  }
  return {...blank, detail: `The server answered ${answer.status} ${answer.statusText}. Try again, or look at its log.`}
}

function bounded(options: Options): AbortSignal | null {
  const limit = options.timeoutMs ?? patience
  const signals = [options.signal, limit > 0 ? AbortSignal.timeout(limit) : undefined].filter((signal) => signal !== undefined)
  return signals.length > 0 ? AbortSignal.any(signals) : null
}
