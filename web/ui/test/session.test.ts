import {describe, expect, it} from 'vitest'
import {covers} from '../src/lib/session.svelte'

describe('roles', () => {
  it('cover those below, and query stands by itself', () => {
    expect(covers('admin', 'viewer')).toBe(true)
    expect(covers('viewer', 'operator')).toBe(false)
    expect(covers('query', 'viewer')).toBe(false)
  })
})
