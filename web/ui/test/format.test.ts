import {describe, expect, it} from 'vitest'
import shares from '../../../cmd/topsail/admin/screen/testdata/shares.json'
import * as format from '../src/lib/format'

describe('share', () => {
  // The command line writes shares by the same rule.
  it.each([...shares, [null, '–'], [Number.NaN, '–']] as [number | null, string][])('writes %d as %s', (value, text) =>
    expect(format.share(value)).toBe(text.replace(' ', '\u00a0')),
  )

  it('never says that less is all', () => {
    for (let missing = 1e-9; missing < 0.5; missing *= 3) expect(format.share(1 - missing)).not.toMatch(/^100/)
  })
})

describe('micros', () => {
  it.each([
    [0, '0 ms'],
    [850, '850 µs'],
    [1250, '1.25 ms'],
    [20_000, '20 ms'],
    [1_500_000, '1.5 s'],
    [600_000_000, '10 min'],
    [undefined, '–'],
  ])('writes %d as %s', (value, text) => expect(format.micros(value)).toBe(text))
})

describe('seconds', () => {
  it.each([
    [0, '0 s'],
    [59, '59 s'],
    [61, '1 min 1 s'],
    [3600, '1 h'],
    [3605, '1 h'],
    [90061, '1 d 1 h'],
  ])('writes %d as %s', (value, text) => expect(format.seconds(value)).toBe(text))
})

describe('ago', () => {
  const now = Date.parse('2026-01-02T03:04:05Z')
  it.each([
    [now, 'now'],
    [now - 65_000, '1 min ago'],
    [now + 7200_000, 'in 2 h'],
  ])('writes %d as %s', (at, text) => expect(format.ago(at, now)).toBe(text))
})

describe('number', () => {
  it.each([
    [0.12345, '0.123'],
    [12.345, '12.3'],
    [1234.5, '1,235'],
    [7, '7'],
    [undefined, '–'],
  ])('writes %d as %s', (value, text) => expect(format.number(value)).toBe(text))

  it('shortens what is large', () => expect([format.compact(1_234_567), format.compact(34_800)]).toEqual(['1.2M', '34.8k']))
  it('counts in one and many', () =>
    expect([format.count(1, 'replica'), format.count(2000, 'replica')]).toEqual(['1 replica', '2,000 replicas']))
  it('says bytes', () => expect(format.bytes(1_234_567)).toBe('1.23 MB'))
  it('says words', () => expect(format.capital(format.words('missed_slo'))).toBe('Missed SLO'))
})

describe('tensorText', () => {
  it('writes name, type and shape', () => {
    expect(format.tensorText({name: 'image', type: 'float32', shape: [3, -1, -1]})).toBe('image float32[3,-1,-1]')
    expect(format.tensorText({name: 'age', type: 'int64'})).toBe('age int64')
  })
})
