import {describe, expect, it} from 'vitest'
import {addressOf} from '../src/lib/address'
import {matched, routes, to} from '../src/lib/router.svelte'

describe('matched', () => {
  it('finds pages', () => {
    expect(matched('/')).toEqual({name: 'overview', args: {}})
    expect(matched('')).toEqual({name: 'overview', args: {}})
    expect(matched('/models/digits-svm/7')).toEqual({name: 'version', args: {model: 'digits-svm', version: '7'}})
    expect(matched('/apps/wine/')).toEqual({name: 'app', args: {app: 'wine'}})
  })

  it('finds nothing where nothing is', () => {
    for (const path of ['/no', '/apps', '/apps/a/b', '/models/a/b/c', '/apps/%E0%A4%A']) expect(matched(path)).toBeNull()
  })

  it('goes back and forth for hostile names', () => {
    for (const app of ['a b', 'ä/ö?#&=%', '<script>', '..%2f', 'constructor', '__proto__']) {
      expect(matched(to('app', {app}).slice('/ui'.length))).toEqual({name: 'app', args: {app}})
    }
  })

  it('has an address for every page', () => {
    for (const name of Object.keys(routes)) {
      expect(matched(to(name, {app: 'a', model: 'm', version: 'v', replica: 'r'}).slice('/ui'.length))?.name).toBe(name)
    }
  })
})

describe('to', () => {
  it('writes a query without what is empty', () =>
    expect(to('app', {app: 'wine'}, {tab: 'try', window: undefined, q: ''})).toBe('/ui/apps/wine?tab=try'))
  it('knows the pages of objects', () => {
    expect(addressOf('version', 'digits-svm:7')).toBe('/ui/models/digits-svm/7')
    expect(addressOf('stream', 'wine.models')).toBe('/ui/streams?q=wine.models')
    expect(addressOf('version', 'damaged')).toBe('')
    expect(addressOf('artifact', 'sha256:00')).toBe('')
  })
})
