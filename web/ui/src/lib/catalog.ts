import type * as T from '../api/schema'

// Objects are apps, models and versions as the page has them.
export interface Objects {
  readonly apps: ReadonlyMap<string, T.App>
  readonly models: ReadonlyMap<string, T.Model>
  readonly versions: ReadonlyMap<string, T.Version> // by model:version
}

// Source is where they are read; null is what is not there.
export interface Source {
  apps(): Promise<T.App[]>
  models(): Promise<T.Model[]>
  versions(): Promise<T.Version[]>
  appIfThere(app: string): Promise<T.App | null>
  modelIfThere(model: string): Promise<T.Model | null>
  versionsOf(model: string): Promise<T.Version[]>
}

// versionKey names a version among all.
export function versionKey(model: string, version: string): string {
  return `${model}:${version}`
}

// goesBack says whether a version became current in a step, is not now, and can be again.
export function goesBack(one: T.ModelChange, {current, versions}: Pick<T.Model, 'current' | 'versions'>): boolean {
  const became = one.action === 'promoted' || one.action === 'rolled_back'
  return became && one.version !== undefined && one.version !== current && versions.includes(one.version)
}

// Due is what has to be read again: everything, or some objects.
export class Due {
  #all = false
  #apps = new Set<string>()
  #models = new Set<string>() // with their versions

  // add takes in what an event names; undefined is everything.
  add(changed: T.Notice['changed']) {
    this.#all ||= changed === undefined
    for (const {kind, name} of changed ?? []) {
      if (kind === 'app') this.#apps.add(name)
      else if (kind === 'model') this.#models.add(name)
    }
  }

  // read is the objects with what was due. What cannot be read stays due.
  async read(have: Objects, from: Source): Promise<Objects> {
    const [all, apps, models] = [this.#all, this.#apps, this.#models]
    this.#all = false
    this.#apps = new Set()
    this.#models = new Set()
    try {
      return all ? await readAll(from) : await readSome(have, from, [...apps], [...models])
    } catch (err) {
      this.#all = true
      throw err
    }
  }
}

async function readAll(from: Source): Promise<Objects> {
  const [apps, models, versions] = await Promise.all([from.apps(), from.models(), from.versions()])
  return {
    apps: new Map(apps.map((app) => [app.name, app])),
    models: new Map(models.map((model) => [model.name, model])),
    versions: new Map(versions.map((version) => [versionKey(version.model ?? '', version.version), version])),
  }
}

async function readSome(have: Objects, from: Source, apps: string[], models: string[]): Promise<Objects> {
  const next = {apps: new Map(have.apps), models: new Map(have.models), versions: new Map(have.versions)}
  const readApp = async (name: string) => put(next.apps, name, await from.appIfThere(name))
  const readModel = async (name: string) => {
    const model = await from.modelIfThere(name)
    const versions = model ? await from.versionsOf(name) : []
    put(next.models, name, model)
    for (const [key, version] of next.versions) if (version.model === name) next.versions.delete(key)
    for (const version of versions) next.versions.set(versionKey(name, version.version), version)
  }
  await Promise.all([...apps.map(readApp), ...models.map(readModel)])
  return next
}

function put<V>(map: Map<string, V>, name: string, value: V | null) {
  if (value === null) map.delete(name)
  else map.set(name, value)
}
