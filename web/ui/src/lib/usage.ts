// Usage as lines of a table.
import type {Figures, Usage} from '../api/schema'
import {versionKey} from './catalog'
import {to} from './router.svelte'

export interface Row {
  kind: 'app' | 'version' | 'stage'
  name: string
  href?: string
  model?: {name: string; href: string} // that a stage of an app asks
  since?: string | undefined
  figures: Figures
}

export function rowOf(usage: Usage): Row {
  const {kind, app = '', model = '', version = '', since} = usage
  return kind === 'app'
    ? {kind, name: app, href: to('app', {app}, {tab: 'usage'}), since, figures: usage}
    : {kind, name: versionKey(model, version), href: to('version', {model, version}, {tab: 'usage'}), since, figures: usage}
}

export function stageRows(usage: Usage): Row[] {
  return (usage.stages ?? []).map((stage) => ({
    kind: 'stage',
    name: stage.stage,
    ...(stage.model && {model: {name: stage.model, href: to('model', {model: stage.model})}}),
    figures: stage,
  }))
}

// placeOf is the page of a candidate of an app, which is a model or a version.
export function placeOf(candidate: string): string {
  const [model = '', version] = candidate.split(':')
  return version === undefined ? to('model', {model}) : to('version', {model, version})
}
