import {describe, expect, it} from 'vitest'
import {LogTail} from '../src/lib/logtail'

describe('LogTail', () => {
  it('joins lines that come in pieces', () => {
    const tail = new LogTail()
    tail.add('one\ntw')
    expect(tail.lines()).toEqual(['one', 'tw'])
    tail.add('o\nthree\n')
    expect(tail.lines()).toEqual(['one', 'two', 'three'])
  })
  it('stays bounded', () => {
    const tail = new LogTail()
    for (let i = 0; i < 12_000; i++) tail.add(`${i}\n`)
    tail.add('x'.repeat(100_000))
    expect(tail.lines()).toHaveLength(5001)
    expect(tail.lines()[0]).toBe('7000')
    expect(tail.lines().at(-1)).toHaveLength(4000)
  })
})
