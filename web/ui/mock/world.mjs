// The state of the system that the mock plays, and how it moves.
import {EventEmitter} from 'node:events'
import {seeded} from './random.mjs'
import {sample} from './traffic.mjs'

const startMs = 1500

export class World extends EventEmitter {
  mode = 'cluster'
  secured = false
  revision = 40
  apps = new Map()
  models = new Map()
  versions = new Map() // by model:version
  replicas = new Map()
  artifacts = new Map()
  streams = new Map()
  keys = new Map()
  secrets = new Map() // id to secret
  decisions = [] // the newest first, once settled
  audits = []
  etags = new Map()
  born = new Map()
  forgotten = new Set()
  asked = new Map() // app to how often the page asked it
  partEvery = 60 // ms, of answers in parts
  mostParts = Infinity // that an answer has, until it may go on
  cancelled = 0 // answers in parts whose client left
  #natures = new Map()
  #random = seeded(11)
  #audit = 1000
  #count = 0

  nature(app) {
    return (
      this.#natures.get(app) ?? {rate: 0, idle: true, calm: 1, trouble: 0, floor: 0, p50: 0.2, p99: 0.5, cache: 0, causes: {missed_slo: 1}}
    )
  }

  app(app, nature) {
    this.apps.set(app.name, {origin: 'api', models: [], ...app})
    if (nature) this.#natures.set(app.name, nature)
    else this.born.set(app.name, Date.now() / 1000)
    this.touch('app', app.name)
  }

  version(model, version) {
    const known = this.models.get(model)
    if (!known) this.models.set(model, {name: model, current: '', serving: '', previous: '', input_type: version.input_type, versions: []})
    const m = this.models.get(model)
    if (!m.versions.includes(version.version)) m.versions.push(version.version)
    m.previous = m.current
    m.current = version.version
    this.versions.set(`${model}:${version.version}`, {model, origin: 'api', replicas: 1, ...version})
    this.touch('model', model)
    this.touch('version', `${model}:${version.version}`)
  }

  stream(stream) {
    this.streams.set(stream.name, stream)
  }

  pin(model, version, pin) {
    this.versions.get(`${model}:${version}`).pin = pin
  }

  key(key, secret) {
    const id = 'k' + (this.keys.size + 1).toString().padStart(9, '0')
    this.keys.set(id, {id, created: new Date(Date.now() - 9e8).toISOString(), ...key})
    this.secrets.set(id, secret ?? `topsail_${id}_MOCKSECRET`)
    return id
  }

  touch(kind, name) {
    this.revision++
    this.etags.set(`${kind}/${name}`, `"${this.revision}"`)
  }

  etag(kind, name) {
    return this.etags.get(`${kind}/${name}`) ?? '"0"'
  }

  // settle fills in replicas as they are after a while.
  settle() {
    for (const version of this.versions.values()) {
      this.#reconcile(version, true)
    }
    for (const model of this.models.values()) model.serving = model.current
    this.decisions.sort((a, b) => Date.parse(b.at) - Date.parse(a.at))
  }

  modelsOf(app) {
    return app.stages?.length ? app.stages.map((stage) => stage.model) : app.models
  }

  appsOf(model) {
    return [...this.apps.values()].filter((app) => this.modelsOf(app).includes(model)).map((app) => app.name)
  }

  usedBy(version) {
    const model = this.models.get(version.model)
    if (version.version !== model?.current && version.version !== model?.serving) return []
    return this.appsOf(version.model)
  }

  modelView(model) {
    return {...model, apps: this.appsOf(model.name)}
  }

  versionView(version) {
    const model = this.models.get(version.model)
    const current = model?.current === version.version
    return {...version, current, serving: model?.serving === version.version, used_by: this.usedBy(version)}
  }

  wanted(version) {
    if (version.hosted_by) return 0
    if (version.pin && version.pin.count >= 0) return version.pin.count
    if (this.models.get(version.model)?.current === version.version || this.models.get(version.model)?.serving === version.version)
      return version.replicas ?? 1
    return version.scale ? 0 : (version.replicas ?? 1)
  }

  perReplica(version) {
    const sizes = {'digits-svm': 172, 'wine-forest': 90, 'digits-cnn': 260, 'fraud-gbm': 80, tone: 14}
    return sizes[version.model] ?? 120
  }

  demand(version, t) {
    let sum = 0
    for (const name of this.usedBy(version)) sum += sample(this.apps.get(name), this.nature(name), t).rate
    return sum
  }

  // catalogChanged tells followers of objects that changed or went; of versions, their models.
  catalogChanged({apps = [], models = [], versions = []}, gone = []) {
    const names = [
      ...apps.map((name) => ['app', name]),
      ...models.map((name) => ['model', name]),
      ...versions.map((key) => ['model', key.split(':')[0]]),
      ...gone.map(({kind, name}) => (kind === 'version' ? ['model', name.split(':')[0]] : [kind, name])),
    ]
    this.emit('catalog', {revision: this.revision, changed: names.map(([kind, name]) => ({kind, name}))})
  }

