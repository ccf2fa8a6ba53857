import {describe, expect, it} from 'vitest'
import type {App, CatalogEvent, Replica} from '../src/api/schema'
import {Inbox, merged} from '../src/lib/inbox'

const app = (name: string, slo = 1000): App => ({name, input_type: 'doubles', latency_slo_micros: slo})
const replica = (id: string, state: Replica['state'] = 'ready'): Replica => ({id, model: 'm', version: '1', state})
const catalog = (event: Partial<CatalogEvent>): CatalogEvent => ({revision: 1, apps: [], models: [], versions: [], gone: [], ...event})

describe('Inbox', () => {
  it('is empty until something comes, and after it was taken', () => {
    const inbox = new Inbox()
    expect(inbox.take()).toBeNull()
    inbox.put('traffic', {apps: []})
    expect(inbox.take()).not.toBeNull()
    expect(inbox.take()).toBeNull()
  })

  it('keeps the last word on each object', () => {
    const inbox = new Inbox()
    inbox.put('catalog', catalog({apps: [app('a', 1)], revision: 1}))
    inbox.put('catalog', catalog({apps: [app('a', 2)], revision: 2}))
    inbox.put('catalog', catalog({gone: [{kind: 'app', name: 'b'}], revision: 3}))
    const batch = inbox.take()
    expect(batch?.apps.get('a')?.latency_slo_micros).toBe(2)
    expect(batch?.apps.get('b')).toBeNull()
    expect(batch?.revision).toBe(3)
  })

  it('forgets what came before everything', () => {
    const inbox = new Inbox()
    inbox.put('replicas', {changed: [replica('old')], gone: []})
    inbox.put('replicas', {whole: true, changed: [replica('new')], gone: []})
    inbox.put('replicas', {changed: [replica('new', 'failed')], gone: []})
    const batch = inbox.take()
    expect(batch?.replicasWhole).toBe(true)
    expect([...(batch?.replicas.keys() ?? [])]).toEqual(['new'])
    expect(batch?.replicas.get('new')?.state).toBe('failed')
  })

  it('stays small in a tab that nobody looks at', () => {
    const inbox = new Inbox()
    for (let i = 0; i < 10_000; i++) {
      inbox.put('replicas', {changed: [replica('r')], gone: []})
      inbox.put('decision', {at: String(i)})
    }
    const batch = inbox.take()
    expect(batch?.replicas.size).toBe(1)
    expect(batch?.decisions).toHaveLength(200)
    expect(batch?.decisions.at(-1)?.at).toBe('9999')
  })
})

describe('merged', () => {
  const before = new Map([
    ['a', 1],
    ['b', 2],
  ])

  it('leaves the map alone where nothing changes', () => expect(merged(before, new Map(), false)).toBe(before))
  it('adds, replaces and deletes in a copy', () => {
    const after = merged(
      before,
      new Map<string, number | null>([
        ['a', 3],
        ['b', null],
        ['c', 4],
      ]),
      false,
    )
    expect([...after]).toEqual([
      ['a', 3],
      ['c', 4],
    ])
    expect([...before]).toEqual([
      ['a', 1],
      ['b', 2],
    ])
  })
  it('begins anew with everything', () => expect([...merged(before, new Map([['z', 9]]), true)]).toEqual([['z', 9]]))
})
