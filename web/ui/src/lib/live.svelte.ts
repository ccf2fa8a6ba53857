import * as calls from '../api/calls'
import type * as T from '../api/schema'
import {Due, versionKey, type Source} from './catalog'
import {History} from './history'
import {runnerOf} from './hosts'
import {Reader} from './reader'
import {Stream, type EventName} from './stream'

const graceMs = 1500 // a stream that is back by then was never missed

// Reads is the API as far as it is read when events say so.
export interface Reads extends Source {
  client: {revision: number}
  replicas(): Promise<T.Replica[]>
  traffic(): Promise<T.Traffic>
  cluster(): Promise<T.Cluster>
}

// Live is the system as it is: read when the page opens, and again as the stream of events says. Its maps
// are replaced and never changed, so that who reads one sees one moment.
export class Live {
  apps = $state.raw<ReadonlyMap<string, T.App>>(new Map())
  models = $state.raw<ReadonlyMap<string, T.Model>>(new Map())
  versions = $state.raw<ReadonlyMap<string, T.Version>>(new Map())
  replicas = $state.raw<ReadonlyMap<string, T.Replica>>(new Map())
  traffic = $state.raw<ReadonlyMap<string, T.AppTraffic>>(new Map())
  cluster = $state.raw<T.Cluster | null>(null)
  decided = $state(0) // events of decisions since the page was opened
  audited = $state(0) // changes since the page was opened
  revision = $state(0)
  known = $state(false) // whether the catalog has come
  replicasKnown = $state(false)
  staleSince = $state<number | null>(null) // milliseconds; null while events come
  lastEvent = $state(0)
  moment = $state(0) // grows with every reading of traffic; who reads the history depends on it

  readonly history = new History()
  readonly #due = new Due()
  readonly #reads: Reads
  readonly #readers: Record<'catalog' | 'replicas' | 'traffic' | 'cluster', Reader>
  readonly #stream: Stream
  #grace: ReturnType<typeof setTimeout> | undefined

  // byVersion groups replicas by model:version.
  readonly byVersion = $derived.by(() => {
    const groups = new Map<string, T.Replica[]>()
    for (const replica of this.replicas.values()) {
      const key = versionKey(replica.model, replica.version)
      const group = groups.get(key)
      if (group) group.push(replica)
      else groups.set(key, [replica])
    }
    return groups as ReadonlyMap<string, readonly T.Replica[]>
  })

  constructor(lost: () => void, open: () => EventSource = () => new EventSource('/api/v1/events'), reads: Reads = calls) {
    this.#reads = reads
    this.#readers = {
      catalog: new Reader(() => this.#readCatalog()),
      replicas: new Reader(() => this.#readReplicas()),
      traffic: new Reader(() => this.#readTraffic()),
      cluster: new Reader(async () => void (this.cluster = await reads.cluster())),
    }
    this.#stream = new Stream(open, {
      event: (name, data) => this.#take(name, data as T.Notice),
      lost: () => {
        const since = this.lastEvent || Date.now()
        this.#grace ??= setTimeout(() => (this.staleSince ??= since), graceMs)
        this.#stopReading()
        lost()
      },
      found: () => {
        this.#endGrace()
        this.staleSince = null
      },
    })
  }

  // replicasOf are those that answer for a version, its own or its host's.
  replicasOf(model: string, version: string): readonly T.Replica[] {
    const known = this.versions.get(versionKey(model, version))
    const runner = known && runnerOf(known, this.models, this.versions)
    return runner ? (this.byVersion.get(versionKey(runner.model ?? model, runner.version)) ?? []) : []
  }

  start() {
    this.#stream.start()
  }

  stop() {
    this.#endGrace()
    this.#stopReading()
    this.#stream.stop()
  }

  retry() {
    this.#stream.retry()
  }

  #endGrace() {
    clearTimeout(this.#grace)
    this.#grace = undefined
  }

  #stopReading() {
    for (const reader of Object.values(this.#readers)) reader.stop()
  }

  #take(name: EventName, notice: T.Notice) {
    this.lastEvent = Date.now()
    if (notice.revision !== undefined) this.revision = this.#reads.client.revision = notice.revision
    switch (name) {
      case 'hello':
        this.#due.add(undefined)
        for (const reader of Object.values(this.#readers)) reader.ask()
        break
      case 'catalog':
        this.#due.add(notice.changed)
        this.#readers.catalog.ask()
        break
      case 'decision':
        this.decided++
        break
      case 'audit':
        this.audited += notice.changed?.length ?? 1
        break
      default:
        this.#readers[name].ask()
    }
  }

  async #readCatalog() {
    const {apps, models, versions} = await this.#due.read(this, this.#reads)
    this.apps = apps
    this.models = models
    this.versions = versions
    this.known = true
  }

  async #readReplicas() {
    this.replicas = new Map((await this.#reads.replicas()).map((replica) => [replica.id, replica]))
    this.replicasKnown = true
  }

  async #readTraffic() {
    const {apps} = await this.#reads.traffic()
    this.traffic = new Map(apps.map((app) => [app.app, app]))
    this.history.add(apps)
    this.moment++
  }
}
