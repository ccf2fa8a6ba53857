import type {Policy} from '../api/schema'
import {kindOf, options, type KindName, type Option} from './policies'

// Draft is a policy as its fields hold it: each option as it is written.
export type Draft = Record<string, string | boolean | string[]>

export function draftOf(policy: Policy): Draft {
  const draft: Draft = {}
  for (const option of options) {
    const value = policy[option.name]
    if (option.control === 'flag') draft[option.name] = value === true
    else if (option.control === 'models') draft[option.name] = Array.isArray(value) ? value.map(String) : []
    else if (option.control === 'weights') draft[option.name] = value ? weightLines(value as NonNullable<Policy['weights']>) : ''
    else if (option.control === 'policy') draft[option.name] = value ? JSON.stringify(value) : ''
    else draft[option.name] = value === undefined || value === null ? '' : String(value)
  }
  return draft
}

// policyOf is what the fields say, of the options that the kind has. What no field is for stays as it was.
export function policyOf(kind: KindName, draft: Draft, before: Policy): Policy {
  const fielded = new Set<string>(options.map((option) => option.name))
  const policy: Record<string, unknown> = Object.fromEntries(Object.entries(before).filter(([name]) => !fielded.has(name)))
  policy.kind = kind
  const own = kindOf(kind)?.options ?? []
  for (const option of options) {
    if (!own.includes(option.name)) continue
    const value = read(option, draft[option.name])
    if (value !== undefined) policy[option.name] = value
  }
  return policy as Policy
}

function read(option: Option, written: Draft[string] | undefined): unknown {
  if (written === undefined || written === '' || written === false) return undefined
  if (Array.isArray(written)) return written.length > 0 ? written : undefined
  if (written === true) return true
  switch (option.control) {
    case 'number': {
      const value = Number(written)
      if (!Number.isFinite(value)) throw new Error(`${option.title}: ${written} is no number.`)
      return value
    }
    case 'weights':
      return readWeights(option.title, written)
    case 'policy':
      try {
        return JSON.parse(written)
      } catch {
        throw new Error(`${option.title}: this is not JSON. Write such as {"kind": "single"}.`)
      }
    default:
      return written
  }
}

function weightLines(weights: Record<string, number>): string {
  return Object.entries(weights)
    .map(([name, weight]) => `${name}=${weight}`)
    .join('\n')
}

function readWeights(title: string, text: string): Record<string, number> {
  const weights: Record<string, number> = {}
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    const cut = line.lastIndexOf('=')
    const weight = Number(line.slice(cut + 1))
    if (cut < 1 || line.slice(cut + 1).trim() === '' || !Number.isFinite(weight)) {
      throw new Error(`${title}: "${line.trim()}" is not NAME=WEIGHT. Write one on each line.`)
    }
    weights[line.slice(0, cut).trim()] = weight
  }
  return weights
}
