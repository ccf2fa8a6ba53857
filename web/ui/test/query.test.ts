import {describe, expect, it} from 'vitest'
import {inputOf} from '../src/lib/query'

describe('query', () => {
  it('reads inputs and batches', () => {
    expect(inputOf('[1, 2]', 'doubles')).toEqual({input: [1, 2]})
    expect(inputOf('[[1], [2]]', 'doubles')).toEqual({input_batch: [[1], [2]]})
    expect(inputOf('good film', 'strings')).toEqual({input: 'good film'})
    expect(inputOf('"good"', 'strings')).toEqual({input: 'good'})
    expect(inputOf('["a", "b"]', 'strings')).toEqual({input_batch: ['a', 'b']})
    expect(inputOf('42', 'strings')).toEqual({input: '42'})
    expect(inputOf(' AAEC ', 'bytes')).toEqual({input: 'AAEC'})
  })
  it('says what is wrong', () => {
    expect(() => inputOf('[1,', 'doubles')).toThrow('not JSON')
    expect(() => inputOf('{}', 'doubles')).toThrow('array of numbers')
  })
})
