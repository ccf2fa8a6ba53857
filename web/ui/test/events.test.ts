import {describe, expect, it} from 'vitest'
import {EventParser} from '../src/lib/events'

const stream = 'data: {"output":"a"}\n\nevent: end\ndata: {"query_id":1}\n\n'
const events = [
  {name: 'message', data: '{"output":"a"}'},
  {name: 'end', data: '{"query_id":1}'},
]

function parsed(...pieces: string[]) {
  const parser = new EventParser()
  return pieces.flatMap((piece) => parser.push(piece))
}

// randomFrom draws the same numbers each time (mulberry32).
function randomFrom(seed: number) {
  return () => {
    let t = (seed += 0x6d2b79f5)
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

describe('EventParser', () => {
  it('reads events', () => expect(parsed(stream)).toEqual(events))

  it('reads them from pieces that are cut anywhere', () => {
    for (const text of [stream, stream.replaceAll('\n', '\r\n'), stream.replaceAll('\n', '\r') + ':'])
      for (let cut = 0; cut <= text.length; cut++) expect(parsed(text.slice(0, cut), text.slice(cut)), `cut at ${cut}`).toEqual(events)
    expect(parsed(...stream.replaceAll('\n', '\r\n'))).toEqual(events)
  })

  it('reads the same from pieces of any number and length', () => {
    const random = randomFrom(1)
    const pick = <T>(list: T[]) => list[Math.floor(random() * list.length)]
    const lines = [
      'data: {"output":"bé\u2028😀"}',
      'data:',
      'data',
      ' data: x',
      'event: end',
      'event',
      ': a comment',
      'id: 1',
      ':',
      '',
      '',
      '',
    ]
    for (let again = 0; again < 500; again++) {
      let text = pick(['', '\uFEFF'])
      for (let n = Math.floor(random() * 20); n > 0; n--) text += pick(lines) + pick(['\n', '\r\n', '\r'])
      text += '\n\n' // after which nothing is open
      const whole = parsed(text)
      const pieces = []
      for (let at = 0; at < text.length;) pieces.push(text.slice(at, (at += Math.floor(random() * 9))))
      expect(parsed(...pieces), JSON.stringify(pieces)).toEqual(whole)
      expect(parsed(...text.split('')), JSON.stringify(text)).toEqual(whole)
    }
  })

  it('joins lines of data', () => expect(parsed('data: a\ndata:b\ndata\n\n')).toEqual([{name: 'message', data: 'a\nb\n'}]))

  it('passes over comments, other fields and events without data', () => {
    expect(parsed(':\n\n: data: x\nid: 1\nretry: 5\ndata: a\n\nevent: end\n\ndata: b\n\n')).toEqual([
      {name: 'message', data: 'a'},
      {name: 'message', data: 'b'},
    ])
  })

  it('takes one space off a value, and a byte order mark off the beginning', () =>
    expect(parsed('\uFEFFdata:  a: b\n\n')).toEqual([{name: 'message', data: ' a: b'}]))

  it('leaves out an event whose end does not come', () => expect(parsed('data: a\n\ndata: b\n')).toEqual([{name: 'message', data: 'a'}]))
})
