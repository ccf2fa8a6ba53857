import type {App, InputType, Limit} from '../api/schema'
import {draftsOf, stagesOf, type Draft as Stage} from './appstages'
import {said} from './said'

const inputTitles: Record<InputType, string> = {
  doubles: 'Doubles: numbers of 64 bits',
  floats: 'Floats: numbers of 32 bits',
  integers: 'Integers: whole numbers of 32 bits',
  strings: 'Strings: text',
  bytes: 'Bytes: base64',
  tensors: 'Tensors: named inputs, by a signature',
  chat: 'Chat: requests of OpenAI’s API',
}
export const inputTypes = Object.entries(inputTitles)

export const blank: App = {name: '', input_type: 'doubles', latency_slo_micros: 100_000, default_output: '-1'}

// Draft is an app while it is edited: what its fields leave empty may be empty here.
export type Draft = Partial<Omit<App, 'limit' | 'stages'>> &
  Pick<App, 'name' | 'input_type'> & {
    cache: NonNullable<App['cache']>
    limit: Partial<Limit>
    stages: Stage[]
    staged: boolean // its models are asked one after another
  }

export function draftOf(app: App): Draft {
  const {stages = [], ...rest} = written(app)
  return {...rest, cache: {...app.cache}, limit: {...app.limit}, stages: draftsOf(stages), staged: stages.length > 0}
}

// written is an app without what only the API writes, to be compared and sent.
export function written(app: App): App {
  const {origin: _, ...rest} = app
  return rest
}

// appOf is the app that a draft describes, without what is empty. What no field is for stays as it was.
export function appOf({staged, stages, cache, limit, ...rest}: Draft, base: App): App {
  const app = {
    ...rest,
    description: rest.description?.trim(),
    example: rest.example?.trim(),
    ...said({cache: said(cache), limit: limit.per_second ? said(limit) : {}}),
    ...(staged && {stages: stagesOf(stages)}),
    ...(staged && !base.stages?.length && {models: undefined, policy: undefined}), // stages answer instead
  }
  const given = Object.entries(app).filter(([, value]) => value || value === 0)
  return {...Object.fromEntries(given), name: rest.name.trim()} as App
}

// inUnit is a number as a field shows it, and whole is that number again.
export function inUnit(value: number | undefined, unit: number): number | null {
  return value === undefined ? null : value / unit
}

export function whole(shown: number | null, unit: number): number | undefined {
  return shown === null ? undefined : Math.round(shown * unit)
}
