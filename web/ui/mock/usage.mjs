// What came of apps and versions since they were registered: what they are asked now, for as long as they are there.
const days = 86400
const messages = {
  missed_slo: 'Failed to retrieve a prediction response within the specified latency SLO',
  refused_late: 'The model refused the query: it could not have answered in time',
  no_replica: 'No replica of the model is ready',
  model_error: 'stage decode: cannot identify image file',
  container_error: 'the container ended: signal: killed',
}

export function appUsage(world, app, t) {
  const nature = world.nature(app.name)
  const since = world.born.get(app.name) ?? t - 12 * days
  const asked = Math.round((t - since) * nature.rate) + (world.asked.get(app.name) ?? 0)
  const staged = (app.stages?.length ?? 0) > 0
  const [cause] = Object.entries(nature.causes).sort(([, a], [, b]) => b - a)[0]
  return {
    kind: 'app',
    app: app.name,
    ...(app.description && {description: app.description}),
    policy: staged ? 'stages' : (app.policy?.kind ?? 'single'),
    latency_slo_micros: app.latency_slo_micros,
    ...(!staged && {candidates: [...app.models, ...(app.policy?.canary ? [`${app.models[0]}:${app.policy.canary}`] : [])]}),
    since: at(since),
    ...(staged && {stages: app.stages.map(({name, model}, i) => ({stage: name, model, ...figures(asked, 4000 + 9000 * i, 0, 0)}))}),
    ...figures(asked, app.latency_slo_micros * nature.p50, nature.idle ? 0 : nature.floor + 0.002, nature.cache, t, cause),
  }
}

export function versionUsage(world, version, t) {
  const asked = world.usedBy(version).reduce((sum, name) => sum + appUsage(world, world.apps.get(name), t).usage, 0)
  const long = version.model.length * 700
  return {
    kind: 'version',
    model: version.model,
    version: version.version,
    ...(version.description && {description: version.description}),
    since: at(t - 15 * days),
    ...(version.stages && {
      stages: version.stages.map(({name}, i) => ({
        stage: name,
        ...figures(asked, 1500 + 5000 * i, i === 0 ? 0.002 : 0, 0, t, 'model_error'),
      })),
    }),
    ...figures(asked, long, version.stages ? 0.002 : 0.0001, 0.2, t, 'model_error'),
  }
}

export function listUsage(world, model, t) {
  const apps = model ? [] : [...world.apps.values()].map((app) => appUsage(world, app, t))
  const versions = [...world.versions.values()].filter((v) => !model || v.model === model).map((v) => versionUsage(world, v, t))
  return [...apps, ...versions]
}

function figures(n, mean, failing, cached, t, cause) {
  const failed = Math.round(n * failing)
  return {
    usage: n,
    cached: Math.round(n * cached),
    failed,
    missed: cause === 'model_error' ? Math.round(n * 0.0003) : 0,
    total_micros: Math.round(n * mean),
    ...(n > 0 && {mean_micros: mean, min_micros: Math.max(1, Math.round(mean / 9)), max_micros: Math.round(mean * 6)}),
    ...(failed > 0 && {last_failure: {at: at(t - 340), cause, message: messages[cause]}}),
  }
}

function at(t) {
  return new Date(t * 1000).toISOString()
}

// versionPerformance is what the replicas measured: nothing where the version was not asked, and no batches of stages.
export function versionPerformance(world, version, now) {
  const {usage, failed, mean_micros: mean, since, stages} = versionUsage(world, version, now)
  if (!usage) return {}
  const batches = {batches: Math.ceil(usage / 2.5), batch_mean: 2.5, p50_micros: mean * 0.9, p99_micros: mean * 3, throughput: 2.5e6 / mean}
  return {performance: {since, answers: usage + failed, errors: failed / (usage + failed), ...(stages?.length ? {batches: 0} : batches)}}
}
