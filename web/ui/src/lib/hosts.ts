// A version may be held by the replicas of another model, its host, instead of some of its own.
import type {Model, Version} from '../api/schema'
import {versionKey} from './catalog'

// runnerOf is the version whose replicas answer for a version: itself, or where it is held the one of its host that
// serves. It is nothing where there is no such host.
export function runnerOf(
  version: Version,
  models: ReadonlyMap<string, Model>,
  versions: ReadonlyMap<string, Version>,
): Version | undefined {
  if (!version.hosted_by) return version
  const host = models.get(version.hosted_by)
  return host && versions.get(versionKey(host.name, host.serving || host.current))
}

// heldBy are the versions that the replicas of a model hold.
export function heldBy(model: string, versions: ReadonlyMap<string, Version>): Version[] {
  return [...versions.values()].filter(({hosted_by}) => hosted_by === model)
}

// isHost says whether a model holds versions of others. It answers no queries itself.
export function isHost({name, current}: Model, versions: ReadonlyMap<string, Version>): boolean {
  return versions.get(versionKey(name, current))?.host !== undefined
}
