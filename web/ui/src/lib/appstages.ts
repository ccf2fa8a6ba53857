// The stages of an app, each of which asks a model about what those before it have put out.
import type {App, AppStage} from '../api/schema'
import {input} from './graph'

// Draft is a stage while it is edited. It is known by a number, so that others still take from it when it has another name.
export interface Draft {
  id: number
  name: string
  model: string // or an app: inApp of its name
  after: number[] | null // the stages that it takes from, in this order; null: the stage before it
}

export const theInput = 0 // in after: the query's input
export const most = 32
const nameForm = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/

// inApp is an app where a draft has a model, whose names have no blanks.
export const inApp = (name: string) => `app ${name}`

// asked is what a stage of a draft asks.
function asked({model}: Draft): {model: string} | {app: string} {
  return model.startsWith(inApp('')) ? {app: model.slice(inApp('').length)} : {model}
}

// modelsOf are the models that an app asks, each once; those of apps that its stages ask are theirs.
export function modelsOf(app: App): string[] {
  return app.stages?.length ? [...new Set(app.stages.flatMap(({model}) => model ?? []))] : (app.models ?? [])
}

// sourcesOf is what a stage takes, in words of the API, also where it does not say so.
export function sourcesOf(stages: readonly AppStage[], i: number): string[] {
  const after = stages[i]?.after
  return after?.length ? after : [stages[i - 1]?.name ?? input]
}

export function draftsOf(stages: readonly AppStage[]): Draft[] {
  const numbers = new Map([[input, theInput]])
  return stages.map(({name, model, app, after}, i) => {
    const taken = after?.map((from) => numbers.get(from)).filter((id) => id !== undefined)
    if (!numbers.has(name)) numbers.set(name, i + 1)
    return {id: i + 1, name, model: app ? inApp(app) : (model ?? ''), after: taken?.length ? taken : null}
  })
}

export function stagesOf(drafts: readonly Draft[]): AppStage[] {
  const names = new Map(drafts.map(({id, name}) => [id, name.trim()]))
  return drafts.map((draft) => ({
    name: draft.name.trim(),
    ...asked(draft),
    ...(draft.after && {after: draft.after.map((id) => (id === theInput ? input : (names.get(id) ?? '')))}),
  }))
}

// taken is the stages that a stage takes from.
export function taken(drafts: readonly Draft[], i: number): number[] {
  return drafts[i]?.after ?? [drafts[i - 1]?.id ?? theInput]
}

export function added(drafts: readonly Draft[]): Draft[] {
  const id = 1 + Math.max(theInput, ...drafts.map((draft) => draft.id))
  return [...drafts, {id, name: '', model: '', after: null}]
}

// without takes a stage out. Who took from it takes what it took.
export function without(drafts: readonly Draft[], i: number): Draft[] {
  const gone = drafts[i]
  if (!gone) return [...drafts]
  const bridge = taken(drafts, i)
  const rest = drafts.map((draft, k) => {
    const after = draft.after ?? (k === i + 1 && gone.after ? taken(drafts, k) : null)
    if (!after?.includes(gone.id)) return draft
    return {...draft, after: [...new Set(after.flatMap((id) => (id === gone.id ? bridge : [id])))]}
  })
  return settled(rest.filter(({id}) => id !== gone.id))
}

// moved lets a stage change places with the one before it, or with the one behind it.
export function moved(drafts: readonly Draft[], i: number, by: -1 | 1): Draft[] {
  const list = [...drafts]
  const [one, other] = [list[i], list[i + by]]
  if (!one || !other) return list
  list[i] = other
  list[i + by] = one
  return settled(list)
}

// toggled lets a stage take from another one or the input, or no longer. It always takes something.
export function toggled(drafts: readonly Draft[], i: number, from: number): Draft[] {
  const before = taken(drafts, i)
  const after = before.includes(from) ? before.filter((id) => id !== from) : [...before, from]
  return drafts.map((draft, k) => (k === i && after.length > 0 ? {...draft, after: short(drafts, i, after)} : draft))
}

// settled drops what a stage cannot take, because it stands behind it.
function settled(drafts: Draft[]): Draft[] {
  return drafts.map((draft, i) => {
    const before = new Set([theInput, ...drafts.slice(0, i).map(({id}) => id)])
    const after = draft.after?.filter((id) => before.has(id)) ?? []
    return {...draft, after: short(drafts, i, after)}
  })
}

// short is null for what a stage takes anyhow.
function short(drafts: readonly Draft[], i: number, after: number[]): number[] | null {
  const usual = drafts[i - 1]?.id ?? theInput
  return after.length === 0 || (after.length === 1 && after[0] === usual) ? null : after
}

export interface Wrong {
  name: string
  model: string
  use: string
}

// wrongs is what is wrong with each stage, or nothing, as the API would say.
export function wrongs(drafts: readonly Draft[]): Wrong[] {
  const used = new Set(drafts.flatMap((_, i) => taken(drafts, i)))
  return drafts.map((draft, i) => {
    const name = draft.name.trim()
    const twice = name === input || drafts.slice(0, i).some((other) => other.name.trim() === name)
    return {
      name: !nameForm.test(name) ? "1 to 63 letters, digits, '_' or '-'." : twice ? 'There is another one of this name.' : '',
      model: draft.model === '' ? 'Choose a model or an app.' : '',
      use: i < drafts.length - 1 && !used.has(draft.id) ? 'No stage takes what it puts out, and only the last one answers.' : '',
    }
  })
}

// toml is the stages as in a configuration file, below the app.
export function toml(stages: readonly AppStage[]): string {
  return stages
    .map(({name, model, app, after}) => {
      const takes = after?.length ? `\nafter = [${after.map((from) => JSON.stringify(from)).join(', ')}]` : ''
      return `[[app.stages]]\nname = ${JSON.stringify(name)}\n${app ? 'app' : 'model'} = ${JSON.stringify(app ?? model)}${takes}`
    })
    .join('\n\n')
}
