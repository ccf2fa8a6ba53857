import type * as T from '../api/schema'
import {History} from './history'
import {runnerOf} from './hosts'
import {Inbox, merged, versionKey, type Batch} from './inbox'
import {Stream} from './stream'

const keptDecisions = 500
const hiddenPauseMs = 1000
const graceMs = 1500 // a stream that is back by then was never missed

// Asides are told when the stream breaks and when it is there again.
export interface Asides {
  lost(): void
  found(): void
}

// Live is what the event stream says of the system. Its maps are replaced and never
// changed, so that a reader of one sees one moment.
export class Live {
  apps = $state.raw<ReadonlyMap<string, T.App>>(new Map())
  models = $state.raw<ReadonlyMap<string, T.Model>>(new Map())
  versions = $state.raw<ReadonlyMap<string, T.Version>>(new Map())
  replicas = $state.raw<ReadonlyMap<string, T.Replica>>(new Map())
  traffic = $state.raw<ReadonlyMap<string, T.AppTraffic>>(new Map())
  cluster = $state.raw<T.Cluster | null>(null)
  decisions = $state.raw<readonly T.Decision[]>([]) // the newest first, since the page was opened
  audited = $state(0) // changes since the page was opened
  revision = $state(0)
  known = $state(false) // whether the catalog has come
  replicasKnown = $state(false)
  staleSince = $state<number | null>(null) // milliseconds; null while events come
  lastEvent = $state(0)
  moment = $state(0) // grows with every traffic event; who reads the history depends on it

  readonly history = new History()
  readonly #inbox = new Inbox()
  readonly #stream: Stream
  #scheduled = false
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

  constructor(asides: Asides, open: () => EventSource = () => new EventSource('/api/v1/events')) {
    this.#stream = new Stream(open, {
      event: (name, data) => {
        this.#inbox.put(name, data)
        this.#schedule()
      },
      lost: () => {
        const since = this.lastEvent || Date.now()
        this.#grace ??= setTimeout(() => (this.staleSince ??= since), graceMs)
        asides.lost()
      },
      found: () => {
        this.#endGrace()
        this.staleSince = null
        asides.found()
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
    this.#stream.stop()
  }

  retry() {
    this.#stream.retry()
  }

  #endGrace() {
    clearTimeout(this.#grace)
    this.#grace = undefined
  }

  // Events are applied once for each frame, however many there are. A hidden tab has no
  // frames, and is kept up to date more slowly.
  #schedule() {
    if (this.#scheduled) return
    this.#scheduled = true
    const apply = () => {
      this.#scheduled = false
      const batch = this.#inbox.take()
      if (batch) this.#apply(batch)
    }
    if (document.visibilityState === 'visible') requestAnimationFrame(apply)
    else setTimeout(apply, hiddenPauseMs)
  }

  #apply(batch: Batch) {
    this.lastEvent = Date.now()
    this.apps = merged(this.apps, batch.apps, batch.catalogWhole)
    this.models = merged(this.models, batch.models, batch.catalogWhole)
    this.versions = merged(this.versions, batch.versions, batch.catalogWhole)
    this.replicas = merged(this.replicas, batch.replicas, batch.replicasWhole)
    this.revision = batch.revision ?? this.revision
    this.known ||= batch.catalogWhole
    this.replicasKnown ||= batch.replicasWhole
    this.cluster = batch.cluster ?? this.cluster
    if (batch.decisions.length > 0) {
      this.decisions = [...batch.decisions.toReversed(), ...this.decisions].slice(0, keptDecisions)
    }
    this.audited += batch.audit.length
    if (batch.traffic) this.#applyTraffic(batch.traffic)
  }

  #applyTraffic(traffic: T.Traffic) {
    this.traffic = new Map(traffic.apps.map((app) => [app.app, app]))
    this.history.add(traffic.apps)
    this.moment++
  }
}
