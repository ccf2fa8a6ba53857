// What apps are asked and answer, as a function of the time, so that any window can be shown.
import {noise} from './random.mjs'

export function sample(app, nature, t) {
  const swing = 1 + 0.35 * Math.sin(t / 900 + nature.rate) + 0.12 * noise(app.name, t)
  const rate = nature.idle ? 0 : Math.max(0, nature.rate * swing)
  const trouble = Math.max(0, noise(app.name + '!', t) - nature.calm) * nature.trouble
  const share = Math.min(0.9, nature.floor + trouble)
  const causes = {}
  for (const [cause, part] of Object.entries(nature.causes)) causes[cause] = rate * share * part
  const slo = app.latency_slo_micros
  const p50 = slo * (nature.p50 + 0.04 * noise(app.name + '5', t))
  const p99 = slo * (nature.p99 + 0.1 * noise(app.name + '9', t) + trouble)
  return {
    rate,
    share: rate > 0 ? share : 0,
    causes,
    p50,
    p95: p50 + (p99 - p50) * 0.6,
    p99,
    cache: nature.cache + 0.05 * noise(app.name + 'c', t),
  }
}

export function now(world, t) {
  const apps = [...world.apps.values()].map((app) => {
    const s = sample(app, world.nature(app.name), t)
    return {
      app: app.name,
      slo_micros: app.latency_slo_micros,
      rate: round(s.rate),
      attainment: round(1 - s.share, 5),
      defaults: round(s.share, 5),
      ...(s.rate > 0 && {
        p50_micros: Math.round(s.p50),
        p95_micros: Math.round(s.p95),
        p99_micros: Math.round(s.p99),
        cache_hits: round(s.cache, 3),
      }),
      ...(s.rate > 0 && {causes: Object.fromEntries(Object.entries(s.causes).map(([c, v]) => [c, round(v, 3)]))}),
    }
  })
  apps.sort((a, b) => a.attainment - b.attainment || (a.app < b.app ? -1 : 1))
  return {at: new Date(t * 1000).toISOString(), window_seconds: 60, apps}
}

export function appSeries(world, app, window, t) {
  const {times, step} = steps(window, t)
  const samples = times.map((at) => sample(app, world.nature(app.name), at))
  const causes = {}
  for (const cause of Object.keys(world.nature(app.name).causes)) causes[cause] = samples.map((s) => round(s.causes[cause], 3))
  const born = world.born.get(app.name) ?? 0
  const known = (values) => values.map((value, i) => (times[i] < born ? null : value))
  return {
    app: app.name,
    slo_micros: app.latency_slo_micros,
    step_seconds: step,
    times,
    rate: known(samples.map((s) => round(s.rate))),
    attainment: known(samples.map((s) => round(1 - s.share, 5))),
    p50_micros: known(samples.map((s) => (s.rate > 0 ? Math.round(s.p50) : null))),
    p95_micros: known(samples.map((s) => (s.rate > 0 ? Math.round(s.p95) : null))),
    p99_micros: known(samples.map((s) => (s.rate > 0 ? Math.round(s.p99) : null))),
    cache_hits: known(samples.map((s) => (s.rate > 0 ? round(s.cache, 3) : null))),
    causes: Object.fromEntries(Object.entries(causes).map(([c, values]) => [c, known(values)])),
  }
}

export function versionSeries(world, version, window, t) {
  const {times, step} = steps(window, t)
  const perReplica = world.perReplica(version)
  const demandAt = (at) => Math.max(0, world.demand(version, at))
  const wantAt = (at) => Math.max(version.scale?.min ?? 1, Math.ceil(demandAt(at - 40) / perReplica / 0.8))
  const fixed = version.scale ? null : (version.replicas ?? 1)
  const desired = times.map((at) => fixed ?? wantAt(at))
  const ready = times.map((at) => fixed ?? wantAt(at - 30))
  return {
    model: version.model,
    version: version.version,
    step_seconds: step,
    times,
    demand: times.map((at) => round(demandAt(at))),
    capacity: ready.map((n) => round(n * perReplica)),
    desired,
    ready,
    decisions: world.decisions.filter(
      (d) => d.model === version.model && d.version === version.version && Date.parse(d.at) / 1000 > t - window,
    ),
  }
}

function steps(window, t) {
  const step = Math.max(5, Math.ceil(window / 240 / 5) * 5)
  const last = Math.floor(t / step) * step
  const n = Math.floor(window / step)
  return {step, times: Array.from({length: n}, (_, i) => last - (n - 1 - i) * step)}
}

function round(value, digits = 2) {
  const f = 10 ** digits
  return Math.round(value * f) / f
}
