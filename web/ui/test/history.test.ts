import {describe, expect, it} from 'vitest'
import {History} from '../src/lib/history'

describe('History', () => {
  const traffic = (app: string, rate: number) => ({app, slo_micros: 1, rate, attainment: 1, defaults: 0})
  it('keeps a minute, and forgets apps that are gone', () => {
    const history = new History()
    for (let i = 0; i < 100; i++) history.add([traffic('a', i), ...(i < 50 ? [traffic('b', i)] : [])])
    expect(history.rate('a')).toHaveLength(60)
    expect(history.rate('a').at(-1)).toBe(99)
    expect(history.rate('b')).toEqual([])
  })
})
