import {describe, expect, it} from 'vitest'
import {messagesOf} from '../src/lib/chat'
import {shownAnswer, shownPart, textOf} from '../src/lib/parts'
import {PartsAnswer} from '../src/lib/partsanswer.svelte'

const events = (...pieces: string[]) => new Response(new Blob(pieces).stream(), {headers: {'Content-Type': 'text/event-stream'}})

async function answered(response: Response | Promise<Response>) {
  const answer = new PartsAnswer()
  await answer.ask(async () => response)
  return answer
}

describe('parts', () => {
  it('shows texts, and OpenAI’s objects as texts', () => {
    expect(textOf('a')).toBe('a')
    expect(textOf({choices: [{delta: {content: 'a'}}]})).toBe('a')
    expect(textOf({choices: [{delta: {role: 'assistant'}}]})).toBe('')
    expect(textOf({choices: [{message: {content: 'a'}}]})).toBe('a')
    expect(textOf({choices: [], usage: {}})).toBe('')
    expect(textOf({content: 'a'})).toBe('a')
    expect(textOf({score: 1})).toBeUndefined()
    expect(shownPart({output: {score: 1}})).toBe('{"score":1}\n')
    expect(shownPart({output: 'a', outputs: {text: 'a', n: 1}})).toBe('{"text":"a","n":1}\n')
    expect(shownAnswer({output: 3})).toBe('3')
  })
})

describe('PartsAnswer', () => {
  it('takes parts and the end', async () => {
    const answer = await answered(
      events(
        'data: {"output":"Good "}\n\nda',
        'ta: {"output":"morning"}\n\nevent: end\ndata: {"output":"Good morning","default":false}\n\n',
      ),
    )
    expect(answer).toMatchObject({text: 'Good morning', count: 2, running: false, ending: {kind: 'whole'}})
    expect(answer.firstMicros).not.toBeNull()
    expect(answer.totalMicros).not.toBeNull()
  })
  it('takes a default before any part', async () => {
    const answer = await answered(events('event: end\ndata: {"output":"-","default":true,"default_explanation":"late"}\n\n'))
    expect(answer).toMatchObject({text: '-', count: 0, firstMicros: null, ending: {kind: 'whole', answer: {default_explanation: 'late'}}})
    expect(messagesOf([{message: 'a', answer}], 'b')).toEqual([{role: 'user', content: 'b'}])
  })
  it('keeps what came before a cut', async () => {
    const answer = await answered(
      events('data: {"output":"Good"}\n\nevent: error\ndata: {"error":"Answer cut","cause":"the replica left"}\n\n'),
    )
    expect(answer).toMatchObject({text: 'Good', count: 1, ending: {kind: 'cut', cause: 'the replica left'}})
    expect(messagesOf([{message: 'a', answer}], 'b')).toEqual([
      {role: 'user', content: 'a'},
      {role: 'assistant', content: 'Good'},
      {role: 'user', content: 'b'},
    ])
  })
  it('takes refusals and whole answers', async () => {
    expect((await answered(Response.json({status: 400, answer: {error: 'Json error', cause: 'no input'}}))).ending).toEqual({
      kind: 'refused',
      status: 400,
      cause: 'no input',
    })
    expect(await answered(Response.json({status: 200, answer: {output: 'a'}}))).toMatchObject({
      text: 'a',
      count: 0,
      ending: {kind: 'whole'},
    })
  })
  it('says what failed', async () => {
    expect((await answered(events('data: {"output":"a"}\n\n'))).ending).toMatchObject({kind: 'failed', text: /ended before/})
    expect((await answered(events('data: {\n\n'))).ending).toMatchObject({kind: 'failed', text: /not valid JSON/})
    expect((await answered(Promise.reject(new Error('Topsail cannot be reached.')))).ending).toEqual({
      kind: 'failed',
      text: 'Topsail cannot be reached.',
    })
  })
  it('stops', async () => {
    const answer = new PartsAnswer()
    const ended = answer.ask((signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))))
    expect(answer.running).toBe(true)
    answer.stop()
    expect(await ended).toEqual({kind: 'stopped'})
    expect(answer.running).toBe(false)
  })
})
