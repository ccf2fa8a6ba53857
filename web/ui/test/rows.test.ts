import {describe, expect, it} from 'vitest'
import {same} from '../src/lib/diff'
import {visible} from '../src/lib/rows'

describe('rows', () => {
  it('always makes the same height', () => {
    for (const total of [0, 1, 80, 2000]) {
      for (const top of [0, 100, 5000, 1e6]) {
        const {from, to, above, below} = visible(total, 37, top, 600)
        expect(above + (to - from) * 37 + below).toBe(total * 37)
        expect(to - from).toBeLessThanOrEqual(40)
      }
    }
  })
  it('has the rows in view', () => expect(visible(2000, 37, 3700, 370)).toMatchObject({from: 92, to: 118}))
})
