// The operations of the management API that the pages use.
import {Client, path, Refusal, type Options, type Tagged} from './client'
import type * as T from './schema'

export const client = new Client()

type Window = {window: number}
type Page<T> = T.Page & {items: T[]}
const dry = {dry_run: true}
const contract = (replace: boolean) => ({replace_contract: replace || undefined})
const pageSize = 5000 // the most that the API gives at once

// all reads a list to its end.
async function all<T>(of: string, options: Options = {}): Promise<T[]> {
  const items: T[] = []
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const page: Page<T> = await client.get(of, {...options, query: {...options.query, cursor: cursor || undefined, limit: pageSize}})
    items.push(...page.items)
    cursor = page.next
  }
  return items
}

// ifThere is null for what is not there.
async function ifThere<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked
  } catch (err) {
    if (err instanceof Refusal && err.status === 404) return null
    throw err
  }
}

export const me = () => client.get<T.Me>('/me')
export const signIn = (key: string) => client.send<T.Me>('POST', '/session', {body: {key}})
export const signOut = () => client.send<void>('DELETE', '/session')

export const apps = () => all<T.App>('/apps')
export const appIfThere = (app: string) => ifThere(client.get<T.App>(path('apps', app)))
export const getApp = (app: string) => client.tagged<T.App>('GET', path('apps', app))
export const createApp = (app: T.App) => client.send<T.App>('POST', '/apps', {body: app})
export const putApp = (app: T.App, ifMatch: string) => client.tagged<T.App>('PUT', path('apps', app.name), {body: app, ifMatch})
export const dryRunDeleteApp = (app: string) => client.send<T.DryRun>('DELETE', path('apps', app), {query: dry})
export const deleteApp = (app: string) => client.send<void>('DELETE', path('apps', app))
export const link = (app: string, model: string) => client.send<T.App>('PUT', path('apps', app, 'links', model))
export const dryRunUnlink = (app: string, model: string) => client.send<T.DryRun>('DELETE', path('apps', app, 'links', model), {query: dry})
export const unlink = (app: string, model: string) => client.send<T.App>('DELETE', path('apps', app, 'links', model))
export const getPolicy = (app: string) => client.tagged<T.Policy>('GET', path('apps', app, 'policy'))
export const dryRunPolicy = (app: string, policy: T.Policy, ifMatch: string) =>
  client.send<T.DryRun>('PUT', path('apps', app, 'policy'), {body: policy, ifMatch, query: dry})
export const putPolicy = (app: string, policy: T.Policy, ifMatch: string) =>
  client.tagged<T.App>('PUT', path('apps', app, 'policy'), {body: policy, ifMatch})
export const getInsight = (app: string, uid: string, context: string) =>
  client.get<T.Insight>(path('apps', app, 'insight'), {query: {uid, context}})
export const forgetLearned = (app: string, uid: string, context: string) =>
  client.send<void>('DELETE', path('apps', app, 'learned'), {query: {uid, context}})
export const tryApp = (app: string, query: object) => client.send<T.Trial>('POST', path('apps', app, 'try'), {body: query})
export const tryAppInParts = (app: string, query: object, signal: AbortSignal) =>
  client.open(path('apps', app, 'try'), {body: query, signal})
export const appTraffic = (app: string, query: Window, signal?: AbortSignal) =>
  client.get<T.AppSeries>(path('apps', app, 'traffic'), {query, ...(signal && {signal})})
export const appUsage = (app: string, signal?: AbortSignal) => client.get<T.Usage>(path('apps', app, 'usage'), {...(signal && {signal})})

export const models = () => all<T.Model>('/models')
export const modelIfThere = (model: string) => ifThere(client.get<T.Model>(path('models', model)))
export const getModel = (model: string) => client.tagged<T.Model>('GET', path('models', model))
export const dryRunCurrent = (model: string, version: string, replaceContract: boolean) =>
  client.send<T.DryRun>('PUT', path('models', model, 'current'), {body: {version}, query: {...dry, ...contract(replaceContract)}})
export const setCurrent = (model: string, version: string, replaceContract: boolean) =>
  client.send<T.Model>('PUT', path('models', model, 'current'), {body: {version}, query: contract(replaceContract)})
export const dryRunRollBack = (model: string, version: string) =>
  client.send<T.DryRun>('POST', path('models', model, 'rollback'), {query: dry, body: {version}})
export const rollBack = (model: string, version: string) =>
  client.send<T.Model>('POST', path('models', model, 'rollback'), {body: {version}})
export const history = (model: string) => client.get<{items: T.ModelChange[]}>(path('models', model, 'history'), {query: {limit: 50}})
export const dryRunDeleteModel = (model: string) => client.send<T.DryRun>('DELETE', path('models', model), {query: dry})
export const deleteModel = (model: string) => client.send<void>('DELETE', path('models', model))

