import type {App, InputType} from '../api/types'
import {draftsOf, stagesOf, type Draft as Stage} from './appstages'

export const inputTypes: {name: InputType; title: string}[] = [
  {name: 'doubles', title: 'Doubles: numbers of 64 bits'},
  {name: 'floats', title: 'Floats: numbers of 32 bits'},
  {name: 'integers', title: 'Integers: whole numbers of 32 bits'},
  {name: 'strings', title: 'Strings: text'},
  {name: 'bytes', title: 'Bytes: base64'},
]

// Draft is an app while it is edited: what may be left out is empty.
export interface Draft {
  name: string
  description: string
  inputType: InputType
  outputType: NonNullable<App['output_type']>
  sloMs: number | null
  coldStartMs: number | null
  defaultOutput: string
  example: string
  weight: number | null
  cache: boolean
  cacheRound: number | null
  cacheTtlS: number | null
  requireKey: boolean
  limit: number | null
  burst: number | null
  staged: boolean // its models are asked one after another
  stages: Stage[]
}

export function draftOf(app: App): Draft {
  return {
    name: app.name,
    description: app.description ?? '',
    inputType: app.input_type,
    outputType: app.output_type ?? '',
    sloMs: app.latency_slo_micros / 1000,
    coldStartMs: app.cold_start_micros ? app.cold_start_micros / 1000 : null,
    defaultOutput: app.default_output ?? '',
    example: app.example ?? '',
    weight: app.weight || null,
    cache: !app.cache?.off,
    cacheRound: app.cache?.round || null,
    cacheTtlS: app.cache?.ttl_micros ? app.cache.ttl_micros / 1e6 : null,
    requireKey: app.require_key ?? false,
    limit: app.limit?.per_second ?? null,
    burst: app.limit?.burst || null,
    staged: (app.stages?.length ?? 0) > 0,
    stages: draftsOf(app.stages ?? []),
  }
}

export const blank: App = {name: '', input_type: 'doubles', latency_slo_micros: 100_000, default_output: '-1'}

// written is an app without what only the API writes, to be compared and sent.
export function written(app: App): App {
  const {origin: _, ...rest} = app
  return rest
}

// appOf is the app that a draft describes; what the draft does not show stays as in base.
export function appOf(draft: Draft, base: App): App {
  const cache = {
    ...(!draft.cache && {off: true}),
    ...(draft.cacheRound && {round: draft.cacheRound}),
    ...(draft.cacheTtlS && {ttl_micros: Math.round(draft.cacheTtlS * 1e6)}),
  }
  return pruned({
    ...written(base),
    ...answerers(draft, base),
    name: draft.name.trim(),
    description: draft.description.trim() || undefined,
    input_type: draft.inputType,
    output_type: draft.outputType || undefined,
    latency_slo_micros: Math.round((draft.sloMs ?? 0) * 1000),
    cold_start_micros: draft.coldStartMs ? Math.round(draft.coldStartMs * 1000) : undefined,
    default_output: draft.defaultOutput || undefined,
    example: draft.example.trim() || undefined,
    weight: draft.weight ?? undefined,
    cache: Object.keys(cache).length > 0 ? cache : undefined,
    require_key: draft.requireKey || undefined,
    limit: draft.limit ? {per_second: draft.limit, ...(draft.burst && {burst: draft.burst})} : undefined,
  })
}

// answerers is who answers: models under a policy, or stages instead of both.
function answerers(draft: Draft, base: App): {[K in 'stages' | 'models' | 'policy']?: App[K] | undefined} {
  if (!draft.staged) return {stages: undefined}
  return {stages: stagesOf(draft.stages), ...(!base.stages?.length && {models: undefined, policy: undefined})}
}

function pruned(app: {[K in keyof App]: App[K] | undefined}): App {
  return Object.fromEntries(Object.entries(app).filter(([, value]) => value !== undefined)) as unknown as App
}
