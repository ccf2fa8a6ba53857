import {expect, it} from 'vitest'
import type {Model, Pool, Replica, Version} from '../src/api/schema'
import {heldBy, isHost, runnerOf} from '../src/lib/hosts'
import {countsOf} from '../src/lib/wanted'

const named = (name: string, current: string, serving = current): [string, Model] => [
  name,
  {name, current, serving, versions: [], apps: []},
]
const models = new Map([named('shelf', '2', '1'), named('small', '1'), named('tiny', '1'), named('lost', '1')])
const versions = new Map<string, Version>([
  ['shelf:1', {model: 'shelf', version: '1', host: {memory_mb: 512}, replicas: 3}],
  ['shelf:2', {model: 'shelf', version: '2', host: {memory_mb: 512}, replicas: 3}],
  ['small:1', {model: 'small', version: '1', hosted_by: 'shelf'}],
  ['tiny:1', {model: 'tiny', version: '1', hosted_by: 'shelf'}],
  ['lost:1', {model: 'lost', version: '1', hosted_by: 'gone'}],
])
const version = (key: string) => versions.get(key) as Version

it('finds whose replicas answer', () => {
  expect(runnerOf(version('small:1'), models, versions)).toBe(version('shelf:1'))
  expect(runnerOf(version('shelf:2'), models, versions)).toBe(version('shelf:2'))
  expect(runnerOf(version('lost:1'), models, versions)).toBeUndefined()
})

it('knows hosts, and what they hold', () => {
  expect([...models.values()].filter((model) => isHost(model, versions)).map(({name}) => name)).toEqual(['shelf'])
  expect(heldBy('shelf', versions).map(({model}) => model)).toEqual(['small', 'tiny'])
})

it('counts the replicas of a host once, however many of its models an app asks', () => {
  const ready = {state: 'ready'} as Replica
  const groups = new Map([['shelf:1', [ready, ready]]])
  const pools = new Map<string, Pool>()
  expect(countsOf(['small', 'tiny'], models, versions, groups, pools)).toEqual({ready: 2, wanted: 3})
  expect(countsOf(['small', 'shelf'], models, versions, groups, pools)).toEqual({ready: 2, wanted: 6})
  expect(countsOf(['lost'], models, versions, groups, pools)).toEqual({ready: 0, wanted: 0})
})