export const versions = () => all<T.Version>('/versions')
// versionsOf is empty for a model that is not there.
export const versionsOf = async (model: string) => (await ifThere(all<T.Version>(path('models', model, 'versions')))) ?? []
export const getVersion = (model: string, version: string) => client.tagged<T.Version>('GET', path('models', model, 'versions', version))
export const versionPerformance = async (model: string, version: string, signal?: AbortSignal) =>
  (await client.get<T.Version>(path('models', model, 'versions', version), {...(signal && {signal})})).performance ?? null
export const createVersion = (model: string, version: T.Version, keepCurrent: boolean, replaceContract = false) =>
  client.send<T.Version>('POST', path('models', model, 'versions'), {
    body: version,
    query: {keep_current: keepCurrent || undefined, ...contract(replaceContract)},
  })
export const dryRunDeleteVersion = (model: string, version: string) =>
  client.send<T.DryRun>('DELETE', path('models', model, 'versions', version), {query: dry})
export const deleteVersion = (model: string, version: string) => client.send<void>('DELETE', path('models', model, 'versions', version))
export const setScale = (model: string, version: string, change: {replicas?: number; scale?: T.Scale}) =>
  client.send<T.Version>('PUT', path('models', model, 'versions', version, 'scale'), {body: change})
export const setPin = (model: string, version: string, pin: T.Pin) =>
  client.send<T.Version>('PUT', path('models', model, 'versions', version, 'pin'), {body: pin})
export const releasePin = (model: string, version: string) =>
  client.send<T.Version>('DELETE', path('models', model, 'versions', version, 'pin'))
export const getJob = (model: string, version: string) => client.get<T.Job>(path('models', model, 'versions', version, 'job'))
export const versionTraffic = (model: string, version: string, query: Window, signal?: AbortSignal) =>
  client.get<T.VersionSeries>(path('models', model, 'versions', version, 'traffic'), {query, ...(signal && {signal})})
export const versionStages = (model: string, version: string, signal?: AbortSignal) =>
  client.get<T.VersionStages>(path('models', model, 'versions', version, 'stages'), {...(signal && {signal})})
export const versionUsage = (model: string, version: string, signal?: AbortSignal) =>
  client.get<T.Usage>(path('models', model, 'versions', version, 'usage'), {...(signal && {signal})})

// usage is that of all apps and versions, or of the versions of a model.
export const usage = (model?: string, signal?: AbortSignal) => all<T.Usage>('/usage', {query: {model}, ...(signal && {signal})})

export const streams = (signal?: AbortSignal) => client.get<Page<T.Stream>>('/streams', {query: {limit: pageSize}, ...(signal && {signal})})
export const suspendStream = (stream: string, reason: string) =>
  client.send<T.Stream>('PUT', path('streams', stream, 'suspension'), {body: reason ? {reason} : {}})
export const dryRunResumeStream = (stream: string) => client.send<T.DryRun>('DELETE', path('streams', stream, 'suspension'), {query: dry})
export const resumeStream = (stream: string) => client.send<T.Stream>('DELETE', path('streams', stream, 'suspension'))
export const dryRunForgetStream = (stream: string) => client.send<T.DryRun>('DELETE', path('streams', stream), {query: dry})
export const forgetStream = (stream: string) => client.send<void>('DELETE', path('streams', stream))

export const traffic = () => client.get<T.Traffic>('/traffic')
export const replicas = () => all<T.Replica>('/replicas')
export const getReplica = (replica: string) => client.get<T.Replica>(path('replicas', replica))
export const setCount = (role: string, count: number) => client.send<void>('PUT', path('cluster', 'roles', role, 'count'), {body: {count}})
export const restart = (replica: string) => client.send<void>('POST', path('replicas', replica, 'restart'))
export const drain = (replica: string) => client.send<void>('POST', path('replicas', replica, 'drain'))
export const logs = (replica: string, query: NonNullable<Options['query']>, signal: AbortSignal) =>
  client.stream(path('replicas', replica, 'logs'), {query, signal})

export const artifacts = () => client.get<Page<T.Artifact>>('/artifacts')
export const decisions = (query: {model?: string; version?: string; limit?: number} = {}) =>
  client.get<{items: T.Decision[]}>('/decisions', {query})
export const scheduler = () => client.get<T.Scheduler>('/scheduler')
export const cluster = () => client.get<T.Cluster>('/cluster')
export const audit = (query: {kind?: string; name?: string; who?: string; limit?: number; cursor?: string}) =>
  client.get<Page<T.AuditEntry>>('/audit', {query})
export const keys = () => client.get<Page<T.Key>>('/keys')
export const createKey = (key: T.NewKey) => client.send<T.Key & {secret: string}>('POST', '/keys', {body: key})
export const revokeKey = (key: string) => client.send<void>('DELETE', path('keys', key))

export type {Tagged}
