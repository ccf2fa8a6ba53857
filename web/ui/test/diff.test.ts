import {describe, expect, it} from 'vitest'
import {differences, rebased, same} from '../src/lib/diff'

describe('diff', () => {
  it('tells members apart by path', () => {
    expect(differences({a: 1, b: {c: 2, d: 3}}, {a: 1, b: {c: 4}, e: ['x']})).toEqual([
      {path: 'b.c', before: '2', after: '4'},
      {path: 'b.d', before: '3', after: null},
      {path: 'e', before: null, after: '["x"]'},
    ])
  })
  it('does not care for the order of members', () => expect(same({a: 1, b: [1, {c: 2, d: 3}]}, {b: [1, {d: 3, c: 2}], a: 1})).toBe(true))
  it('puts my changes on theirs', () => {
    expect(rebased<object>({a: 1, b: 1, c: 1}, {a: 2, b: 1}, {a: 1, b: 5, c: 1, d: 9})).toEqual({a: 2, b: 5, d: 9})
  })
})
