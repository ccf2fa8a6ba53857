import {describe, expect, it} from 'vitest'
import {find} from '../src/lib/find'

describe('find', () => {
  it('puts first what begins with it', () => {
    const apps = new Map(['wine', 'new-wine'].map((name) => [name, {name, input_type: 'doubles' as const, latency_slo_micros: 1}]))
    expect(find('WINE', apps, new Map(), new Map(), new Map()).map((it) => it.name)).toEqual(['wine', 'new-wine'])
    expect(find(' ', apps, new Map(), new Map(), new Map())).toEqual([])
  })
})
