// The systems that the mock can be: a small one with one of everything, a large one, and none yet.
import {seeded} from './random.mjs'

const hour = 3600e3
const wine = '[14.23, 1.71, 2.43, 15.6, 127.0, 2.8, 3.06, 0.28, 2.29, 5.64, 1.04, 3.92, 1065.0]'
const digits =
  '[0,0,5,13,9,1,0,0,0,0,13,15,10,15,5,0,0,3,15,2,0,11,8,0,0,4,12,0,0,8,8,0,0,5,8,0,0,9,8,0,0,4,11,0,1,12,7,0,0,2,14,5,10,12,0,0,0,0,6,13,10,0,0,0]'
const digest = (n) => 'sha256:' + n.toString(16).padStart(2, '0').repeat(32)

const nature = (rate, more = {}) => ({
  rate,
  calm: 0.7,
  trouble: 0.05,
  floor: 0.0004,
  p50: 0.18,
  p99: 0.62,
  cache: 0.22,
  causes: {missed_slo: 0.7, refused_late: 0.3},
  ...more,
})

export function small(world) {
  world.version('wine-forest', {
    version: '1',
    input_type: 'doubles',
    input_length: 13,
    replicas: 2,
    labels: ['sklearn'],
    description: 'A random forest of 200 trees, trained on the cultivars of 2024.',
    bundle: digest(0x3f),
    example: wine,
  })
  world.version('digits-svm', {
    version: '7',
    input_type: 'integers',
    input_length: 64,
    replicas: 3,
    scale: {min: 1, max: 8, utilisation: 0.8, idle_micros: 600e6, cooldown_down_micros: 120e6},
    batch: {strategy: 'aimd', max_size: 64},
    deployed: {
      by: 'ci',
      at: '2026-05-11T08:12:31Z',
      client: 'topsail-python/0.1.0',
      commit: '3f1c0b9ad2e44f0a9d7be21c55e8a60f1b7d9c42-dirty',
    },
    command: ['python3', '-m', 'topsail', 'digits:Digits'],
    dir: '/srv/models/digits',
    env: {OMP_NUM_THREADS: '1'},
    resources: {cpu: 1000, memory_mb: 512},
  })
  world.version('digits-svm', {
    version: '8',
    input_type: 'integers',
    input_length: 64,
    replicas: 1,
    bundle: digest(0x5c),
    labels: ['candidate'],
  })
  world.version('digits-cnn', {
    version: '2024-11',
    input_type: 'integers',
    input_length: 64,
    replicas: 2,
    bundle: digest(0x7a),
    resources: {cpu: 2000, memory_mb: 2048, gpu: {count: 1, device: 'nvidia/gpu'}},
  })
  world.version('fraud-gbm', {version: '3', input_type: 'floats', input_length: 42, replicas: 2, bundle: digest(0x91)})
  world.version('fraud-gbm', {version: '4', input_type: 'floats', input_length: 42, replicas: 3, bundle: digest(0xa2)})
  world.version('tone', {
    version: '12',
    input_type: 'strings',
    scale: {min: 0, max: 4, metric: 'concurrency', target: 8},
    replicas: 1,
    driver: 'docker',
    image: 'registry.models.example/tone:12',
  })
  world.version('shelf', {version: '1', replicas: 2, host: {memory_mb: 2048}, command: ['python3', '-m', 'topsail', 'host']})
  world.version('greeting', {version: '3', input_type: 'strings', hosted_by: 'shelf', bundle: digest(0xb3)})
  const stages = (strokes) => [
    {name: 'decode', code: 'scans:Decode', workers: 2, cpus: [1, 2]},
    {name: 'strokes', code: `scans:${strokes}`, batch: {strategy: 'aimd', max_size: 32}},
    {name: 'embed', code: 'scans:Embed', after: ['decode'], workers: 2, batch: {strategy: 'aimd'}},
    {name: 'rank', code: 'scans:Rank', after: ['embed', 'strokes'], batch: {strategy: 'fixed', max_size: 16, delay_micros: 2000}},
  ]
  const scans = {input_type: 'bytes', command: ['python3', '-m', 'topsail', 'pipeline'], dir: '/srv/models/scans'}
  world.version('scans', {version: '3', replicas: 2, stages: stages('Strokes'), ...scans})
  world.version('scans', {version: '4-rc', stages: stages('Curves'), ...scans})
  world.models.get('scans').current = '3'
  world.models.get('scans').previous = ''
  world.models.get('digits-svm').current = '7'
  world.models.get('digits-svm').previous = ''
  world.models.get('fraud-gbm').previous = '3'

  world.app(
    {name: 'wine', input_type: 'doubles', default_output: '-1', latency_slo_micros: 100000, models: ['wine-forest'], example: wine},
    nature(84),
  )
  world.app(
    {
      name: 'digits',
      description: 'Which digit somebody wrote, of 8 by 8 pixels. The till asks it for each field of a form.',
      input_type: 'integers',
      default_output: '-1',
      latency_slo_micros: 20000,
      models: ['digits-svm', 'digits-cnn'],
      output_type: 'label',
      policy: {kind: 'exp4', scope: 'app', eta: 0.2},
      example: digits,
    },
    nature(412, {calm: 0.15, trouble: 0.12, p99: 0.86, causes: {missed_slo: 0.5, refused_late: 0.3, model_error: 0.2}}),
  )
  world.app(
    {
      name: 'fraud',
      input_type: 'floats',
      default_output: '{"score": 0.5, "review": true}',
      latency_slo_micros: 50000,
      models: ['fraud-gbm'],
      policy: {kind: 'versions', canary: '4', share: 0.1, ramp_seconds: 600, min_answers: 50},
      example: JSON.stringify(Array.from({length: 42}, (_, i) => Math.round(Math.sin(i) * 100) / 100)),
      require_key: true,
      limit: {per_second: 500, burst: 1000},
      cache: {round: 0.01},
    },
    nature(167, {p50: 0.3, p99: 0.7, cache: 0.04}),
  )
  world.app(
    {
      name: 'sentiment',
      input_type: 'strings',
      default_output: '"neutral"',
      latency_slo_micros: 250000,
      cold_start_micros: 8e6,
      models: ['tone'],
      example: '"a very good film"',
      origin: 'file',
    },
    nature(6.4, {
      calm: 0.2,
      trouble: 0.3,
      floor: 0.004,
      p50: 0.4,
      p99: 0.97,
      cache: 0.6,
      causes: {no_replica: 0.6, missed_slo: 0.2, container_error: 0.2},
    }),
  )
  world.app(
    {
      name: 'scans',
      input_type: 'bytes',
      default_output: '-1',
      latency_slo_micros: 150000,
      models: ['scans'],
      example: '"iVBORw0KGgo="',
    },
    nature(1500, {p50: 0.4, p99: 0.72, cache: 0.02}),
  )
  world.app(
    {
      name: 'read',
      description: 'Reads a page: finds the words, and what they are about.',
      input_type: 'bytes',
      default_output: '""',
      latency_slo_micros: 200000,
      stages: [
        {name: 'find', model: 'scans'},
        {name: 'colour', model: 'digits-cnn', after: ['input']},
        {name: 'words', model: 'digits-svm', after: ['find']},
        {name: 'about', model: 'tone', after: ['words', 'colour']},
      ],
      example: '"iVBORw0KGgo="',
    },
    nature(31, {calm: 0.5, p50: 0.3, p99: 0.6, cache: 0.1}),
  )
  world.settle()
  const ids = [...world.replicas.values()]
  Object.assign(
    ids.find((r) => r.model === 'digits-cnn'),
    {state: 'ejected', reason: 'p99 was 4 times that of the others for 30 s; it is probed every 5 s', latency_micros: 61000},
  )
  Object.assign(
    ids.find((r) => r.model === 'tone'),
    {state: 'failed', reason: "exit status 1: ModuleNotFoundError: No module named 'sentencepiece'", restarts: 5, in_flight: 0},
  )
  Object.assign(
    ids.find((r) => r.version === '4-rc'),
    {state: 'starting', reason: '[strokes/0] FileNotFoundError: curves.npz', in_flight: 0, queue_length: 0},
  )
  world.pin('digits-cnn', '2024-11', {count: 2, until: new Date(Date.now() + 2 * hour).toISOString(), reason: 'load test this afternoon'})
  streams(world)
  history(world)
  world.key({name: 'ana', role: 'admin'})
  world.key({name: 'ci', role: 'deployer', apps: ['wine', 'digits'], expires: new Date(Date.now() + 40 * 24 * hour).toISOString()})
  world.key({name: 'shop', role: 'query', apps: ['fraud'], limit: {per_second: 200, burst: 400}})
  world.key({name: 'on-call', role: 'operator'})
}

