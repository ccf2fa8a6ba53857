import type * as T from '../api/schema'
import type {EventName} from './stream'

// Batch is what came since the last time, each object once.
export interface Batch {
  hello?: T.Hello
  catalogWhole: boolean
  revision?: number
  apps: Map<string, T.App | null> // null: it is gone
  models: Map<string, T.Model | null>
  versions: Map<string, T.Version | null> // by model:version
  replicasWhole: boolean
  replicas: Map<string, T.Replica | null>
  traffic?: T.Traffic
  decisions: T.Decision[] // the newest last
  audit: T.AuditEntry[]
  cluster?: T.Cluster
}

const keptDecisions = 200

// Inbox collects events between two frames. Newer words on an object replace older
// ones, so that it stays small also in a tab that is not drawn.
export class Inbox {
  #batch = empty()
  #some = false

  put(name: EventName, data: unknown) {
    this.#some = true
    const batch = this.#batch
    switch (name) {
      case 'hello':
        batch.hello = data as T.Hello
        break
      case 'catalog':
        putCatalog(batch, data as T.CatalogEvent)
        break
      case 'replicas':
        putReplicas(batch, data as T.ReplicasEvent)
        break
      case 'traffic':
        batch.traffic = data as T.Traffic
        break
      case 'decision':
        batch.decisions = [...batch.decisions, data as T.Decision].slice(-keptDecisions)
        break
      case 'audit':
        batch.audit = [...batch.audit, data as T.AuditEntry].slice(-keptDecisions)
        break
      case 'cluster':
        batch.cluster = data as T.Cluster
    }
  }

  // take empties the inbox; null where nothing came.
  take(): Batch | null {
    if (!this.#some) return null
    const batch = this.#batch
    this.#batch = empty()
    this.#some = false
    return batch
  }
}

// versionKey names a version among all.
export function versionKey(model: string, version: string): string {
  return `${model}:${version}`
}

function empty(): Batch {
  return {
    catalogWhole: false,
    apps: new Map(),
    models: new Map(),
    versions: new Map(),
    replicasWhole: false,
    replicas: new Map(),
    decisions: [],
    audit: [],
  }
}

function putCatalog(batch: Batch, event: T.CatalogEvent) {
  if (event.whole) {
    batch.catalogWhole = true
    batch.apps.clear()
    batch.models.clear()
    batch.versions.clear()
  }
  batch.revision = event.revision
  for (const app of event.apps) batch.apps.set(app.name, app)
  for (const model of event.models) batch.models.set(model.name, model)
  for (const version of event.versions) batch.versions.set(versionKey(version.model ?? '', version.version), version)
  for (const {kind, name} of event.gone) {
    if (kind === 'app') batch.apps.set(name, null)
    else if (kind === 'model') batch.models.set(name, null)
    else batch.versions.set(name, null)
  }
}

function putReplicas(batch: Batch, event: T.ReplicasEvent) {
  if (event.whole) {
    batch.replicasWhole = true
    batch.replicas.clear()
  }
  for (const replica of event.changed) batch.replicas.set(replica.id, replica)
  for (const id of event.gone) batch.replicas.set(id, null)
}

// merged is the map with the changes; the map itself is left as it is.
export function merged<V>(map: ReadonlyMap<string, V>, changes: ReadonlyMap<string, V | null>, whole: boolean): ReadonlyMap<string, V> {
  if (!whole && changes.size === 0) return map
  const result = new Map(whole ? [] : map)
  for (const [key, value] of changes) {
    if (value === null) result.delete(key)
    else result.set(key, value)
  }
  return result
}
