import {expect, it} from 'vitest'
import type {Stream} from '../src/api/schema'
import {brief, matches, stateOf} from '../src/lib/streams'

const wine: Stream = {
  name: 'cellar',
  kind: 'data',
  app: 'wine',
  input: ['Records', 'more'],
  output: 'results',
  dead_letter: 'dead',
  now: {processes: 1, conditions: []},
}
const models: Stream = {
  name: 'models',
  kind: 'model',
  input: ['updates'],
  output: 'deployed',
  dead_letter: 'refused',
  now: {processes: 1, conditions: []},
}

it('waits for its app, and where it is suspended that comes first', () => {
  const suspension = {since: '2026-01-31T12:00:00Z'}
  const [some, none] = [new Map([['wine', {}]]), new Map()]
  expect(stateOf(wine, some)).toBe('open')
  expect(stateOf(wine, none)).toBe('waiting')
  expect(stateOf(wine, null)).toBe('open')
  expect(stateOf({...wine, app: 'wine, tasting'}, some)).toBe('waiting')
  expect(stateOf({...wine, app: 'wine, wine'}, some)).toBe('open')
  expect(stateOf(models, none)).toBe('open')
  expect(stateOf({...wine, suspension}, none)).toBe('suspended')
  expect(stateOf({...wine, now: {processes: 1, conditions: ['cannot commit results']}}, some)).toBe('failing')
  expect(stateOf({...wine, now: undefined}, some)).toBe('idle')
})

it('is found by all of its names', () => {
  for (const text of ['', ' CELL', 'wine', 'records', 'MORE', 'results', 'dead']) expect(matches(wine, text), text).toBe(true)
  for (const text of ['data', 'models', 'cellar wine']) expect(matches(wine, text), text).toBe(false)
  expect(matches(models, 'wine')).toBe(false)
})

it('shortens what it reads', () => {
  expect(brief(['a'])).toBe('a')
  expect(brief(['a', 'b'])).toBe('a, b')
  expect(brief(['a', 'b', 'c', 'd'])).toBe('a, b and 2 more')
})
