import {describe, expect, it} from 'vitest'
import {LogTail, linesFor, outputOf, stageNames} from '../src/lib/logtail'

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

describe('what is asked of a log', () => {
  it('names a stream on a cluster, and a stage of the container', () => {
    expect(outputOf({stream: 'all', stage: ''}, false)).toEqual({})
    expect(outputOf({stream: 'stdout', stage: ''}, true)).toEqual({stream: 'stdout'})
    expect(outputOf({stream: 'all', stage: 'rank'}, false)).toEqual({stage: 'rank'})
    expect(outputOf({stream: 'sidecar', stage: 'rank'}, true)).toEqual({stream: 'sidecar'})
  })
  it('looks far back for the lines of a stage that is followed', () => {
    expect(linesFor({stage: 'rank'}, true)).toBe(10_000)
    expect(linesFor({stage: 'rank'}, false)).toBe(500)
    expect(linesFor({stream: 'all'}, true)).toBe(500)
  })
  it('knows the stages that are measured or declared', () => {
    expect(stageNames()).toEqual([])
    expect(stageNames([{stage: 'read'}, {stage: 'rank'}], [{name: 'rank'}, {name: 'sum'}])).toEqual(['read', 'rank', 'sum'])
  })
})
