import type {InputType, Signature, Tensor} from '../api/schema'

// inputOf reads what is written as an input of a type. A list of inputs becomes a batch.
export function inputOf(text: string, type: InputType): {input: unknown} | {input_batch: unknown[]} {
  if (type === 'strings') return textInput(text)
  if (type === 'bytes') return {input: text.trim()}
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error(
      type === 'tensors'
        ? 'This is not JSON. Write an object with the inputs by name.'
        : type === 'chat'
          ? 'This is not JSON. Write an object with the messages.'
          : 'This is not JSON. Write numbers such as [1, 2, 3.5].',
    )
  }
  if (type === 'tensors') return namedInput(value)
  if (type === 'chat') return chatInput(value)
  if (!Array.isArray(value)) throw new Error('Write an array of numbers, such as [1, 2, 3.5].')
  return value.length > 0 && value.every(Array.isArray) ? {input_batch: value} : {input: value}
}

function namedInput(value: unknown): {input: unknown} | {input_batch: unknown[]} {
  if (Array.isArray(value)) return {input_batch: value}
  if (typeof value !== 'object' || value === null) throw new Error('Write an object with the inputs by name.')
  return {input: value}
}

function chatInput(value: unknown): {input: unknown} {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('Write an object with the messages.')
  return {input: value}
}

// A text may be written as it is; quotes and lists are taken as JSON.
function textInput(text: string): {input: unknown} | {input_batch: unknown[]} {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'string') return {input: value}
    if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return {input_batch: value}
  } catch {
    // Then it is the text itself.
  }
  return {input: text}
}

// exampleOf is what to begin with, where an app or a version has no example of its own.
export function exampleOf(type: InputType, length = 0, signature?: Signature): string {
  if (type === 'tensors') return JSON.stringify(Object.fromEntries((signature?.inputs ?? []).map((t) => [t.name, exampleTensor(t)])))
  if (type === 'chat') return '{"messages": [{"role": "user", "content": "Hello"}]}'
  if (type === 'strings') return '"a text"'
  if (type === 'bytes') return 'AAEC'
  const values = Array.from({length: length || 3}, (_, i) => (type === 'integers' ? i + 1 : i + 0.5))
  return JSON.stringify(values)
}

// exampleTensor has two elements in each dimension of any length.
function exampleTensor({type, shape = []}: Tensor): unknown {
  const [first, ...rest] = shape
  if (first !== undefined)
    return Array.from({length: first < 0 ? 2 : Math.min(first, 16)}, () => exampleTensor({name: '', type, shape: rest}))
  if (type === 'string') return 'a text'
  if (type === 'bytes') return 'AAEC'
  if (type === 'bool') return true
  if (type === 'json') return {}
  return type.includes('float') ? 0.5 : 1
}
