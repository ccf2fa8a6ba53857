import {afterEach, beforeEach, describe, expect, it, vi} from 'vitest'
import {Live} from '../src/lib/live.svelte'

class FakeEventSource {
  static last: FakeEventSource
  onerror: ((event: Event) => unknown) | null = null
  readonly #listeners = new Map<string, (event: MessageEvent<string>) => void>()

  constructor() {
    FakeEventSource.last = this
  }

  addEventListener(name: string, listener: (event: MessageEvent<string>) => void) {
    this.#listeners.set(name, listener)
  }

  close() {}

  say(name: string, data: object) {
    this.#listeners.get(name)?.({data: JSON.stringify(data)} as MessageEvent<string>)
  }
}

const app = {name: 'wine', input_type: 'doubles', latency_slo_micros: 1000, models: ['m']}
const traffic = (rate: number) => ({at: '', window_seconds: 60, apps: [{app: 'wine', slo_micros: 1, rate, attainment: 1, defaults: 0}]})

describe('Live', () => {
  let live: Live
  let frames: (() => void)[]
  const told = {lost: 0, found: 0}
  const drawFrame = () => frames.splice(0).forEach((draw) => draw())
  const say = (name: string, data: object) => FakeEventSource.last.say(name, data)

  beforeEach(() => {
    vi.useFakeTimers()
    frames = []
    told.lost = told.found = 0
    vi.stubGlobal('document', {visibilityState: 'visible'})
    vi.stubGlobal('requestAnimationFrame', (draw: () => void) => frames.push(draw))
    live = new Live({lost: () => told.lost++, found: () => told.found++}, () => new FakeEventSource() as unknown as EventSource)
    live.start()
    say('hello', {me: {}, revision: 1})
    say('catalog', {revision: 1, whole: true, apps: [app], models: [], versions: [], gone: []})
    say('replicas', {
      whole: true,
      changed: [
        {id: 'a', model: 'm', version: '1', state: 'ready'},
        {id: 'b', model: 'm', version: '1', state: 'starting'},
      ],
      gone: [],
    })
  })
  afterEach(() => {
    live.stop()
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })

  it('applies all that came at the next frame, in one go', () => {
    for (let i = 0; i < 100; i++) say('traffic', traffic(i))
    expect(frames).toHaveLength(1)
    expect(live.known).toBe(false)
    drawFrame()
    expect(live.known).toBe(true)
    expect(live.apps.get('wine')?.name).toBe('wine')
    expect(live.traffic.get('wine')?.rate).toBe(99)
    expect(live.byVersion.get('m:1')).toHaveLength(2)
  })

  it('applies also where nothing is drawn', () => {
    drawFrame()
    vi.stubGlobal('document', {visibilityState: 'hidden'})
    say('traffic', traffic(7))
    expect(frames).toHaveLength(0)
    vi.advanceTimersByTime(1000)
    expect(live.traffic.get('wine')?.rate).toBe(7)
  })

  it('is stale when the stream stays away, and no more when it is back', () => {
    drawFrame()
    FakeEventSource.last.onerror?.(new Event('error'))
    expect([told.lost, live.staleSince]).toEqual([1, null])
    vi.advanceTimersByTime(1500)
    expect(live.staleSince).toBeTypeOf('number')
    say('hello', {me: {}, revision: 2})
    expect(live.staleSince).toBeNull()
    expect(told.found).toBe(2)
  })

  it('is not stale when the stream is back at once', () => {
    drawFrame()
    FakeEventSource.last.onerror?.(new Event('error'))
    vi.advanceTimersByTime(600)
    say('hello', {me: {}, revision: 2})
    vi.advanceTimersByTime(5000)
    expect(live.staleSince).toBeNull()
  })

  it('keeps what it had while it is stale', () => {
    drawFrame()
    FakeEventSource.last.onerror?.(new Event('error'))
    vi.advanceTimersByTime(5000)
    expect(live.replicas.size).toBe(2)
  })

  it('puts the newest decision first', () => {
    say('decision', {at: '1'})
    say('decision', {at: '2'})
    drawFrame()
    say('decision', {at: '3'})
    drawFrame()
    expect(live.decisions.map((decision) => decision.at)).toEqual(['3', '2', '1'])
  })
})
