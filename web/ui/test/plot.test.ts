import {describe, expect, it} from 'vitest'
import {stacked, summary} from '../src/lib/plot'

describe('plot', () => {
  const line = (name: string, values: (number | null)[], dash = false) => ({name, values, colour: 'chart-1', dash})
  it('stacks, with holes', () =>
    expect(stacked([line('a', [1, null, 2]), line('b', [3, 4, 5])])).toEqual([
      [1, null, 2],
      [4, 4, 7],
    ]))
  it('says in words what is drawn', () => {
    expect(summary([line('p99', [3, 1, null, 2]), line('SLO', [9], true), line('p50', [])], String)).toBe(
      'p99: 2 at the end, between 1 and 3. p50: nothing is known.',
    )
  })
})
