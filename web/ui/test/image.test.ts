import {describe, expect, it} from 'vitest'
import {imagesOf, layoutOf, longestQuery, sizeFor, tensorOf, withInput} from '../src/lib/image'
import type {Tensor} from '../src/api/schema'

const of = (type: Tensor['type'], ...shape: number[]) => layoutOf({name: 'image', type, shape})
const layout = (type: Tensor['type'], ...shape: number[]) => {
  const found = of(type, ...shape)
  if (!found) throw new Error(`${type} ${shape} is no image`)
  return found
}

describe('layoutOf', () => {
  it('finds images', () => {
    expect(of('uint8', 224, 200, 3)).toEqual({name: 'image', type: 'uint8', order: 'hwc', height: 224, width: 200})
    expect(of('float32', 3, 224, 200)).toMatchObject({order: 'chw', height: 224, width: 200})
    expect(of('float32', 28, 20)).toMatchObject({order: 'hw', height: 28, width: 20})
    expect(of('uint8', -1, -1, 3)).toMatchObject({order: 'hwc', height: -1, width: -1})
  })
  it('leaves other tensors', () => {
    for (const shape of [[], [3], [-1, -1], [4, 2], [10, 20, 4], [2, 224, 224, 3], [2, 2, 3]])
      expect(of('uint8', ...shape), `${shape}`).toBeNull()
    expect(of('int64', 224, 224, 3)).toBeNull()
    expect(
      imagesOf({
        inputs: [
          {name: 'prompt', type: 'string'},
          {name: 'a', type: 'uint8', shape: [8, 8]},
        ],
      }),
    ).toHaveLength(1)
    expect(imagesOf()).toEqual([])
  })
})

describe('sizeFor', () => {
  it('takes what the shape says', () =>
    expect(sizeFor(layout('uint8', 224, 200, 3), {width: 9, height: 9})).toEqual({width: 200, height: 224}))
  it('keeps the sides of an image where they are free', () =>
    expect(sizeFor(layout('uint8', -1, -1, 3), {width: 120, height: 90})).toEqual({width: 120, height: 90}))
  it('keeps its proportions, and the query within what can be sent', () => {
    for (const type of ['uint8', 'float32'] as const) {
      const {width, height} = sizeFor(layout(type, -1, -1, 3), {width: 4000, height: 2000})
      expect(width).toBeLessThanOrEqual(512)
      expect(width / height).toBeCloseTo(2, 1)
      const text = JSON.stringify(tensorOf(layout(type, -1, -1, 3), new Uint8Array(width * height * 4).fill(123), width, height))
      expect(text.length).toBeLessThan(longestQuery)
    }
  })
  it('scales the side that is free', () =>
    expect(sizeFor(layout('uint8', 3, 32, -1), {width: 900, height: 900})).toEqual({width: 512, height: 32}))
})

describe('tensorOf', () => {
  const pixels = [255, 0, 0, 255, 0, 51, 102, 255] // two beside each other
  it('orders channels', () => {
    expect(tensorOf(layout('uint8', -1, -1, 3), pixels, 2, 1)).toEqual([
      [
        [255, 0, 0],
        [0, 51, 102],
      ],
    ])
    expect(tensorOf(layout('uint8', 3, -1, -1), pixels, 2, 1)).toEqual([[[255, 0]], [[0, 51]], [[0, 102]]])
  })
  it('has floats from 0 to 1', () =>
    expect(tensorOf(layout('float32', -1, -1, 3), pixels, 2, 1)).toEqual([
      [
        [1, 0, 0],
        [0, 0.2, 0.4],
      ],
    ]))
  it('has the brightness where there is one channel', () => expect(tensorOf(layout('uint8', 8, 8), pixels, 2, 1)).toEqual([[76, 42]]))
})

describe('withInput', () => {
  it('keeps the other inputs', () => {
    expect(withInput('{"image": 1, "prompt": "a"}', 'image', [2])).toBe('{"image":[2],"prompt":"a"}')
    expect(withInput('{"image', 'image', [2])).toBe('{"image":[2]}')
    expect(withInput('[1]', 'image', [2])).toBe('{"image":[2]}')
  })
})
