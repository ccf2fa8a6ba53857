// Where the time goes in versions with stages: one of them, embed, is pressed.
import {noise} from './random.mjs'

const natures = {
  decode: {wait: 400, run: 1800, batch: 1, busy: 0.31, failing: 0.002},
  strokes: {wait: 900, run: 3900, batch: 4.2, busy: 0.44},
  embed: {wait: 21000, run: 31000, batch: 22.4, busy: 0.96, dying: 0.001},
  rank: {wait: 1200, run: 5200, batch: 9.1, busy: 0.38, dropping: 0.004},
}

export function versionStages(world, version, window, t, replica) {
  const stages = version.stages ?? []
  const runs = (r) => r.model === version.model && r.version === version.version && r.state !== 'failed'
  const all = [...world.replicas.values()].filter(runs)
  const count = replica ? Number(runs(replica)) : all.length
  const rate = (300 / Math.max(1, all.length)) * count
  const shown = stages.map((stage, i) => one(version, stage, stages[i - 1]?.name ?? 'input', count, rate, window, t))
  const none = shown.find(({workers, ready}) => workers > 0 && ready === 0)
  const pressed = shown.toSorted((a, b) => (b.busy ?? 0) - (a.busy ?? 0))[0]
  return {
    model: version.model,
    version: version.version,
    at: new Date(t * 1000).toISOString(),
    window_seconds: count > 0 && !none ? window : 0,
    ...((none ?? (pressed?.busy && pressed)) && {bottleneck: (none ?? pressed).stage}),
    stages: shown,
  }
}

function one(version, stage, before, replicas, rate, window, t) {
  const broken = isBroken(version, stage)
  const workers = (stage.workers ?? 1) * replicas
  const head = {stage: stage.name, after: stage.after ?? [before], workers, ready: broken ? 0 : workers, waiting: 0}
  if (replicas === 0 || version.version.endsWith('-rc')) return head
  const nature = natures[stage.name]
  const swing = 1 + 0.1 * noise(stage.name, t)
  const inputs = Math.round(rate * window)
  const lost = (share) => Math.round(inputs * (share ?? 0))
  return {
    ...head,
    waiting: Math.round((nature.wait * rate * swing) / 1e6),
    rate: Math.round(rate * 100) / 100,
    busy: Math.min(1, Math.round(nature.busy * swing * 1e4) / 1e4),
    batch_mean: nature.batch,
    wait_micros: Math.round(nature.wait * swing),
    wait_p99_micros: Math.round(nature.wait * 2.4 * swing),
    run_micros: Math.round(nature.run * swing),
    run_p99_micros: Math.round(nature.run * 1.7 * swing),
    ended: Object.fromEntries(
      Object.entries({
        ok: inputs - lost(nature.failing) - lost(nature.dying) - lost(nature.dropping),
        model_error: lost(nature.failing),
        container: lost(nature.dying),
        dropped: lost(nature.dropping),
      }).filter(([, n]) => n > 0),
    ),
  }
}

// A candidate whose branch does not start.
function isBroken(version, stage) {
  return version.version.endsWith('-rc') && stage.name === 'strokes'
}
