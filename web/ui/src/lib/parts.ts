import {EventParser, type EventMessage} from './events'

// Part is one part of an answer.
export interface Part {
  output: unknown
  outputs?: Record<string, unknown>
}

// Answer is what a gateway answers to a query.
export interface Answer {
  output?: unknown
  outputs?: Record<string, unknown>
  default?: boolean
  default_explanation?: string
  explanation?: unknown
}

export type PartEvent = {kind: 'part'; part: Part} | {kind: 'end'; answer: Answer} | {kind: 'cut'; cause: string}

// readParts reads an answer in parts: all that came at once, each time.
export async function* readParts(body: ReadableStream<Uint8Array>): AsyncGenerator<PartEvent[], void, undefined> {
  const parser = new EventParser()
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
  try {
    for (;;) {
      const {done, value} = await reader.read()
      if (done) return
      const events = parser.push(value).map(partEvent)
      if (events.length > 0) yield events
    }
  } finally {
    void reader.cancel().catch(() => {}) // where the reader has seen the end, and something follows
  }
}

function partEvent({name, data}: EventMessage): PartEvent {
  let value: unknown
  try {
    value = JSON.parse(data)
  } catch {
    throw new Error('The gateway sent a part that is not valid JSON. Look at its log.')
  }
  if (name === 'end') return {kind: 'end', answer: value as Answer}
  if (name === 'error') return {kind: 'cut', cause: (value as {cause?: string}).cause || 'The gateway gave no cause.'}
  return {kind: 'part', part: value as Part}
}

// textOf is what an output says: a text as it is, the content of OpenAI's answers, chunks and deltas, or else undefined.
export function textOf(output: unknown): string | undefined {
  if (typeof output === 'string') return output
  if (typeof output !== 'object' || output === null) return undefined
  const {choices, content} = output as {choices?: unknown; content?: unknown}
  if (!Array.isArray(choices)) return typeof content === 'string' ? content : undefined
  const choice = (choices[0] ?? {}) as {text?: unknown; delta?: {content?: unknown}; message?: {content?: unknown}}
  const text = choice.message?.content ?? choice.delta?.content ?? choice.text ?? ''
  return typeof text === 'string' ? text : undefined
}

// shownPart is a part as it is shown: texts follow each other, anything else has a line of its own.
export function shownPart(part: Part): string {
  return (part.outputs ? undefined : textOf(part.output)) ?? `${JSON.stringify(part.outputs ?? part.output)}\n`
}

// shownAnswer is a whole answer as it is shown.
export function shownAnswer({output, outputs}: Answer): string {
  return (outputs ? undefined : textOf(output)) ?? JSON.stringify(outputs ?? output ?? null, null, 2)
}
