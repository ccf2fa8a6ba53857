import {describe, expect, it} from 'vitest'
import {sorted} from '../src/lib/order'

describe('order', () => {
  it('puts what is unknown last in either direction', () => {
    const items = [{n: 2}, {n: null}, {n: 1}]
    expect(sorted(items, (item) => item.n, false).map((item) => item.n)).toEqual([1, 2, null])
    expect(sorted(items, (item) => item.n, true).map((item) => item.n)).toEqual([2, 1, null])
  })
  it('orders names by the numbers in them', () => expect(sorted(['v10', 'v9', 'v1'], (name) => name, false)).toEqual(['v1', 'v9', 'v10']))
  it('leaves equals in their order', () => expect(sorted(['b', 'a', 'c'], () => 1, true)).toEqual(['b', 'a', 'c']))
})