function streams(world) {
  const named = (name) => ({
    name,
    output: `${name}.results`,
    dead_letter: `${name}.dead`,
    now: {processes: 2, lag_records: 14, conditions: []},
  })
  world.stream({...named('wine'), kind: 'data', app: 'wine', input: ['wine.records']})
  world.stream({...named('scans'), kind: 'data', app: 'scans', input: ['scans.north', 'scans.south', 'scans.east', 'scans.west']})
  world.stream({...named('tills'), kind: 'data', input: ['tills.fields'], now: undefined})
  const failing = {processes: 1, lag_records: 1204917, waiting_seconds: 96, conditions: ['cannot predict with app receipts']}
  world.stream({...named('receipts'), kind: 'data', app: 'receipts', input: ['receipts.records'], now: failing})
  world.stream({
    name: 'wine.models',
    kind: 'model',
    input: ['wine.updates'],
    output: 'wine.deployed',
    dead_letter: 'wine.refused',
    suspension: {since: new Date(Date.now() - 12 * 60e3).toISOString(), by: 'on-call', reason: 'version 7 is bad'},
  })
}

function history(world) {
  const at = (minutes) => new Date(Date.now() - minutes * 60e3).toISOString()
  const leader = 'scheduler-1'
  const d = (minutes, from, to, rule, reason, outcome = 'applied', more = {}) =>
    world.decisions.push({model: 'digits-svm', version: '7', at: at(minutes), from, to, rule, reason, outcome, leader, fence: 17, ...more})
  d(2, 2, 3, 'capacity', 'demand 412/s over 60 s needs 3 replicas at 172/s each and 80% utilisation')
  d(6, 3, 2, 'capacity', 'demand 236/s over 5 min needs 2 replicas at 172/s each and 80% utilisation')
  d(9, 2, 3, 'panic', 'demand 430/s over 6 s is more than twice what 2 replicas were scaled for')
  d(12, 3, 2, 'capacity', 'demand 244/s needs 2 replicas', 'blocked', {error: 'a deployment of this job has been running for 3 min'})
  world.decisions.push({
    model: 'tone',
    version: '12',
    at: at(4),
    from: 0,
    to: 1,
    rule: 'wake',
    reason: '3 queries wait for a replica',
    outcome: 'applied',
    leader,
    fence: 17,
  })
  world.decisions.push({
    model: 'digits-cnn',
    version: '2024-11',
    at: at(31),
    from: 1,
    to: 2,
    rule: 'pin',
    reason: 'load test this afternoon',
    outcome: 'applied',
    leader,
    fence: 17,
  })
  const a = (minutes, who, action, kind, name, before, after) => world.auditAt(at(minutes), who, action, kind, name, before, after)
  a(240, 'file', 'create', 'app', 'sentiment', undefined, {name: 'sentiment', latency_slo_micros: 250000})
  a(180, 'ci', 'create', 'version', 'fraud-gbm:4', undefined, {model: 'fraud-gbm', version: '4', replicas: 3, bundle: digest(0xa2)})
  a(179, 'ci', 'update', 'model', 'fraud-gbm', {current: '3'}, {current: '4'})
  a(
    95,
    'ana',
    'update',
    'app',
    'digits',
    {latency_slo_micros: 50000, policy: {kind: 'single'}},
    {latency_slo_micros: 20000, policy: {kind: 'exp4', scope: 'app', eta: 0.2}},
  )
  a(31, 'on-call', 'update', 'version', 'digits-cnn:2024-11', {pin: null}, {pin: {count: 2, reason: 'load test this afternoon'}})
  a(20, 'on-call', 'restart', 'replica', 'tone-12-0', undefined, undefined)
  const stream = {name: 'wine.models', kind: 'model', input: ['wine.updates']}
  a(12, 'on-call', 'update', 'stream', 'wine.models', stream, {...stream, suspension: {by: 'on-call', reason: 'version 7 is bad'}})
  a(8, 'ana', 'create', 'key', 'shop', undefined, {name: 'shop', role: 'query', apps: ['fraud']})
}

export function large(world, apps = 500, replicas = 2000) {
  const random = seeded(5)
  const models = Math.floor(apps / 2)
  for (let i = 0; i < models; i++) {
    world.version(`model-${String(i).padStart(3, '0')}`, {version: '1', input_type: 'doubles', replicas: replicas / models / 2})
    world.version(`model-${String(i).padStart(3, '0')}`, {version: '2', input_type: 'doubles', replicas: replicas / models / 2})
  }
  for (let i = 0; i < apps; i++) {
    world.app(
      {
        name: `app-${String(i).padStart(3, '0')}`,
        input_type: 'doubles',
        latency_slo_micros: 50000,
        default_output: '0',
        models: [`model-${String(i % models).padStart(3, '0')}`],
        example: '[1, 2, 3]',
      },
      nature(random() * 300, {calm: random(), trouble: random() * 0.2, p99: 0.4 + random() * 0.6}),
    )
  }
  world.settle()
  world.key({name: 'ana', role: 'admin'})
}

export function empty(world) {
  world.key({name: 'ana', role: 'admin'})
}
