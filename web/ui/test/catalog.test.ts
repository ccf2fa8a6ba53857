import {describe, expect, it} from 'vitest'
import type {ModelChange} from '../src/api/schema'
import {goesBack} from '../src/lib/catalog'

describe('goesBack', () => {
  const model = {current: '3', versions: ['1', '2', '3']}
  const step = (action: ModelChange['action'], version?: string): ModelChange => ({
    id: '1',
    at: '2026-01-02T03:04:05Z',
    who: 'ann',
    action,
    version,
  })

  it('offers every version that was current and is registered', () => {
    expect(goesBack(step('promoted', '1'), model)).toBe(true)
    expect(goesBack(step('rolled_back', '2'), model)).toBe(true)
  })
  it('offers neither the current version nor one that is deleted', () => {
    expect(goesBack(step('promoted', '3'), model)).toBe(false)
    expect(goesBack(step('promoted', '4'), model)).toBe(false)
  })
  it('offers nothing for steps that made no version current', () => {
    expect(goesBack(step('registered', '1'), model)).toBe(false)
    expect(goesBack(step('removed', '1'), model)).toBe(false)
    expect(goesBack(step('deleted'), model)).toBe(false)
  })
})
