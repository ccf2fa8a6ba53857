import {afterEach, beforeEach, describe, expect, it, vi} from 'vitest'
import {pause, Stream, type Source} from '../src/lib/stream'

class FakeSource implements Source {
  onerror: ((event: Event) => unknown) | null = null
  closed = false
  readonly #listeners = new Map<string, (event: MessageEvent<string>) => void>()

  addEventListener(name: string, listener: (event: MessageEvent<string>) => void) {
    this.#listeners.set(name, listener)
  }

  close() {
    this.closed = true
  }

  say(name: string, data: string) {
    this.#listeners.get(name)?.({data} as MessageEvent<string>)
  }

  fail() {
    this.onerror?.(new Event('error'))
  }
}

const timing = {firstPauseMs: 100, longestPauseMs: 1000, silenceMs: 5000}

describe('Stream', () => {
  const sources: FakeSource[] = []
  const told: string[] = []
  let stream: Stream

  beforeEach(() => {
    vi.useFakeTimers()
    sources.length = told.length = 0
    stream = new Stream(
      () => {
        const source = new FakeSource()
        sources.push(source)
        return source
      },
      {event: (name, data) => told.push(`${name} ${JSON.stringify(data)}`), lost: () => told.push('lost'), found: () => told.push('found')},
      timing,
    )
    stream.start()
  })
  afterEach(() => {
    stream.stop()
    vi.useRealTimers()
  })
  const last = () => sources.at(-1) as FakeSource

  it('hands on events', () => {
    last().say('hello', '{"revision":1}')
    last().say('traffic', '{"apps":[]}')
    expect(told).toEqual(['found', 'hello {"revision":1}', 'traffic {"apps":[]}'])
  })

  it('comes back after each failure, more slowly each time', () => {
    for (let i = 0; i < 5; i++) {
      last().fail()
      expect(last().closed).toBe(true)
      vi.advanceTimersByTime(1000)
      expect(sources).toHaveLength(i + 2)
    }
    expect(told.filter((word) => word === 'lost')).toHaveLength(5)
  })

  it('takes silence for a failure', () => {
    last().say('hello', '{}')
    vi.advanceTimersByTime(4999)
    expect(told).not.toContain('lost')
    vi.advanceTimersByTime(1)
    expect(told).toContain('lost')
  })

  it('takes a cut event for a failure', () => {
    last().say('traffic', '{"apps":[')
    expect(told).toEqual(['lost'])
  })

  it('hears nothing from a source that was given up', () => {
    const old = last()
    old.fail()
    old.say('traffic', '{}')
    old.fail()
    expect(told).toEqual(['lost'])
  })

  it('tries at once when asked, and only once', () => {
    last().fail()
    stream.retry()
    stream.retry()
    expect(sources).toHaveLength(2)
    vi.advanceTimersByTime(1000)
    expect(sources).toHaveLength(2)
  })

  it('ends', () => {
    last().fail()
    stream.stop()
    vi.advanceTimersByTime(10_000)
    expect(sources).toHaveLength(1)
  })
})

describe('pause', () => {
  it('grows to its bound and is partly random', () => {
    expect([0, 1, 2, 9].map((n) => pause(n, timing, () => 1))).toEqual([100, 200, 400, 1000])
    expect(pause(2, timing, () => 0)).toBe(200)
    expect(pause(5000, timing, () => 1)).toBe(1000)
  })
})