  audit(who, action, kind, name, before, after) {
    this.auditAt(new Date().toISOString(), who, action, kind, name, before, after)
    this.emit('audit', this.audits[0])
  }

  auditAt(at, who, action, kind, name, before, after) {
    this.audits.unshift({
      id: String(this.#audit++),
      at,
      who,
      from: '10.0.0.7',
      action,
      kind,
      name,
      ...(before && {before}),
      ...(after && {after}),
      revision: this.revision,
    })
  }

  decide(decision) {
    const full = {at: new Date().toISOString(), outcome: 'applied', leader: 'scheduler-1', fence: 17, ...decision}
    this.decisions.unshift(full)
    this.emit('decision', full)
  }

  // reconcile brings the number of replicas to what is wanted.
  reconcile(version) {
    this.#reconcile(version, false)
  }

  #reconcile(version, atOnce) {
    const have = [...this.replicas.values()].filter((r) => r.model === version.model && r.version === version.version)
    const wanted = this.wanted(version)
    const changed = []
    const gone = []
    for (let n = have.length; n < wanted; n++) changed.push(this.#start(version, atOnce))
    for (const extra of have.slice(wanted)) {
      this.replicas.delete(extra.id)
      gone.push(extra.id)
    }
    if (changed.length + gone.length > 0 && !atOnce) this.emit('replicas', {changed, gone})
  }

  #start(version, atOnce) {
    const n = this.#count++
    const replica = {
      id: `${version.model}-${version.version}-${n.toString(36)}`,
      model: version.model,
      version: version.version,
      state: 'starting',
      node: `node-${(n % 4) + 1}`,
      allocation: `${(0x8c3f1a00 + n * 7919).toString(16)}-5d2b-40c7-a1f0-6e9b2d`,
      pid: 41000 + n,
      restarts: 0,
      since: new Date(Date.now() - (atOnce ? 3600e3 * (1 + this.#random() * 20) : 0)).toISOString(),
    }
    this.replicas.set(replica.id, replica)
    if (atOnce) this.#ready(replica)
    else setTimeout(() => this.comeUp(replica.id), startMs + this.#random() * 500)
    return replica
  }

  comeUp(id) {
    const replica = this.replicas.get(id)
    if (!replica) return
    this.#ready(replica)
    this.emit('replicas', {changed: [replica], gone: []})
    const model = this.models.get(replica.model)
    if (model && model.current === replica.version && model.serving !== replica.version) {
      const old = model.serving
      model.serving = replica.version
      this.catalogChanged({models: [model.name], versions: [`${model.name}:${old}`, `${model.name}:${replica.version}`]})
    }
  }

  #ready(replica) {
    const base = 2000 + this.#random() * 9000
    Object.assign(replica, {
      state: 'ready',
      reason: undefined,
      cpu: Math.round(this.#random() * 100) / 100,
      memory_bytes: Math.round(80e6 + this.#random() * 900e6),
      in_flight: Math.floor(this.#random() * 6),
      latency_micros: Math.round(base * 1.4),
      queue_length: Math.floor(this.#random() * 4),
      wait_micros: Math.round(base / 3),
      batch_limit: 16 + Math.floor(this.#random() * 48),
      batch_mean: Math.round(this.#random() * 90) / 10 + 1,
      answers: Math.floor(this.#random() * 900000),
      profile: [1, 2, 4, 8, 16, 32, 64].map((size) => ({size, micros: Math.round(base * (0.4 + 0.07 * size))})),
    })
  }

  die(id, reason = 'signal: killed') {
    const replica = this.replicas.get(id)
    if (!replica) return false
    const {model, version, node, allocation} = replica
    const dead = {
      id,
      model,
      version,
      node,
      allocation,
      state: 'failed',
      reason,
      restarts: (replica.restarts ?? 0) + 1,
      since: replica.since,
    }
    this.replicas.set(id, dead)
    this.emit('replicas', {changed: [dead], gone: []})
    setTimeout(() => {
      const again = {...dead, state: 'starting', pid: 52000 + this.#count++, since: new Date().toISOString()}
      this.replicas.set(id, again)
      this.emit('replicas', {changed: [again], gone: []})
      setTimeout(() => this.comeUp(id), startMs)
    }, 1200)
    return true
  }

  drain(id) {
    const replica = this.replicas.get(id)
    replica.state = 'draining'
    replica.reason = 'an operator asked for it'
    this.emit('replicas', {changed: [replica], gone: []})
    setTimeout(() => {
      this.replicas.delete(id)
      this.emit('replicas', {changed: [], gone: [id]})
      const version = this.versions.get(`${replica.model}:${replica.version}`)
      if (version) this.reconcile(version)
    }, 2000)
  }

  // move lets the figures of some replicas change.
  move() {
    const changed = []
    for (const replica of this.replicas.values()) {
      if (replica.state !== 'ready' || this.#random() > 0.2) continue
      replica.in_flight = Math.floor(this.#random() * 8)
      replica.queue_length = Math.floor(this.#random() ** 3 * 30)
      replica.latency_micros = Math.round(replica.latency_micros * (0.95 + this.#random() * 0.1))
      replica.wait_micros = Math.round(replica.latency_micros * this.#random())
      replica.batch_mean = Math.round(10 + this.#random() * 80) / 10
      replica.answers += Math.floor(this.#random() * 90)
      changed.push(replica)
    }
    if (changed.length > 0) this.emit('replicas', {changed, gone: []})
  }

  pools() {
    const t = Date.now() / 1000
    return [...this.versions.values()]
      .filter((version) => !version.hosted_by)
      .map((version) => {
        const ready = [...this.replicas.values()].filter(
          (r) => r.model === version.model && r.version === version.version && r.state === 'ready',
        ).length
        const last = this.decisions.find((d) => d.model === version.model && d.version === version.version)
        const blocked = version.model === 'tone'
        return {
          model: version.model,
          version: version.version,
          desired: this.wanted(version),
          ready,
          demand: Math.round(this.demand(version, t) * 10) / 10,
          ...(ready > 0 && {capacity: ready * this.perReplica(version)}),
          ...(blocked && ready === 0 && {blocked_seconds: 252, alarm: true, problem: true}),
          ...(version.pin && {pin: version.pin}),
          ...(last && {last}),
        }
      })
      .sort((a, b) => (a.model + a.version < b.model + b.version ? -1 : 1))
  }

  cluster() {
    const checked = new Date().toISOString()
    const alarms = []
    for (const version of this.versions.values()) {
      const own = [...this.replicas.values()].filter((r) => r.model === version.model && r.version === version.version)
      if (own.length > 0 && this.usedBy(version).length > 0 && own.every((r) => r.state === 'failed')) {
        alarms.push({
          state: 'failed',
          detail: `${version.model}:${version.version} has no ready replica: ${own[0].reason}`,
          next: 'Read the log of the replica; deploy a version whose requirements name the module, or roll back.',
          kind: 'version',
          name: `${version.model}:${version.version}`,
        })
      }
      const ejected = own.find((r) => r.state === 'ejected')
      if (ejected)
        alarms.push({
          state: 'warn',
          detail: `Replica ${ejected.id} gets no queries: ${ejected.reason}`,
          next: 'It comes back by itself when a probe is quick enough. Drain it to have another in its place.',
          kind: 'replica',
          name: ejected.id,
        })
    }
    if (this.mode === 'local') {
      return {
        mode: 'local',
        version: '0.5.0',
        processes: [
          {
            role: 'local',
            name: 'local',
            addr: '127.0.0.1:1337',
            state: 'ok',
            detail: 'gateway, scheduler and management in one process',
            leader: true,
            revision: this.revision,
          },
        ],
        servers: [{name: 'store', state: 'ok', detail: 'bbolt, 184 kB', checked}],
        alarms,
      }
    }
    if (this.apps.size > 0)
      alarms.push({
        state: 'warn',
        detail: 'InfluxDB answers slowly: 2.4 s for the last write',
        next: 'Figures are up to 10 s old. See the load of its machine; Topsail works without it.',
        kind: 'server',
        name: 'influxdb',
      })
    return {
      mode: 'cluster',
      version: '0.5.0',
      processes: [
        {
          role: 'gateway',
          name: 'gateway-1',
          addr: '10.0.0.11:1337',
          state: 'ok',
          detail: '328 queries/s, 14 connections to replicas',
          revision: this.revision,
        },
        {
          role: 'gateway',
          name: 'gateway-2',
          addr: '10.0.0.12:1337',
          state: 'warn',
          detail: 'catalog is 2 revisions behind',
          revision: this.revision - 2,
        },
        {
          role: 'scheduler',
          name: 'scheduler-1',
          addr: '10.0.0.21:1339',
          state: 'ok',
          detail: 'leads since 3 d, fence 17',
          leader: true,
          revision: this.revision,
        },
        {role: 'scheduler', name: 'scheduler-2', addr: '10.0.0.22:1339', state: 'ok', detail: 'stands by', revision: this.revision},
        {role: 'stream', name: 'stream-1', addr: '10.0.0.41:1341', state: 'ok'},
        {role: 'web', name: 'web-1', addr: '10.0.0.31:1338', state: 'ok', detail: '3 sessions', revision: this.revision},
      ],
      servers: [
        {name: 'consul', state: 'ok', detail: '3 servers, leader 10.0.0.2', checked},
        {
          name: 'influxdb',
          state: 'warn',
          detail: 'last write took 2.4 s',
          next: 'See the load of its machine; Topsail works without it.',
          checked,
        },
        {name: 'nomad', state: 'ok', detail: '3 servers, 4 clients ready', checked},
        {name: 'redis', state: 'ok', detail: '7.0.15, append-only file on, 0.3 ms', checked},
      ],
      alarms,
    }
  }
}
