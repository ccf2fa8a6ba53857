import type {Signature, Tensor} from '../api/schema'

// Layout is how a tensor holds an image.
export interface Layout {
  name: string
  type: 'uint8' | 'float32'
  order: 'hwc' | 'chw' | 'hw'
  height: number // -1 is any
  width: number
}

const longestSide = 512
const smallestSide = 8 // a smaller matrix is no image
export const longestQuery = 1 << 20 // bytes that the management API takes
const room = 100_000 // for the other inputs

// imagesOf are the inputs that can hold an image.
export function imagesOf(signature?: Signature): Layout[] {
  return (signature?.inputs ?? []).map(layoutOf).filter((layout) => layout !== null)
}

export function layoutOf({name, type, shape = []}: Tensor): Layout | null {
  if (type !== 'uint8' && type !== 'float32') return null
  const [a = 0, b = 0, c = 0] = shape
  if (shape.length === 2) return a >= smallestSide && b >= smallestSide ? {name, type, order: 'hw', height: a, width: b} : null
  if (shape.length !== 3) return null
  if (c === 3 && side(a) && side(b)) return {name, type, order: 'hwc', height: a, width: b}
  if (a === 3 && side(b) && side(c)) return {name, type, order: 'chw', height: b, width: c}
  return null
}

const side = (n: number) => n === -1 || n >= smallestSide

// sizeFor is the size that an image is scaled to. Free sides keep those of the image, at most 512, and less where the
// query would be too long otherwise.
export function sizeFor(layout: Layout, image: {width: number; height: number}): {width: number; height: number} {
  const {width, height} = layout
  const number = layout.type === 'uint8' ? 4 : 6 // characters with a comma
  const characters = layout.order === 'hw' ? number : 3 * number + 2
  const pixels = (longestQuery - room) / characters
  if (width >= 0 && height >= 0) return {width, height}
  const clamp = (n: number, most: number) => Math.max(1, Math.min(Math.floor(n), Math.floor(most)))
  if (width >= 0) return {width, height: clamp(image.height, Math.min(longestSide, pixels / width))}
  if (height >= 0) return {width: clamp(image.width, Math.min(longestSide, pixels / height)), height}
  const scale = Math.min(1, longestSide / Math.max(image.width, image.height), Math.sqrt(pixels / (image.width * image.height)))
  return {width: clamp(image.width * scale, longestSide), height: clamp(image.height * scale, longestSide)}
}

// tensorOf makes the nested array of a layout from the pixels of a canvas: red, green, blue and alpha of each.
export function tensorOf(layout: Layout, pixels: ArrayLike<number>, width: number, height: number): unknown {
  const value = (n: number) => (layout.type === 'uint8' ? n : Math.round((n / 255) * 1000) / 1000)
  const at = (x: number, y: number, channel: number) => pixels[(y * width + x) * 4 + channel] ?? 0
  const rows = <T>(cell: (x: number, y: number) => T) =>
    Array.from({length: height}, (_, y) => Array.from({length: width}, (_, x) => cell(x, y)))
  const colours = [0, 1, 2]
  if (layout.order === 'hwc') return rows((x, y) => colours.map((channel) => value(at(x, y, channel))))
  if (layout.order === 'chw') return colours.map((channel) => rows((x, y) => value(at(x, y, channel))))
  return rows((x, y) => value(Math.round(0.299 * at(x, y, 0) + 0.587 * at(x, y, 1) + 0.114 * at(x, y, 2))))
}

// withInput is a query's text with one of its named inputs set. What is not an object is replaced.
export function withInput(text: string, name: string, value: unknown): string {
  let inputs: unknown
  try {
    inputs = JSON.parse(text)
  } catch {
    inputs = {}
  }
  const known = typeof inputs === 'object' && inputs !== null && !Array.isArray(inputs) ? inputs : {}
  return JSON.stringify({...known, [name]: value})
}
