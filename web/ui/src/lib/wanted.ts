import type {Model, Pool, Replica, Version} from '../api/schema'
import {runnerOf} from './hosts'
import {versionKey} from './catalog'

export interface Counts {
  ready: number
  wanted: number
}

// wantedOf is how many replicas a version should have, by the scheduler's word or else by its own.
export function wantedOf(version: Version, pool: Pool | undefined): number {
  if (pool) return pool.desired
  if (version.pin && version.pin.count >= 0) return version.pin.count
  return version.scale ? Math.max(version.scale.min ?? 0, 0) : (version.replicas ?? 1)
}

// countsOf adds up the replicas that an app's queries may go to.
export function countsOf(
  models: readonly string[],
  known: ReadonlyMap<string, Model>,
  versions: ReadonlyMap<string, Version>,
  replicas: ReadonlyMap<string, readonly Replica[]>,
  pools: ReadonlyMap<string, Pool>,
): Counts {
  const counts = {ready: 0, wanted: 0}
  const seen = new Set<Version>()
  for (const name of models) {
    const model = known.get(name)
    if (!model) continue
    for (const asked of new Set([model.current, model.serving])) {
      const version = versions.get(versionKey(name, asked))
      const runner = version && runnerOf(version, known, versions)
      if (!runner || seen.has(runner)) continue
      seen.add(runner)
      const key = versionKey(runner.model ?? name, runner.version)
      counts.wanted += wantedOf(runner, pools.get(key))
      for (const replica of replicas.get(key) ?? []) {
        if (replica.state === 'ready') counts.ready++
      }
    }
  }
  return counts
}
