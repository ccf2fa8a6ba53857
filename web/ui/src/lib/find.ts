import type {App, Model, Replica, Version} from '../api/schema'
import {addressOf} from './address'

export interface Find {
  kind: 'app' | 'model' | 'version' | 'replica'
  name: string
  href: string
}

const most = 12

// find lists what has a text in its name, what begins with it first.
export function find(
  text: string,
  apps: ReadonlyMap<string, App>,
  models: ReadonlyMap<string, Model>,
  versions: ReadonlyMap<string, Version>,
  replicas: ReadonlyMap<string, Replica>,
): Find[] {
  const needle = text.trim().toLowerCase()
  if (needle === '') return []
  const begin: Find[] = []
  const inside: Find[] = []
  const places = [
    ['app', apps],
    ['model', models],
    ['version', versions],
    ['replica', replicas],
  ] as const
  for (const [kind, names] of places) {
    for (const name of names.keys()) {
      const at = name.toLowerCase().indexOf(needle)
      if (at < 0) continue
      const list = at === 0 ? begin : inside
      if (list.length < most) list.push({kind, name, href: addressOf(kind, name)})
    }
  }
  return [...begin, ...inside].slice(0, most)
}
