import type {InputType} from '../api/schema'

// inputOf reads what is written as an input of a type. A list of inputs becomes a batch.
export function inputOf(text: string, type: InputType): {input: unknown} | {input_batch: unknown[]} {
  if (type === 'strings') return textInput(text)
  if (type === 'bytes') return {input: text.trim()}
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error('This is not JSON. Write numbers such as [1, 2, 3.5].')
  }
  if (!Array.isArray(value)) throw new Error('Write an array of numbers, such as [1, 2, 3.5].')
  return value.length > 0 && value.every(Array.isArray) ? {input_batch: value} : {input: value}
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
export function exampleOf(type: InputType, length = 0): string {
  if (type === 'strings') return '"a text"'
  if (type === 'bytes') return 'AAEC'
  const values = Array.from({length: length || 3}, (_, i) => (type === 'integers' ? i + 1 : i + 0.5))
  return JSON.stringify(values)
}
